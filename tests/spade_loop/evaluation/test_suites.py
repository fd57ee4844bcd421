"""AIME, GPQA, snapshots and rlve-gym, on small data that the tests make."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from spade_loop.completers import Reply
from spade_loop.curriculum.rlve import RlvePackage
from spade_loop.errors import ConfigError
from spade_loop.evaluation.suite import Failure, Suite
from spade_loop.evaluation.suites.aime import aime_2025, aime_2026
from spade_loop.evaluation.suites.episodes import instance_seeds
from spade_loop.evaluation.suites.gpqa import LETTERS, GpqaDiamond
from spade_loop.evaluation.suites.rlve import Rlve
from spade_loop.evaluation.suites.snapshot import SnapshotSuite
from synthgym import SynthEnv
from synthgym.sandbox import Pool


def lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def say(text: str, *, stopped: bool = True) -> Callable[[Any], Reply]:
    return lambda chat: Reply(text, len(text), stopped)


# --- AIME ---


@pytest.fixture(scope="module")
def aime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    pytest.importorskip("math_verify", reason="needs the extra `eval`", exc_type=ImportError)
    path = tmp_path_factory.mktemp("aime") / "aime.jsonl"
    rows = [
        {"problem": "What is 15 times 5?", "answer": 75},
        {"question": "1 + 1?", "label": "002"},
    ]
    suite = aime_2025(data=lines(path, *rows))
    yield suite
    suite.close()


def test_other_problems_make_another_version(tmp_path: Path) -> None:
    pytest.importorskip("math_verify", reason="needs the extra `eval`", exc_type=ImportError)
    versions = []
    for name, rows in {
        "a.jsonl": [{"problem": "1 + 1?", "answer": 2}],
        "same.jsonl": [{"question": " 1 + 1? ", "label": "002"}],
        "b.jsonl": [{"problem": "1 + 2?", "answer": 3}],
    }.items():
        suite = aime_2025(data=lines(tmp_path / name, *rows))
        versions.append(suite.version)
        suite.close()
    assert versions[0] == versions[1] != versions[2]


def test_aime_is_asked_as_in_the_evaluation(aime: Suite) -> None:
    assert (aime.name, aime.samples, aime.decoding.max_tokens) == ("aime-2025", 64, 32_768)
    assert [item.id for item in aime.items(None)] == ["aime-2025/1", "aime-2025/2"]
    chats: list[Any] = []
    attempt = aime.play(
        aime.items(None)[1], lambda chat: chats.append(chat) or Reply(r"\boxed{2}", 1, True), 0
    )
    assert attempt.correct
    assert chats[0][0].content.startswith("1 + 1?\n\n")
    assert r"\boxed{}" in chats[0][0].content


@pytest.mark.parametrize(
    ("reply", "correct", "failure"),
    [
        (r"\boxed{75}", True, ""),
        (r"\boxed{075}", True, ""),
        (r"First \boxed{3}, then \boxed{\frac{150}{2}}.", True, ""),
        (r"\boxed{25\cdot 3}", True, ""),
        (r"\boxed{75.0}", True, ""),
        (r"\boxed{76}", False, ""),
        (r"\boxed{no idea}", False, ""),
        (r"<think>\boxed{75}</think> I do not know.", False, Failure.UNPARSED),
        ("75", False, Failure.UNPARSED),
    ],
)
def test_aime_answers_are_compared_by_their_value(
    aime: Suite, reply: str, correct: bool, failure: str
) -> None:
    attempt = aime.play(aime.items(None)[0], say(reply), 0)
    assert (attempt.correct, attempt.failure) == (correct, failure)


def test_a_reply_that_was_cut_in_its_box_is_cut(aime: Suite) -> None:
    attempt = aime.play(aime.items(None)[0], say(r"so \boxed{7", stopped=False), 0)
    assert attempt.failure == Failure.CUT


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([], "has no rows"),
        ([{"problem": "x"}], "row 1.*'answer' or 'label'.*it has problem"),
        ([{"problem": "x", "answer": "1000"}], "from 0 to 999, got '1000'"),
        ([["x"]], r"line 1: expected a JSON object, got '\[\"x\"\]'"),
    ],
)
def test_a_file_that_holds_something_else_is_refused(
    tmp_path: Path, rows: list[Any], told: str
) -> None:
    pytest.importorskip("math_verify", reason="needs the extra `eval`", exc_type=ImportError)
    with pytest.raises(ConfigError, match=told):
        aime_2026(data=lines(tmp_path / "aime.jsonl", *rows))


def test_a_file_that_is_not_there_or_not_json_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("math_verify", reason="needs the extra `eval`", exc_type=ImportError)
    with pytest.raises(ConfigError, match="cannot be read"):
        aime_2026(data=tmp_path / "none.jsonl")
    (tmp_path / "bad.jsonl").write_text('{"problem": "a", "answer": 1}\n\n{"problem"\n')
    with pytest.raises(ConfigError, match="line 3: not JSON"):
        aime_2026(data=tmp_path / "bad.jsonl")


# --- GPQA ---


def question(n: int, **more: Any) -> dict[str, Any]:
    wrong = {f"Incorrect Answer {i}": f"wrong {n}{i}" for i in (1, 2, 3)}
    return (
        {"Record ID": f"rec{n}", "Question": f"Q{n}?", "Correct Answer": f"right {n}"}
        | wrong
        | more
    )


QUESTIONS = [
    question(n, **{"High-level domain": "Physics" if n % 2 else "Chemistry"}) for n in range(12)
]


@pytest.fixture
def gpqa(tmp_path: Path) -> GpqaDiamond:
    return GpqaDiamond(data=lines(tmp_path / "gpqa.jsonl", *QUESTIONS))


def letter_of(chat: Any, text: str) -> str:
    (line,) = [line for line in chat[0].content.splitlines() if line.endswith(f") {text}")]
    return str(line[0])


def test_gpqa_options_are_shuffled_once_and_the_right_letter_wins(gpqa: GpqaDiamond) -> None:
    letters = []
    for n, item in enumerate(gpqa.items(None)):

        def answer(chat: Any, n: int = n) -> Reply:
            letters.append(letter_of(chat, f"right {n}"))
            return Reply(rf"I think \boxed{{{letters[-1]}}}", 1, True)

        attempt = gpqa.play(item, answer, 0)
        assert attempt.correct
        assert (item.id, item.category) == (f"rec{n}", "physics" if n % 2 else "chemistry")
        wrong = gpqa.play(
            item,
            lambda chat, n=n: Reply(rf"\boxed{{{letter_of(chat, f'wrong {n}2')}}}", 1, True),
            0,
        )
        assert (wrong.correct, wrong.failure) == (False, "")
    assert set(letters) == set(LETTERS)


def test_gpqa_shuffles_the_same_for_the_authors_csv(gpqa: GpqaDiamond, tmp_path: Path) -> None:
    path = tmp_path / "gpqa_diamond.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, QUESTIONS[0])
        writer.writeheader()
        writer.writerows(
            [q | {"Question": f'{q["Question"]}\nSecond line, "quoted"'} for q in QUESTIONS]
        )
    other = GpqaDiamond(data=path)
    for mine, theirs in zip(gpqa.items(None), other.items(None), strict=True):
        assert mine.content.options == theirs.content.options
        assert theirs.content.text.endswith('Second line, "quoted"')


@pytest.mark.parametrize(
    ("reply", "failure"),
    [
        (r"\boxed{A) the first}", ""),
        (r"\boxed{(b)}", ""),
        (r"\boxed{\text{C}}", ""),
        ("<answer>D.</answer>", ""),
        (r"\boxed{E}", Failure.UNPARSED),
        (r"\boxed{Apples}", Failure.UNPARSED),
        ("A", Failure.UNPARSED),
        ("", Failure.EMPTY),
    ],
)
def test_gpqa_reads_a_letter(gpqa: GpqaDiamond, reply: str, failure: str) -> None:
    assert gpqa.play(gpqa.items(None)[0], say(reply), 0).failure == failure


# --- snapshots ---


@pytest.fixture(scope="module")
def snapshot() -> Iterator[SnapshotSuite]:
    made = SnapshotSuite(seeds=2, seed=3)
    yield made
    made.close()


def test_instances_are_fixed_by_the_seed(snapshot: SnapshotSuite) -> None:
    assert instance_seeds(3, 2) == instance_seeds(3, 5)[:2]
    assert instance_seeds(3, 2) != instance_seeds(4, 2)
    ids = [item.id for item in snapshot.items(None)]
    assert len(set(ids)) == len(ids)
    assert {int(name.rpartition("/")[2]) for name in ids} == set(instance_seeds(3, 2))
    assert snapshot.name == "snapshot:bundled"
    one_each = snapshot.items(len(ids) // 2)
    assert len({item.id.rpartition("/")[0] for item in one_each}) == len(ids) // 2


def test_a_witness_wins_and_a_silent_or_talkative_model_loses(snapshot: SnapshotSuite) -> None:
    item = snapshot.items(None)[0]
    with Pool(max_workers=1) as pool:
        env = SynthEnv(item.content.spec, pool=pool)
        env.reset(seed=item.content.seed)
        actions = iter(env.solution())
        env.close()
    won = snapshot.play(item, lambda chat: Reply(rf"\boxed{{{next(actions)}}}", 1, True), 0)
    assert (won.correct, won.score, won.failure) == (True, 1.0, "")
    assert won.transcript[-1].role == "assistant"
    failures = [
        snapshot.play(item, say(text, stopped=stopped), 0).failure
        for text, stopped in [("", True), ("hm", True), ("hm", False), (r"\boxed{xyzzy}", True)]
    ]
    assert failures == [Failure.EMPTY, Failure.UNPARSED, Failure.CUT, Failure.TURNS]


def test_a_snapshot_that_is_not_there_and_an_id_that_it_lacks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'AssayOffice-v0'"):
        SnapshotSuite(only=("AssayOfice-v0",))
    chosen = SnapshotSuite(only=("synthgym/AssayOffice-v0",), seeds=1, category="environment")
    assert [item.category for item in chosen.items(None)] == ["AssayOffice-v0"]
    chosen.close()
    with pytest.raises(ConfigError, match="seeds must be at least 1"):
        SnapshotSuite(seeds=0)


# --- rlve-gym ---

TOY = {
    "environment.py": """
