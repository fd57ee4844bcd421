from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from spade_loop.families import Family, load_families, random_blueprint, render
from synthgym.sandbox import Pool
from synthgym.spec import EnvRecord, Limits
from synthgym.validation import Report, pipeline, validate
from synthgym.validation.gates import GATES
from synthgym.validation.plays import Cast, Play, Trial
from synthgym.validation.robustness_checks import HOSTILE, MODEL_TEXTS, NONSENSE

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
LOCKER = (DATA / "good_envs" / "locker.py").read_text()
MINE = {"load", "reset", "witness", "robustness", "interaction"}
QUICK = Limits(step_seconds=0.5, memory_mb=128)
GOOD = [
    *sorted((ROOT / "registry" / "envs").glob("*/v*/env.py")),
    *sorted((DATA / "good_envs").glob("*.py")),
    *sorted((DATA / "near_misses").glob("*.py")),
]
FAMILIES = load_families()
Run = Callable[..., tuple[Report, "Watched"]]


class Watched(Trial):
    """A trial that can be looked at afterwards, on other seeds if that is wanted."""

    made: ClassVar[list[Watched]] = []
    offset = 0
    given: ClassVar[dict[str, tuple[int, int]]] = {}
    """What unthinking agents are said to have won."""

    def __init__(self, record: EnvRecord, pool: Pool, seeds: Sequence[int], limits: Limits) -> None:
        super().__init__(record, pool, [self.offset + seed for seed in seeds], limits)
        self.steps: list[int] = []
        self.tally.update(self.given)
        self.made.append(self)

    def play(self, cast: Sequence[Cast], *, judged: bool = True) -> list[Play]:
        plays = super().play(cast, judged=judged)
        self.steps.append(sum(len(play.steps) for play in plays))
        return plays


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=2, sources_per_worker=100) as pool:
        yield pool


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, pool: Pool) -> Run:
    """Validates with the gates up to the witness, robustness and interaction."""

    def run(
        source: str, offset: int = 0, limits: Limits | None = None, where: Pool = pool
    ) -> tuple[Report, Watched]:
        monkeypatch.setattr(Watched, "made", [])
        monkeypatch.setattr(Watched, "offset", offset)
        monkeypatch.setattr(pipeline, "Trial", Watched)
        monkeypatch.setattr(pipeline, "GATES", tuple(gate for gate in GATES if gate.name in MINE))
        report = validate(source, pool=where, limits=limits)
        assert Watched.made, [str(finding) for finding in report.findings]
        return report, Watched.made[0]

    return run


def with_line(line: str) -> str:
    """The locker room, with a line of its own at the beginning of each step."""
    source = LOCKER.replace("import random\n", "import json\nimport random\nimport re\n")
    return source.replace("words = action.split()\n", f"words = action.split()\n        {line}\n")


@pytest.mark.parametrize(
    "line",
    [
        "action[0]",
        "words[1]",
        "verb, argument = action.split(' ')",
        "int(words[1]) if len(words) == 2 and words[1].isdigit() else 0",
        "int(words[-1]) if words and words[-1].isnumeric() else 0",
        "int(action) if action.isdigit() else 0",
        "int(action[5:]) if action.startswith('open') else 0",
        "float(int(words[1])) if len(words) == 2 and words[1].isdecimal() else 0",
        "str(int(words[1]) ** 20) if len(words) == 2 and words[1].isdecimal() else 0",
        "1 / int(words[1]) if len(words) == 2 and words[1].isdecimal() else 0",
        "[0] * 9 if len(words) != 2 else [0][-int(words[1]) if words[1] == '-1' else 0:][0]",
        "[1, 2, 3][int(words[1])] if len(words) == 2 and words[1] == '1000000000' else 0",
        "int(float(words[1])) if words[1:] and words[1] in ('nan', 'inf', '1e308') else int('x' * 0 or 1)",
        "json.loads(action) if action.startswith('{') or action.startswith('[') else 0",
        "re.search(action, 'look')",
        "action.format(1)",
        "action % 1 if '%' in action else 0",
        "assert len(action) < 4000",
        "assert action.isprintable()",
        "assert action.upper().lower() == action.lower()",
        "a, b = action.split('=') if '=' in action else (1, 2)",
        "{'take': 1, 'open': 2}[words[0]] if len(words) == 1 and words[0] != 'qzxvkj' else 0",
    ],
)
def test_a_step_that_fails_on_some_text_is_fragile(line: str, run: Run) -> None:
    report, _ = run(with_line(line))
    assert report.reasons == {"fragile-step"}, [str(finding) for finding in report.findings]
    (finding,) = report.findings
    assert finding.actions
    assert finding.seed in range(5)
    assert finding.detail.startswith(("on '", 'on "'))
    json.dumps(report.to_json()).encode()


