from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from synthgym.sandbox import Pool
from synthgym.validation import Reason, validate
from synthgym.validation.gates import GATES
from synthgym.validation.honesty_checks import MAX_STEPS, check_exploits
from synthgym.validation.plays import Cast, Play, Trial
from synthgym.validation.report import Finding

WORKSHOP = '''"""Workshop. Make the part ready as the rules say, then set the dial to the sum of the two numbers."""

import random


class WorkshopEnv:
    max_turns = 30

    def reset(self, seed):
        rng = random.Random(seed)
        self.left, self.right = rng.randint(111, 499), rng.randint(111, 499)
        self.needed = 6
        self.on, self.count, self.place, self.best, self.paid = False, 0, "yard", 0, 0.0
        return f"Set the dial to {self.left} plus {self.right}. " + self.commands(), {}

    def commands(self):
        return "Commands: COMMANDS, set <number>."

    def step(self, action):
        words = action.split()
        if words[:1] == ["set"] and READY:
            if words[1:] == [str(self.left + self.right)]:
                return "Done.", 1.0 - self.paid, True, False, {}
            return "It breaks.", 0.0, True, False, {}
        note, pay = self.work(words)
        if note == "broken":
            return "It breaks.", 0.0, True, False, {}
        self.paid += pay
        return f"{note} Paid so far: {self.paid:.2f}. " + self.commands(), pay, False, False, {}

    def work(self, words):
WORK
        return "Nothing comes of that.", 0.0

    def hint(self, level=2):
        return "Add the two numbers while you work."

    def solution(self):
        return [SOLUTION, f"set {self.left + self.right}"]
'''


def workshop(work: str, commands: str, solution: str, ready: str, turns: int = 30) -> str:
    """A source whose actions are paid as the lines of `work` say: they return (note, pay)."""
    lines = "\n".join(f"        {line}" for line in work.strip("\n").split("\n"))
    source = WORKSHOP.replace("WORK\n", f"{lines}\n").replace("COMMANDS", commands)
    source = source.replace("SOLUTION", solution).replace("READY", ready)
    return source.replace("max_turns = 30", f"max_turns = {turns}")


FARMS = {
    "the same action again": workshop(
        """
if words == ["polish"]:
    self.count += 1
    return "It shines.", 0.03
""",
        "polish, rest",
        '"polish"',
        "self.count",
    ),
    "a switch that is paid when it goes on": workshop(
        """
if words == ["switch"]:
    self.on = not self.on
    return ("On.", 0.05) if self.on else ("Off.", 0.0)
""",
        "switch, rest",
        '"switch"',
        "self.on",
    ),
    "doing and undoing": workshop(
        """
if words == ["load", "crate"] and not self.on:
    self.on = True
    return "Loaded.", 0.05
if words == ["unload"] and self.on:
    self.on = False
    return "Unloaded.", 0.0
""",
        "load crate, look",  # the way back is not offered
        '"load crate"',
        "self.on",
    ),
    "undoing that takes back less than was paid": workshop(
        """
if words == ["clamp"] and not self.on:
    self.on = True
    return "Clamped.", 0.06
if words == ["undo"] and self.on:
    self.on = False
    return "Undone.", -0.04
""",
        "clamp, undo",
        '"clamp"',
        "self.on",
    ),
    "a round of three": workshop(
        """
if words == ["walk", "out"]:
    self.place, self.count = "yard", 0
    return "You are in the yard.", 0.0
if words == ["take", "log"] and self.place == "yard":
    self.count = 1
    return "You have a log.", 0.0
if words == ["carry", "log"] and self.count:
    self.place, self.count, self.on = "shop", 0, True
    return "You put it down in the shop.", 0.05
""",
        "walk out, take log, carry log",
        '"walk out", "take log", "carry log"',
        "self.on",
    ),
    "too few turns for circles and the goal": workshop(
        """
if words == ["polish"]:
    self.count += 1
    return "It shines.", 0.03
if words in (["oil"], ["file"], ["drill"]):
    return "Good.", 0.0
""",
        "polish, oil, file, drill",
        '"polish", "oil", "file", "drill", "oil"',
        "self.count",
        7,
    ),
}
FAIR = {
    "each part is paid once": workshop(
        """
if words == ["polish"]:
    self.count += 1
    return "It shines.", 0.05 if self.count == 1 else 0.0
""",
        "polish, rest",
        '"polish"',
        "self.count",
    ),
    "undoing takes back": workshop(
        """
if words == ["load", "crate"] and not self.on:
    self.on = True
    return "Loaded.", 0.05
if words == ["unload", "crate"] and self.on:
    self.on = False
    return "Unloaded.", -0.05
""",
        "load crate, unload crate",
        '"load crate"',
        "self.on",
    ),
    "the same action makes progress that shows": workshop(
        """
if words == ["climb"] and self.count < self.needed:
    self.count += 1
    return f"You stand on rung {self.count}.", 0.05
""",
        "climb, rest",
        '*["climb"] * 6',
        "self.count == self.needed",
    ),
    "progress that does not show, and too much of it breaks": workshop(
        """
if words == ["pump"]:
    self.count += 1
    return ("broken", 0.0) if self.count > self.needed else ("It groans.", 0.05)
""",
        "pump, rest",
        '*["pump"] * 6',
        "self.count == self.needed",
    ),
    "progress that does not show, in few turns": workshop(
        """
if words == ["pump"] and self.count < self.needed:
    self.count += 1
    return "It groans.", 0.05
""",
        "pump, rest",
        '*["pump"] * 6',
        "self.count == self.needed",
        8,
    ),
    "progress by turns": workshop(
        """
if words == ["left"] and not self.on:
    self.on = True
    self.count += 1
    return "Left.", 0.05 if self.count <= self.needed else 0.0
if words == ["right"] and self.on:
    self.on = False
    return "Right.", 0.0
""",
        "left, right",
        '*["left", "right"] * 6',
        "self.count >= self.needed",
    ),
    "a new best is paid, and only what is better than before": workshop(
        """
if words in (["up"], ["down"]):
    self.count = max(0, self.count + (1 if words == ["up"] else -1))
    gain = max(0, min(self.count, 3) - self.best)
    self.best += gain
    return f"Height {self.count}.", 0.05 * gain
""",
        "up, down",
        '"up", "up", "up"',
        "self.count >= 3",
    ),
    "nothing is paid before the end": workshop(
        """
if words == ["polish"]:
    self.count += 1
    return "It shines.", 0.0
""",
        "polish, rest",
        '"polish"',
        "self.count",
    ),
}


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=2, sources_per_worker=40) as pool:
        yield pool