from abc import ABC, abstractmethod
class VerifiableEnvironment(ABC) :
    def __init__(self) :
        self.answer_markers = ("<answer>", "</answer>")
    def prompt_generator(self) -> str :
        return self._prompt_generate()
    def verifier(self, output) :
        return dict(accuracy = int(output == "<answer>" + str(self.parameter["reference_answer"]) + "</answer>"))
""",
    "parameter_controller.py": """
class ParameterController :
    def __init__(self) :
        pass
""",
    "environments/__init__.py": """
from .double import Double_Environment
identifier2environment = {"Double": Double_Environment}
""",
    "environments/double/environment.py": """import random
from Gym.environment import VerifiableEnvironment
class Double_Environment(VerifiableEnvironment) :
    def _generate(self) :
        self.n = random.randint(1, self.parameter["N"])
        self.parameter["reference_answer"] = 2 * self.n
    def _prompt_generate(self) :
        return "What is twice {}?".format(self.n)
""",
    "parameter_controllers/__init__.py": """
from .double import Double_ParameterController
identifier2controller = {"Double": Double_ParameterController}
""",
    "parameter_controllers/double/parameter_controller.py": """from Gym.parameter_controller import ParameterController
class Double_ParameterController(ParameterController) :
    def __init__(self) :
        self.N = 100
    def update(self) :
        self.N *= 10
    def get_parameter_list(self) :
        return [dict(N = self.N)]
