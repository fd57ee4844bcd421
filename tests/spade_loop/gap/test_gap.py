"""`spade-loop gap` from end to end: a stand-in endpoint, real environments, every file that comes of it."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from openai_service import Answer, Service, answer, serving

from spade_loop.cli import main
from spade_loop.journal import read_journal
from synthgym.cli import main as synthgym_main
from synthgym.registry import Snapshot, write_snapshot
from synthgym.spec import EnvRecord, SynthEnvSpec

pytest.importorskip("openai")

DOOR = '''"""Open the door with the right word."""


class {name}Env:
    max_turns = 3

    def reset(self, seed):
        self.seed = seed
        if {broken}:
            raise ValueError("jammed")
        return "{room} Door {{}}.".format(seed), {{}}

    def step(self, action):
        won = action == {word}
        return ("Open." if won else "Shut."), float(won), won, False, {{}}

    def hint(self, level=2):
        return {hint}

    def solution(self):
        return [{word}]
'''
ENVIRONMENTS = {
    "Easy": {"word": '"push"'},
    "Hinted": {"word": '"sesame"'},
    "Closed": {"word": '"nobody-knows"'},
    "Useless": {"word": '"sesame"', "hint": '"look" if level < 3 else "say sesame"'},
}


def environment(name: str, **values: str) -> SynthEnvSpec:
    filled = {
        "name": name,
        "room": name,
        "word": '"push"',
        "hint": '"say sesame"',
        "broken": "False",
    } | values
    record = EnvRecord(source=DOOR.format(**filled), entry=f"{name}Env", max_turns=3)
    return SynthEnvSpec(record=record, name=name, title=f"The {name} <b>door</b>")


@pytest.fixture
def service() -> Iterator[Service]:
    with serving() as made:
        made.answers = [agent]
        yield made


def reply(text: str, read: int = 10) -> Answer:
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": read, "completion_tokens": 2}
    return answer({"choices": [choice], "usage": usage})


def agent(body: dict[str, Any]) -> Answer:
    """Says the magic word where it is told in the chat, and else pushes. A rule, not a model."""
    said = " ".join(m["content"] for m in body["messages"])
    return reply("\\boxed{sesame}" if "say sesame" in said else "I \\boxed{push}.")


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    specs = [environment(name, **values) for name, values in ENVIRONMENTS.items()]
    return write_snapshot(tmp_path / "doors", specs, name="doors", version="1.0.0").path


Gap = Callable[..., tuple[int, str, str]]


@pytest.fixture
def gap(
    service: Service,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Gap:
    def gap(place: object, *more: object, out: str = "out", model: str = "other") -> Any:
        arguments = [
            "gap",
            place,
            "--model",
            model,
            "--endpoint",
            service.url,
            "--out",
            tmp_path / out,
            "--retries",
            0,
            *more,
        ]
        monkeypatch.setattr(sys, "argv", ["spade-loop", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return ended.value.code or 0, captured.out, captured.err

    return gap


def report(tmp_path: Path, out: str = "out") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((tmp_path / out / "gap.json").read_text())
    return found


def by_name(data: dict[str, Any]) -> dict[str, Any]:
    return {row["id"].removeprefix("synthgym/"): row for row in data["environments"]}


def test_a_snapshot_is_measured_noted_and_filtered(
    gap: Gap, snapshot: Path, tmp_path: Path, service: Service, capsys: Any
) -> None:
    code, out, err = gap(
        snapshot, "--max-episodes", 6, "--max-turns", 1, "--levels", "2,3", "--placebo", "--write",
        "--price-in", 1, "--price-out", 2,
    )  # fmt: skip
    assert code == 0, err
    data = report(tmp_path)
    rows = by_name(data)
    zones = {name: row["zone"] for name, row in rows.items()}
    assert zones == {
        "Easy-v0": "mastered",
        "Hinted-v0": "frontier",
        "Closed-v0": "out-of-reach",
        "Useless-v0": "hint-useless",
    }
    hinted = rows["Hinted-v0"]
    assert hinted["regret"]["value"] == 1.0
    assert hinted["regret"]["method"] == "agresti-min"
    assert hinted["regret"]["interval"][0] > 0.3
    assert hinted["pairs"] == hinted["measured_pairs"] == 6
    assert hinted["plain"]["interval"][1] == pytest.approx(1 - hinted["hinted"]["interval"][0])
    assert hinted["others"]["placebo"]["solve_rate"] == 0.0
    assert rows["Useless-v0"]["others"]["level-3"]["solve_rate"] == 1.0
    assert list(rows["Useless-v0"]["others"]) == ["placebo", "level-3"]
    calls = len(service.asked)
    assert data["spent"]["calls"] == calls
    assert data["spent"]["cost"] == pytest.approx((calls * 10 + calls * 2 * 2) / 1e6)
    for name in ENVIRONMENTS:
        assert f"synthgym/{name}-v0" in out
    assert f"cost {data['spent']['cost']:.4g}" in err
    # Both arms, on the same seeds, with equal decoding.
    _, episodes = read_journal(tmp_path / "out" / "episodes.jsonl")
    plain, second = (
        [e["seed"] for e in episodes if e["env"] == "synthgym/Easy-v0" and e["condition"] == arm]
        for arm in ("plain", "hinted")
    )
    assert sorted(plain) == sorted(second)
    assert len({(b["temperature"], b["max_tokens"]) for b in service.asked}) == 1

    noted = Snapshot.open(snapshot)
    assert noted.version == "1.0.1"
    figures = noted.spec("synthgym/Hinted-v0").metrics["gap"]["other"]
    assert (figures["zone"], figures["regret"], figures["solve_rate"]) == ("frontier", 1.0, 0.0)
    assert "time" not in json.dumps(figures)
    with pytest.raises(SystemExit) as ended:
        synthgym_main(
            ["snapshot", "filter", str(snapshot), str(tmp_path / "lessons"), "--zone", "frontier"]
        )
    assert not ended.value.code
    assert [e.env_id for e in Snapshot.open(tmp_path / "lessons")] == ["synthgym/Hinted-v0"]


def test_faults_are_counted_and_charged_to_nobody(
    gap: Gap, tmp_path: Path, service: Service
) -> None:
    specs = [environment("Broken", broken="True"), environment("Rare", broken="seed % 5 == 0")]
    place = write_snapshot(tmp_path / "faulty", specs, name="faulty", version="1.0.0").path
    assert gap(place, "--max-episodes", 3, "--max-turns", 1)[0] == 0
    rows = by_name(report(tmp_path))
    assert rows["Broken-v0"]["zone"] == "unmeasured"
    assert rows["Broken-v0"]["faults"] == {"episodes": 6, "reproduced_share": 1.0}
    assert rows["Broken-v0"]["measured_pairs"] == 0
    assert rows["Broken-v0"]["plain"]["solve_rate"] is None
    _, episodes = read_journal(tmp_path / "out" / "episodes.jsonl")
    seeds = {e["seed"] for e in episodes}
    sound = sum(seed % 5 != 0 for seed in seeds)
    assert rows["Rare-v0"]["measured_pairs"] == sound
    assert rows["Rare-v0"]["plain"]["solve_rate"] == 1.0


def test_the_same_command_again_plays_nothing_and_says_the_same(
    gap: Gap, snapshot: Path, tmp_path: Path, service: Service
) -> None:
    options = ("--only", "Easy", "--only", "Closed", "--max-episodes", 4, "--max-turns", 1)
    assert gap(snapshot, *options)[0] == 0
    before, page = report(tmp_path), (tmp_path / "out" / "gap.html").read_bytes()
    asked = len(service.asked)
    assert gap(snapshot, *options)[0] == 0
    assert len(service.asked) == asked
    assert report(tmp_path) == before
    assert (tmp_path / "out" / "gap.html").read_bytes() == page
    assert gap(snapshot, *options, out="other")[0] == 0
    assert report(tmp_path, "other") == before  # another process draws the same seeds


def test_an_endpoint_that_dies_half_way_is_gone_on_with(
    gap: Gap, snapshot: Path, tmp_path: Path, service: Service
) -> None:
    options = (
        "--only",
        "Easy",
        "--only",
        "Hinted",
        "--max-episodes",
        4,
        "--concurrency",
        3,
        "--max-turns",
        1,
    )
    whole = gap(snapshot, *options, out="whole")
    assert whole[0] == 0
    seen = len(service.asked)
    service.answers = [agent] * 7 + [answer({"error": "out of memory"}, 500)]  # type: ignore[operator]
    code, out, err = gap(snapshot, *options)
    assert code == 2
    assert "answered 500" in err
    assert "give the same command again to go on" in err
    assert out == ""
    kept = len(read_journal(tmp_path / "out" / "episodes.jsonl")[1])
    assert 0 < kept <= 7
    assert not (tmp_path / "out" / "gap.json").exists()
    service.answers = [agent]
    begun = len(service.asked)
    assert gap(snapshot, *options)[0] == 0
    assert len(service.asked) - begun < seen
    assert report(tmp_path)["environments"] == report(tmp_path, "whole")["environments"]


def test_a_model_that_answers_nothing_has_lost_and_is_told_of(
    gap: Gap, snapshot: Path, tmp_path: Path, service: Service
) -> None:
    service.answers = [reply("")]
    code, out, _ = gap(snapshot, "--only", "Easy", "--max-episodes", 4, "--max-turns", 2)
    assert code == 0
    data = report(tmp_path)
    assert by_name(data)["Easy-v0"]["plain"]["solve_rate"] == 0.0
    assert data["replies"]["unusable_share"] == 1.0
    assert data["environments"][0]["replies"]["unusable"]["empty-reply"] == 16
    assert "100 % of the replies held no usable answer" in out


def test_a_clear_environment_stops_early_and_a_close_one_goes_on(
    gap: Gap, snapshot: Path, tmp_path: Path, service: Service
) -> None:
    def wavering(body: dict[str, Any]) -> Answer:
        said = " ".join(m["content"] for m in body["messages"])
        if "Closed" in said:
            return reply("\\boxed{push}")
        lucky = int(re.findall(r"Door (\d+)", said)[0]) % 2
        arm = "say sesame" in said
        return reply("\\boxed{push}" if lucky == arm else "\\boxed{wait}")

    service.answers = [wavering]
    options = ("--only", "Easy", "--only", "Closed", "--max-episodes", 32, "--half-width", 0.25)
    options += ("--max-turns", 1)
    assert gap(snapshot, *options)[0] == 0
    rows = by_name(report(tmp_path))
    assert rows["Closed-v0"]["pairs"] == 16
    assert rows["Easy-v0"]["pairs"] == 32
    # Together the looks spend 5 %, whichever one an environment stops at.
    spent = [1 - rows[name]["confidence"] for name in ("Closed-v0", "Easy-v0")]
    assert sum(spent) == pytest.approx(0.05)


def test_tasks_of_a_user(gap: Gap, tmp_path: Path, service: Service) -> None:
    path = tmp_path / "mine.jsonl"
    rows = [
        {"id": "word", "prompt": "Which word?", "hint": "say sesame", "answer": "Sesame"},
        {
            "prompt": "Push?",
            "hint": "x",
            "checker": "def check(reply):\n    return 'push' in reply",
        },
        {"id": "bad", "prompt": "?", "hint": "x", "checker": "def check(reply):\n    return 7"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, out, err = gap(path, "--max-episodes", 4, "--json")
    assert code == 0, err
    data = json.loads(out)
    assert data == report(tmp_path)
    zones = {row["id"]: row["zone"] for row in data["environments"]}
    assert zones == {"word": "frontier", "line-2": "mastered", "bad": "unmeasured"}
    assert data["field"]["kind"] == "tasks"


def test_the_page_is_one_file_that_shows_hostile_text(
    gap: Gap, tmp_path: Path, service: Service
) -> None:
    path = tmp_path / "mine.jsonl"
    hostile = "</th><script>alert(1)</script>\u202e"
    path.write_text(json.dumps({"id": hostile, "prompt": hostile, "hint": "x", "answer": "y"}))
    code, out, err = gap(path, "--max-episodes", 2)
    assert code == 0, err
    page = (tmp_path / "out" / "gap.html").read_text()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "\u202e" not in page + out
    assert "http" not in re.sub(r'http-equiv="[^"]+"', "", page)
    assert "prefers-color-scheme: dark" in page
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--only", "Esy"), "did you mean"),
        (("--environments", 0), "--environments must be at least 1"),
        (("--half-width", 0), "half_width must lie in"),
        (("--max-episodes", 1), "max_episodes must be at least 2"),
        (("--levels", "2;3"), "--levels must be hint levels such as 1,2,3"),
        (("--levels", "4"), "a hint level is one of"),
        (("--mastered", 0.05), "zones need"),
        (("--temperature", -1), "temperature must lie in"),
        (("--seed", -1), "seed must be at least 0"),
        (("--backend", "transformer"), "did you mean 'transformers'"),
        (("--backend", "vllm"), "needs --endpoint"),
        (("--concurrency", 0), "--concurrency must be at least 1"),
        (("--price-in", -1), "--price-in must be a price"),
    ],
)
def test_a_mistake_is_told_before_anything_is_asked(
    gap: Gap, snapshot: Path, tmp_path: Path, service: Service, options: Any, told: str
) -> None:
    code, _, err = gap(snapshot, *options)
    assert code == 2
    assert told in err
    assert service.asked == []
    assert not (tmp_path / "out").exists()


def test_mistakes_about_places(gap: Gap, snapshot: Path, tmp_path: Path, service: Service) -> None:
    assert "cannot be read" in gap(tmp_path / "no.jsonl")[2]
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("mine")
    assert "holds no episodes.jsonl" in gap(snapshot)[2]
    code, _, err = gap(snapshot, model="othr", out="new")
    assert (code, "does not serve 'othr'" in err) == (2, True)
    assert gap(snapshot, "--only", "Easy", "--max-episodes", 2, out="new")[0] == 0
    code, _, err = gap(snapshot, "--only", "Easy", "--max-episodes", 2, "--seed", 1, out="new")
    assert (code, "seed was 0, now it is 1" in err) == (2, True)
    tasks = tmp_path / "t.jsonl"
    tasks.write_text('{"prompt": "x", "hint": "y", "answer": "z"}\n')
    assert "a file of tasks is none" in gap(tasks, "--write", out="t")[2]
    # Of a model that is not served: whatever becomes of the check, nothing can be written.
    code, _, err = gap("bundled", "--write", out="t", model="othr")
    assert (code, "'bundled' belongs to the package" in err) == (2, True)
    assert "--temperature 0" in gap(tasks, "--temperature", 0, out="t")[2]
    assert "--levels" in gap(tasks, "--levels", "1", out="t")[2]
    assert "did you mean 'line-1'" in gap(tasks, "--only", "line-2", out="t")[2]


def test_ctrl_c_ends_at_once_and_keeps_what_is_done(
    gap: Gap, snapshot: Path, tmp_path: Path, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spade_loop.gap.display import GapDisplay

    played = GapDisplay.played
    done = 0

    def interrupted(self: GapDisplay, episodes: int, usage: Any) -> None:
        nonlocal done
        played(self, episodes, usage)
        done += episodes
        if done == 4:
            raise KeyboardInterrupt

    def slow_later(body: dict[str, Any]) -> Answer:
        if len(service.asked) > 12:
            time.sleep(10)
        return agent(body)

    service.answers = [slow_later]
    monkeypatch.setattr(GapDisplay, "played", interrupted)
    begun = time.monotonic()
    code, _, err = gap(snapshot, "--only", "Hinted", "--max-episodes", 16, "--concurrency", 4)
    assert code == 130
    assert "give the same command again to go on" in err
    assert time.monotonic() - begun < 9
    assert len(read_journal(tmp_path / "out" / "episodes.jsonl")[1]) == 4


def test_a_model_on_this_machine(
    tiny_model: Path,
    snapshot: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def gap(out: str) -> dict[str, Any]:
        line = f"gap {snapshot} --model {tiny_model} --out {tmp_path / out} --only Easy --max-episodes 3"
        monkeypatch.setattr(
            sys, "argv", ["spade-loop", *line.split(), "--max-turns", "1", "--max-tokens", "4"]
        )
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code, capsys.readouterr().err
        return report(tmp_path, out)

    first, second = gap("first"), gap("second")
    # What else is in the batch does not matter, nor in which order threads ask.
    assert first == second
    assert first["spent"]["calls"] == 6
    assert first["spent"]["prompt_tokens"] > 6 * 50
    assert first["model"]["backend"] == "transformers"