def test_a_wrong_type_on_some_text_is_fragile(run: Run) -> None:
    report, _ = run(with_line("if words[2:] and words[1] == words[2]: return None"))
    assert report.reasons == {"fragile-step"}
    assert "bad_value" in report.findings[0].detail


def test_the_evidence_is_the_text_alone_where_it_is_enough(run: Run) -> None:
    report, _ = run(with_line("assert '\u00b2' not in action"))
    (finding,) = report.findings
    (action,) = finding.actions
    assert "\u00b2" in action
    assert finding.detail.startswith(f"on {action!r}: error: AssertionError")


def test_the_evidence_has_the_way_to_where_the_text_breaks_the_step(run: Run) -> None:
    report, _ = run(with_line("assert not (self.has_key and 'nan' in action)"))
    (finding,) = report.findings
    assert finding.reason == "fragile-step"
    assert finding.actions[0] == "take key"
    assert "nan" in finding.actions[-1]
    assert len(finding.actions) == 2


def test_lone_surrogates_do_not_get_into_a_report(run: Run) -> None:
    report, _ = run(with_line("assert action != '??'"))
    assert [finding.actions for finding in report.findings] == [("??",)]
    str(report).encode()


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("while words[1:] == ['1000000000']: pass", "step-timeout"),
        ("'x' * int(words[1]) if words[1:] == ['1000000000'] else 0", "memory"),
        ("if '{' in action: return '', 0.0, False, False, {}", "step-empty"),
        ("if '{' in action: return 'x', 0.0, False, False, {'a': {1}}", "info-not-json"),
        ("if 'nan' in action: return 'x', float('nan'), False, False, {}", "reward-not-finite"),
        ("if 'nan' in action: return 'x', -0.5, False, False, {}", "reward-out-of-range"),
        (
            "if 'nan' in action and self.paid == 0: return 'x', 1.0, False, False, {}",
            "full-reward-without-end",
        ),
    ],
)
def test_other_faults_on_strange_text_keep_their_own_names(line: str, code: str, run: Run) -> None:
    report, _ = run(with_line(line), limits=QUICK)
    assert report.reasons == {code}, [str(finding) for finding in report.findings]


def paying(condition: str) -> str:
    """The locker room, with an eighth on top for what meets a condition, once and before the end."""
    source = LOCKER.replace("def step(self", "def judge(self")
    source = source.replace("self.paid = 0.25", "self.paid += 0.25")
    return (
        source
        + f"""
    def step(self, action):
        words = action.split()
        held, paid = self.has_key, self.paid
        text, reward, over, cut, info = self.judge(action)
        if not over and paid in (0.0, 0.25) and ({condition}):
            self.paid += 0.125
            reward += 0.125
        return text, reward, over, cut, info
"""
    )


@pytest.mark.parametrize(
    "condition",
    [
        "True",
        "len(action) > 100",
        "not words",
        "words and words != ['take', 'key'] and words[0] != 'open'",
        "any(ord(mark) > 127 for mark in action)",
        "len(words) > 2 and not held",
    ],
)
def test_pay_for_nonsense_is_found(condition: str, run: Run) -> None:
    report, _ = run(paying(condition))
    assert report.reasons == {"nonsense-paid"}, [str(finding) for finding in report.findings]
    (finding,) = report.findings
    assert finding.actions[-1][:299] in {text[:299] for text in NONSENSE}