""",
}
"""A package in the layout of rlve-gym, of our own."""


@pytest.fixture
def rlve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rlve]:
    for name, text in TOY.items():
        path = tmp_path / "Gym" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    package = RlvePackage(tmp_path / "Gym", "9.9")
    monkeypatch.setattr(RlvePackage, "installed", classmethod(lambda cls: package))
    made = Rlve(environments=("Double",), difficulties=(0, 2), seeds=2)
    yield made
    made.close()


def test_rlve_problems_are_answered_once_and_judged_by_the_package(rlve: Rlve) -> None:
    items = rlve.items(None)
    assert [item.category for item in items] == ["difficulty 0"] * 2 + ["difficulty 2"] * 2
    assert len({item.id for item in items}) == 4

    def double(chat: Any) -> Reply:
        number = int(chat[-1].content.split("What is twice ")[1].split("?")[0])
        return Reply(rf"\boxed{{{2 * number}}}", 1, True)

    assert [rlve.play(item, double, 0).correct for item in items] == [True] * 4
    wrong = rlve.play(items[0], say(r"\boxed{1}"), 0)
    assert (wrong.correct, wrong.failure, wrong.transcript[-1].role) == (False, "", "assistant")
    assert "9.9" in rlve.version


def test_rlve_refuses_what_the_package_does_not_have(rlve: Rlve) -> None:
    with pytest.raises(ConfigError, match="did you mean 'Double'"):
        Rlve(environments=("Dubble",))
    with pytest.raises(ConfigError, match=r"0\.\.20, got 21"):
        Rlve(environments=("Double",), difficulties=(21,))
