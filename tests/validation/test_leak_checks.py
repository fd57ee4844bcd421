from __future__ import annotations

from collections.abc import Iterator

import pytest

from synthgym.sandbox import Pool
from synthgym.validation import Reason, Report, validate

VAULT = '''"""Vault. Press the buttons from heavy to light, then turn the dial to the product of the two numbers."""

import random

BUTTONS = ("amber", "brass", "coral", "denim", "ebony")


class VaultEnv:
    max_turns = 12

    def reset(self, seed):
        self.seed, self.turn = seed, 0
        rng = random.Random(seed)
        self.weight = dict(zip(BUTTONS, rng.sample(range(300, 999), 5), strict=True))
        self.order = sorted(BUTTONS, key=lambda button: -self.weight[button])
        self.left, self.right = rng.randint(31, 79), rng.randint(31, 79)
        self.code = self.left * self.right
        self.name = rng.choice("Fjord Gable Hazel Islet Jetty Knoll Ledge Mound".split())
        self.pressed = []
        listed = ", ".join(f"{button} {self.weight[button]}" for button in BUTTONS)
        return f"Buttons: {listed}. Numbers: {self.left}, {self.right}. {FIRST}" + self.commands(), {}

    def commands(self):
        return f"\\nPressed: {len(self.pressed)}. Commands: press <button>, turn <number>."

    def step(self, action):
        self.turn += 1
        words = action.split()
        left = [button for button in self.order if button not in self.pressed]
        if len(words) == 2 and words[0] == "press" and words[1] in left:
            if words[1] != left[0]:
                return f"It locks. {LOSS}", 0.0, True, False, {}
            self.pressed.append(words[1])
            return "Click." + self.commands(), 0.0, False, False, {}
        if len(words) == 2 and words[0] == "turn" and not left:
            won = words[1] == str(self.code)
            return f"It stops. {LOSS}", float(won), True, False, {}
        return f"Nothing moves. {NONSENSE}" + self.commands(), 0.0, False, False, {}

    def hint(self, level=2):
        return [f"{HINT1}", f"{HINT2}", f"{HINT3}"][level - 1]

    def solution(self):
        return [*(f"press {button}" for button in self.order), f"turn {self.code}"]
'''
TEXTS = {
    "FIRST": "It is dark.",
    "LOSS": "Steps come near.",
    "NONSENSE": "You wait.",
    "HINT1": "Weigh before you press.",
    "HINT2": "Rank the buttons, and multiply once all are pressed.",
    "HINT3": "The dial wants {self.code}, they say.",
}
ORDER = "{', '.join(self.order)}"
SCRIPT = "{', then '.join(self.solution())}"


def vault(**texts: str) -> str:
    """The source with these texts (parts of f-strings) in their places."""
    source = VAULT
    for name, text in (TEXTS | texts).items():
        source = source.replace(f"{{{name}}}", text)
    return source


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=2, sources_per_worker=40) as pool:
        yield pool


def leaks(report: Report) -> set[Reason]:
    """What the gates under test have found."""
    assert report.gates["hint-texts"] != "skipped", [str(finding) for finding in report.findings]
    return {
        reason
        for reason in report.reasons
        if reason.endswith("-in-observation")
        or reason in (Reason.HINT_NAMES_ANSWER, Reason.HINT_IS_SCRIPT)
    }