@pytest.mark.parametrize("name", FARMS)
def test_a_circle_that_is_paid_again_and_again_is_found(name: str, pool: Pool) -> None:
    report = validate(FARMS[name], pool=pool)
    assert Reason.REWARD_FARMED in report.reasons, [str(finding) for finding in report.findings]


@pytest.mark.parametrize("name", FAIR)
def test_progress_is_no_circle(name: str, pool: Pool) -> None:
    report = validate(FAIR[name], pool=pool)
    assert report.gates["exploits"] == "passed", [str(finding) for finding in report.findings]


def test_the_evidence_is_the_way_there_and_the_circles(pool: Pool) -> None:
    report = validate(FARMS["undoing that takes back less than was paid"], pool=pool)
    (finding,) = (item for item in report.findings if item.reason is Reason.REWARD_FARMED)
    assert finding.actions == ("clamp", *("undo", "clamp") * 3)
    assert "'undo', 'clamp' after turn 1 pays 0.02 again, 3 times" in finding.detail
    assert finding.seen.startswith("Clamped.")
    assert finding.seed == 0


def test_nothing_is_played_without_partial_rewards_and_little_with_them(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[int] = []

    def counted(trial: Trial) -> Iterator[Finding]:
        play = trial.play

        def counting(cast: Sequence[Cast], *, judged: bool = True) -> list[Play]:
            plays = play(cast, judged=judged)
            steps.append(sum(len(one.steps) for one in plays))
            return plays

        monkeypatch.setattr(trial, "play", counting)
        yield from check_exploits(trial)
        monkeypatch.setattr(trial, "play", play)

    gates = tuple(
        replace(gate, check=counted) if gate.name == "exploits" else gate for gate in GATES
    )
    monkeypatch.setattr("synthgym.validation.pipeline.GATES", gates)
    assert validate(FAIR["nothing is paid before the end"], pool=pool).gates["exploits"] == "passed"
    assert sum(steps) == 0
    for name in [name for name in FAIR if name != "nothing is paid before the end"]:
        steps.clear()
        validate(FAIR[name], pool=pool)
        assert 0 < sum(steps) <= MAX_STEPS, name
