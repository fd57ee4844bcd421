"""Robustness: whatever text comes, a step gives an answer, and text that is no command earns nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import Final, NamedTuple

from synthgym.agents import offered, scripted
from synthgym.contract import REWARD_TOLERANCE
from synthgym.validation.plays import COSTLY, Cast, Play, Trial
from synthgym.validation.reasons import Reason
from synthgym.validation.report import Finding

NONSENSE: Final = (
    "",
    "qzxvkj",
    "\u202e\u05e9\u05e4\u05ea \u0632\u0631\u202c",  # right to left
    "?!?",
    " \t\r\n",
    "vwxq zzkj xqv",
    "\U0001f701\U0001f9e9\U0001f468\u200d\U0001f373",  # outside of the first 65,536 characters
    "#%&/()=+*~^",
    "\x00\x01\x07\x1b\x7f",
    "x\u0327\u031b\u0356z\u0302\u032dq\u0337\u0321",  # combining marks
    "<>{}[]|\\",
    "qxzj " * 200_000,  # a megabyte; the supervisor cuts it
    "\ufb04 \u00df \u0130 \u01c5 \u0149",  # of another length in another case
    "Zqx. Vkjw! Qqzx?",
    "\u200b\u200d\u2060\ufeff",  # without any width
    "\u4e5c\u5622\u5514\u8a72",
    "\n\n\n",
    "\u2026",
    "xqzv wkjq " * 40,
    "\ufdfd \u0bf9 \u06de",
)
"""Text that is a command nowhere: no word of a language that rules are told in, no digit, no letter alone."""
_IDLE_TURNS: Final = 12
"""Texts of an errand of nonsense. Five of them send each text about three times."""

MODEL_TEXTS: Final = (
    # numbers to str.isdigit, or to int, but not to both; and numbers that are too much
    "\u00b2",
    "\u0663",
    "\uff11\uff12",
    "\u00bd",
    "-1",
    "9" * 400,
    "nan",
    "1e999",
    "1/0",
    "0x1F",
    "1 2 3 4 5 6 7 8 9",
    "\ud800\udfff",  # lone surrogates; what arrives is "??"
    # what a chat leaves around an action
    "\\boxed{a}\\boxed{b}",
    "\\boxed{\\frac{1}{2}",
    "<|im_start|>assistant\nlook<|im_end|>",
    "</s><s>[INST] look [/INST]",
    "<think>\nFirst I look.\n</think>\n\nlook",
    "Sure! I will look first, because it's safe: look.",
    '{"action": "look", "arguments": {"at": null, "times": 1e400}}',
    '{"action": [',
    "[" * 4096,
    "# Plan\n\n1. **look**\n2. `take it`\n\n| a | b |\n|---|---|",
    "```text\nlook\n```",
    # what breaks a format, a pattern, a path, or a command that is taken apart
    "\"look\" 'at' \u201cit\u201d",
    "{0} {name} {x!r:>9} {",
    "%s %d %(name)s %",
    "*(+[?\\",
    "../../etc/passwd",
    "C:\\new\\table",
    "a=b=c",
    "a:b:c",
    "a,b,,c,",
    "(1, 2",
    "-",
    "a -> b -> ",
    "look; take\nopen",
    "look " * 800,
    "None",
)
"""Text that models send, well meant or not."""

HOSTILE: Final = (
    "\u00b2",
    "-1",
    "9" * 400,
    "",
    "1000000000",
    "nan",
    "0",
    "1e308",
    "\u0663",
    "1/0",
    "inf",
    "1" + "0" * 30,
    "1.5",
)
"""What comes in the place of a number."""
_NUMBER: Final = re.compile(r"\d+")
_SHAPES: Final = 4
"""Kinds of commands of a witness that are mutated, and as many that are on offer."""
_MUTATED: Final = 40
"""Mutated commands that are sent after a reset."""
_ON_THE_WAY: Final = 8
"""Mutated commands that are sent at one place of a witness, and the other texts on top."""
_TEXTS_ON_THE_WAY: Final = 4
_ROUNDS: Final = 4
"""Episodes for one errand. Where any text ends the episode, the last texts are not sent."""


@dataclass(frozen=True, slots=True)
class _Errand:
    """Texts to be sent one after the other, from where `way` leads."""

    seed: int
    texts: tuple[str, ...]
    way: tuple[str, ...] = ()
    idle: bool = False
    """Nothing but nonsense."""

    def cast(self) -> Cast:
        """Who sends the texts that are left."""
        return Cast(self.seed, scripted((*self.way, *self.texts)))

    def after(self, play: Play) -> _Errand:
        """What is left when `play` has sent the first of the texts."""
        sent = max(1, len(play.actions) - len(self.way))
        return replace(self, texts=self.texts[sent:])


class _Sent(NamedTuple):
    """An episode in which strange text was sent."""

    errand: _Errand
    play: Play


def check_robustness(trial: Trial) -> Iterator[Finding]:
    """Send nonsense, texts that models send, and commands with something wrong in them.

    All in one go, since a step costs hardly more than the way to the worker and back.
    """
    sent = _send(trial, [*_nonsense(trial), *_after_reset(trial), *_on_the_way(trial)])
    idle = [one.play for one in sent if one.errand.idle]
    trial.idle += idle
    trial.kept += idle[:2]
    yield from _paid(idle)
    seen: set[Reason] = set()
    for one in sent:
        for finding in _against(trial, one):
            if finding.reason not in seen:
                seen.add(finding.reason)
                yield finding


def _send(trial: Trial, errands: Sequence[_Errand]) -> list[_Sent]:
    """Run all errands: an episode that survives a text goes on with the next, else another one does."""
    sent: list[_Sent] = []
    for _ in range(_ROUNDS):
        plays = trial.play([errand.cast() for errand in errands], judged=False)
        sent += map(_Sent, errands, plays)
        if any(play.fault is not None for play in plays):
            break  # one is enough to refuse it
        left = [errand.after(play) for errand, play in zip(errands, plays, strict=True)]
        errands = [errand for errand in left if errand.texts]
        if not errands:
            break
    return sent


def _paid(idle: Sequence[Play]) -> Iterator[Finding]:
    """Nonsense is paid more than once: on one seed or several, it makes no difference.

    A step that wins does not count here: that is what agents that understand nothing are for, and
    `interaction_checks` looks whether they have found it.
    """
    paid = [
        (play, turn)
        for play in idle
        for turn, reward in enumerate(play.rewards, 1)
        if reward > REWARD_TOLERANCE and not (play.success and turn == len(play.steps))
    ]
    if len(paid) > 1:
        play, turn = paid[0]
        texts = len({play.actions[turn - 1] for play, turn in paid})
        detail = f"{len(paid)} times, for {texts} different texts; here turn {turn}"
        yield play.evidence(Reason.NONSENSE_PAID, detail, turn)


def _nonsense(trial: Trial) -> Iterator[_Errand]:
    """Episodes of nothing but nonsense, each beginning with another text."""
    turns = min(_IDLE_TURNS, 2 * trial.record.max_turns)
    for number, seed in enumerate(trial.few):
        texts = NONSENSE[4 * number :] + NONSENSE[: 4 * number]
        yield _Errand(seed, texts[:turns], idle=True)


def _after_reset(trial: Trial) -> Iterator[_Errand]:
    """Commands of that seed with something wrong in them, and other texts, dealt out to a few seeds."""
    for number, seed in enumerate(trial.few):
        commands = _shapes(trial.witnesses[seed]) + _shapes(offered(trial.first[seed].observation))
        mutants = _dealt(commands)[:_MUTATED]
        deal = slice(number, None, len(trial.few))
        yield _Errand(seed, (*mutants[deal], *MODEL_TEXTS[deal]))


def _on_the_way(trial: Trial) -> Iterator[_Errand]:
    """Half way, and before the last action: the action that comes next, with something wrong in it."""
    for number, seed in enumerate(trial.few[:4]):
        actions = trial.witnesses[seed]
        place = len(actions) // 2 if number < 2 else len(actions) - 1
        if place > 0:
            mutants = _mutants(actions[place], actions[place - 1])[number % 2 :: 2][:_ON_THE_WAY]
            texts = MODEL_TEXTS[number :: len(MODEL_TEXTS) // _TEXTS_ON_THE_WAY]
            yield _Errand(seed, (*mutants, *texts), actions[:place])


def _against(trial: Trial, sent: _Sent) -> Iterator[Finding]:
    """What a play says against the environment; a step that failed on strange text is called so."""
    for finding in sent.play.findings():
        found = finding
        if finding.reason in (Reason.STEP_RAISED, Reason.STEP_TYPE):
            found = _fragile(trial, sent)
        yield replace(found, actions=tuple(_utf8(action) for action in found.actions))


def _fragile(trial: Trial, sent: _Sent) -> Finding:
    """The shortest evidence: the text alone where that is enough, else the whole play."""
    text = sent.play.actions[-1]
    alone = trial.play([Cast(sent.play.seed, scripted([*sent.errand.way, text]))], judged=False)[0]
    shown = sent.play if alone.fault is None or alone.fault.kind in COSTLY else alone
    what = "" if shown.fault is None else f"{shown.fault.kind}: {shown.fault.detail}"
    return shown.evidence(Reason.FRAGILE_STEP, f"on {_utf8(text[:60])!r}: {what}")


def _shapes(commands: Iterable[str]) -> list[str]:
    """The first command of each kind, told by first word and number of words; a few."""
    found: dict[tuple[str, int], str] = {}
    for command in commands:
        words = _NUMBER.sub("#", command).split()
        if words:
            found.setdefault((words[0], len(words)), command)
    return list(found.values())[:_SHAPES]


def _dealt(commands: Sequence[str]) -> list[str]:
    """The mutants of all commands, those that matter most first, without repeats."""
    others = [*commands[1:], *commands[:1]]
    mutants = [_mutants(*pair) for pair in zip(commands, others, strict=True)]
    return list(dict.fromkeys(_there(chain.from_iterable(zip_longest(*mutants)))))


def _mutants(command: str, other: str) -> list[str]:
    """`command` with something wrong in it: in turn a number, and how it is put together."""
    words, tail = command.split(), other.split()[-1:]
    if not words:
        return []
    spans = [match.span() for match in _NUMBER.finditer(command)]
    numbers = []
    for number, value in enumerate(HOSTILE if spans else ()):
        start, end = spans[number % len(spans)]
        numbers.append(command[:start] + value + command[end:])
    built = [
        " ".join(words[:-1]),
        " ".join([*words[:-1], "\u00b2"]),
        f"{command} {words[-1]}",
        " ".join([*words[:-1], *tail]),
        words[0],
        f"{command}\n{other}",
        command.upper(),
        f'"{command}."',
        " ".join([*words[:-1], "9" * 400]),
        ",".join(words),
    ]
    return list(_there(chain.from_iterable(zip_longest(numbers, built))))


def _there(texts: Iterable[str | None]) -> Iterator[str]:
    return (text for text in texts if text is not None)


def _utf8(text: str) -> str:
    """As the environment got it: without lone surrogates, which no report could carry either."""
    return text.encode("utf-8", "replace").decode()