LEAKING = [
    ("ANSWER_IN_OBSERVATION", {"NONSENSE": "It wants {self.code}."}),
    ("ANSWER_IN_OBSERVATION", {"NONSENSE": "It wants {' '.join(str(self.code))}."}),
    ("ANSWER_IN_OBSERVATION", {"NONSENSE": "Not {self.code}{self.turn}, nor 0{self.code}."}),
    ("WITNESS_IN_OBSERVATION", {"FIRST": f"Yesterday: {SCRIPT}."}),
    ("WITNESS_IN_OBSERVATION", {"FIRST": "[{', '.join(map(repr, self.solution()))}]"}),
    (
        "WITNESS_IN_OBSERVATION",
        {"FIRST": "{chr(10).join(f'{i}. {a}' for i, a in enumerate(self.solution(), 1))}"},
    ),
    ("WITNESS_IN_OBSERVATION", {"FIRST": "{' -> '.join(self.solution()).upper()}"}),
    ("HINT_IN_OBSERVATION", {"FIRST": f"{TEXTS['HINT2'].upper()} Beware."}),
    ("HINT_IN_OBSERVATION", {"NONSENSE": "Think: {self.hint().replace(' ', chr(10))}"}),
    (
        "HINT_IN_OBSERVATION",
        {"NONSENSE": "Psst: {self.hint(3)[:-1]}!", "HINT3": "Take the road by {self.name}."},
    ),
    ("HINT_NAMES_ANSWER", {"HINT2": "Multiply: {self.left} times {self.right} is {self.code}."}),
    ("HINT_NAMES_ANSWER", {"HINT1": "It is {self.code}."}),
    ("HINT_NAMES_ANSWER", {"HINT2": "Its digits: {', '.join(str(self.code))}."}),
    (
        "HINT_NAMES_ANSWER",
        {"HINT2": "{self.code if self.seed % 5 == 0 else 'Multiply, and be quick.'}"},
    ),
    ("HINT_NAMES_ANSWER", {"HINT2": f"From heavy to light: {ORDER}."}),
    ("HINT_NAMES_ANSWER", {"HINT2": "{self.code} {self.code + 1} {self.code + 2}, one of these."}),
    (
        "HINT_IS_SCRIPT",
        {
            "HINT2": "{' and after that '.join(self.solution()[:-1])}, and after all turn {self.code}."
        },
    ),
    ("HINT_IS_SCRIPT", {"HINT1": f"Try: {SCRIPT}!"}),
]
FINE: list[dict[str, str]] = [
    {},
    {"LOSS": "It wanted {self.code}. The way was: " + SCRIPT + ". " + TEXTS["HINT2"]},
    {"NONSENSE": "The clock shows {self.turn}, and a voice counts {self.left + self.right}."},
    {"NONSENSE": "You hear {self.seed * 37 % 900}, {self.seed * 59 % 900} and {self.turn * 71}."},
    {"FIRST": f"Goal: all of amber, brass, coral, denim, ebony. {TEXTS['HINT1']}"},
    {
        "FIRST": "You may press amber, press brass, press coral, press denim, press ebony, or turn 1."
    },
    {"HINT3": f"Do {SCRIPT}."},
    {
        "HINT2": "The numbers are {self.left} and {self.right}; {self.order[0]} is the heaviest button."
    },
    {
        "HINT2": "Compare {self.order[4]} with {self.order[1]}, then multiply {self.left} by ten first."
    },
    {
        "HINT2": "The product has {len(str(self.code))} digits and lies above {self.code // 1000 * 1000}."
    },
    {"HINT2": "A friend lives in {self.name} street. Press heavy ones first."},
    {"HINT2": "First press the heaviest, then press the next, and turn to the product at last."},
    {"HINT2": "Of amber, brass, coral, denim, ebony the first is not always first."},
    {"HINT2": "Short one.", "NONSENSE": "Short one. "},
]


@pytest.mark.parametrize(("reason", "texts"), LEAKING, ids=lambda value: str(value)[:40])
def test_a_leak_is_found(reason: str, texts: dict[str, str], pool: Pool) -> None:
    found = leaks(validate(vault(**texts), pool=pool))
    assert Reason[reason] in found
    assert found <= {Reason[reason], Reason.HINT_NAMES_ANSWER}  # a script names the answer, too


@pytest.mark.parametrize("texts", FINE, ids=lambda value: str(value)[:40])
def test_what_tells_nothing_is_no_leak(texts: dict[str, str], pool: Pool) -> None:
    report = validate(vault(**texts), pool=pool)
    assert not leaks(report), [str(finding) for finding in report.findings]


def test_the_evidence_shows_what_is_told_and_where(pool: Pool) -> None:
    source = vault(
        NONSENSE="It wants {self.code}.", HINT2="Turn to {self.code}.", FIRST=f"Log: {SCRIPT}."
    )
    report = validate(source, pool=pool)
    (told,) = (item for item in report.findings if item.reason is Reason.WITNESS_IN_OBSERVATION)
    assert (told.seed, told.actions, told.detail) == (0, (), "on 20 of 20 seeds")
    assert "Log: press" in told.seen
    assert leaks(report) == {Reason.WITNESS_IN_OBSERVATION}  # what is known is not leaked again

    report = validate(vault(NONSENSE="It wants {self.code}."), pool=pool)
    (told,) = (item for item in report.findings if item.reason is Reason.ANSWER_IN_OBSERVATION)
    assert "here it names" in told.detail
    assert not "".join(told.actions[:1]).startswith(("press", "turn"))
    assert "It wants" in told.seen

    report = validate(vault(HINT2="Turn to {self.code}."), pool=pool)
    (told,) = (item for item in report.findings if item.reason is Reason.HINT_NAMES_ANSWER)
    assert told.detail.startswith("level 2, on 20 of 20 seeds")
    assert told.actions[-1] in told.seen.lower().replace("turn to", "turn").rstrip(".")


def test_what_time_shows_to_everybody_is_there_to_be_remembered(pool: Pool) -> None:
    called = (
        "{[7, self.code, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27][min(self.turn, 12) - 1]} is called."
    )
    source = vault(NONSENSE=called).replace('return "Click."', f'return f"Click. {called}"')
    assert not leaks(validate(source, pool=pool))
    # Who presses at once is through before it is called; then only idlers are told.
    late = called.replace("[7, self.code,", "[7, 8, 5, 5, 5, 5, 5, self.code,")
    source = vault(NONSENSE=late).replace('return "Click."', f'return f"Click. {late}"')
    assert leaks(validate(source, pool=pool)) == {Reason.ANSWER_IN_OBSERVATION}


def test_texts_that_are_written_to_take_time_take_little(pool: Pool) -> None:
    long = "{' '.join(str(number * (self.seed + 3)) for number in range(9000))}"
    report = validate(vault(HINT2=long, HINT1=long, NONSENSE="{'| 1 ' * 3000}"), pool=pool)
    assert report.gates["hint-texts"] != "skipped"