@pytest.mark.parametrize(
    "condition",
    [
        "action == 'qzxvkj' and self.left % 5 == 0",
        "'look' in action",
        "'1' in action",
        "held",
        "words == ['take', 'key']",
    ],
)
def test_pay_that_is_not_for_nonsense_is_let_pass(condition: str, run: Run) -> None:
    report, _ = run(paying(condition))
    assert report.findings == (), [str(finding) for finding in report.findings]


@pytest.mark.parametrize("condition", ["len(action) > 100", "not action.isascii()"])
def test_nonsense_that_wins_is_found_where_no_unthinking_agent_would(
    condition: str, run: Run
) -> None:
    line = f"if {condition}: return 'You are a poet.', 1.0 - self.paid, True, False, {{}}"
    report, _ = run(with_line(line))
    assert report.reasons == {"nonsense-paid"}


def test_nonsense_that_wins_is_left_to_an_unthinking_agent_that_has_found_it(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(Watched.given, "null", (20, 20))
    report, trial = run(
        with_line("if not words: return 'You win.', 1.0 - self.paid, True, False, {}")
    )
    assert any(play.success for play in trial.idle)
    assert report.findings == ()


def test_plays_of_nonsense_are_there_for_the_checks_that_follow(run: Run) -> None:
    report, trial = run(LOCKER)
    assert report.ok
    assert {play.seed for play in trial.idle} == set(range(5))
    sent = {action for play in trial.idle for action in play.actions}
    assert sent == {text[:4096] for text in NONSENSE}
    assert all(play.actions for play in trial.idle)
    assert 2 <= len(trial.kept) <= 4


def test_every_text_is_sent(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """In an environment that outlives them all; mutants are made of what stands in the witness."""
    sent: set[str] = set()
    played = Trial.play

    def play(self: Trial, cast: Sequence[Cast], *, judged: bool = True) -> list[Play]:
        plays = played(self, cast, judged=judged)
        sent.update(action for play in plays for action in play.actions)
        return plays

    monkeypatch.setattr(Trial, "play", play)
    run(LOCKER.replace("max_turns = 8", "max_turns = 60"))
    assert {text[:4096] for text in (*NONSENSE, *MODEL_TEXTS)} <= sent
    assert {f"open {value}" for value in HOSTILE} <= sent
    assert {"take", "open", "take key key", "TAKE KEY", "take,key"} <= sent


def test_texts_of_nonsense_cannot_be_commands() -> None:
    assert len(set(NONSENSE)) == len(NONSENSE)
    for text in NONSENSE:
        assert not any(mark.isdecimal() for mark in text)
        assert all(
            len(word) > 1 or not word.isascii() or not word.isalpha() for word in text.split()
        )


def test_where_any_strange_text_ends_the_episode_many_are_sent_all_the_same(run: Run) -> None:
    source = LOCKER.replace(
        "return \"Nothing happens. Commands: 'take key', 'open <number>'.\", 0.0, False",
        'return "The guard comes.", 0.0, True',
    )
    report, trial = run(source)
    assert report.ok, [str(finding) for finding in report.findings]
    assert len({action for play in trial.idle for action in play.actions}) >= 10


@pytest.mark.parametrize(
    ("path", "offset"),
    [(path, (100, 2**61 + 3)[number % 2]) for number, path in enumerate(GOOD)],
    ids=[f"{path.parents[1].name}-{path.stem}" for path in GOOD],
)
def test_good_environments_pass_on_other_seeds(path: Path, offset: int, run: Run) -> None:
    report, trial = run(path.read_text(), offset)
    assert report.findings == (), [str(finding) for finding in report.findings]
    assert trial.seeds[0] == offset
    assert sum(trial.steps[2:]) <= 400  # the first two calls are those of reset and witness


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_families_pass_with_any_parameters_on_other_seeds(family: Family, run: Run) -> None:
    rng = np.random.default_rng(11)
    for offset in range(100, 1100, 125):
        blueprint = random_blueprint(family, rng)
        report, _ = run(render(blueprint, FAMILIES), offset)
        assert report.findings == (), (blueprint, [str(finding) for finding in report.findings])


def test_the_same_is_found_under_another_hash_seed(run: Run, pool: Pool) -> None:
    source = with_line("assert '{' not in action")
    one, _ = run(source)
    other, _ = run(source, where=pool.twin())
    assert str(one) == str(other)
