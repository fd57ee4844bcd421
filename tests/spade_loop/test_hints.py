"""Hints that the model writes: asked for, checked, asked for once more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spade_loop.chat import ChatFormat
from spade_loop.completers import ScriptedSampler
from spade_loop.hints import MAX_WORDS, HintWriter, placebo
from synthgym.registry import Snapshot, bundled_root
from synthgym.sandbox import Pool
from synthgym.spec import SynthEnvSpec
from synthgym.validation import Reason, check_hint

GOOD = "Ask for everything that is hidden before you commit to anything."


@pytest.fixture(scope="module")
def specs() -> list[SynthEnvSpec]:
    snapshot = Snapshot.open(bundled_root())
    return [snapshot.spec(entry.digest) for entry in snapshot][:2]


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=2) as pool:
        yield pool


Saying = Callable[..., ScriptedSampler]


@pytest.fixture
def saying(chat: ChatFormat, tokenizer: Any) -> Saying:
    def make(*replies: str) -> ScriptedSampler:
        left = iter(replies)
        return ScriptedSampler(chat, lambda *_: next(left), tokenizer.eos_token_id)

    return make


def test_a_hint_is_written_from_the_source_and_tidied(
    specs: list[SynthEnvSpec], saying: Saying, chat: ChatFormat
) -> None:
    writer = HintWriter(400, lambda _spec, _hint: "")
    sampler = saying(f'<think>mm</think>Hint: "{GOOD}"', f"{GOOD}\n  Really.")
    one, two = writer.write(sampler, specs, (1, 2))
    assert (one.text, two.text) == (GOOD, f"{GOOD} Really.")
    assert (one.refused, two.refused) == ("", "")
    assert [w.digest for w in (one, two)] == [s.digest for s in specs]
    prompt = chat.decode(one.prompt_ids)
    assert specs[0].record.source.strip()[:60] in prompt
    assert one.completion.ids


def test_a_hint_that_tells_too_much_is_asked_for_once_more(
    specs: list[SynthEnvSpec], saying: Saying
) -> None:
    def check(_spec: SynthEnvSpec, hint: str) -> str:
        return "it tells" if "secret" in hint else ""

    calls = HintWriter(400, check).write(saying("secret", GOOD, "secret"), specs, (1,))
    assert [(c.text, c.refused) for c in calls] == [
        ("secret", "it tells"),
        (GOOD, ""),
        ("secret", "it tells"),
    ]


@pytest.mark.parametrize(
    ("reply", "tokens", "problem"),
    [("x " * (MAX_WORDS + 1), 4000, "words, more than"), (GOOD * 9, 5, "the token limit cut it")],
)
def test_hints_that_are_too_long_are_refused(
    reply: str, tokens: int, problem: str, specs: list[SynthEnvSpec], saying: Saying
) -> None:
    calls = HintWriter(tokens, lambda *_: "").write(saying(reply, reply), specs[:1], (1,))
    assert len(calls) == 2
    assert all(problem in c.refused for c in calls)


@given(st.lists(st.text("abc", min_size=1, max_size=5), max_size=150))
def test_a_placebo_has_as_many_words(words: list[str]) -> None:
    text = placebo(" ".join(words))
    assert len(text.split()) == len(words)
    assert text == placebo(" ".join(words))


# --- synthgym.validation.check_hint ---

VAULT = '''"""Find the code of a vault: ask the guard, then say it."""

import random


class VaultEnv:
    max_turns = 6

    def reset(self, seed):
        self.code = str(random.Random(seed).randrange(1000, 9999))
        self.asked = False
        return "A vault and a guard. Commands: ask, open <code>.", {}

    def step(self, action):
        if action == "ask":
            self.asked = True
            return f"The guard whispers {self.code}.", 0.0, False, False, {}
        if action == f"open {self.code}" and self.asked:
            return "It opens.", 1.0, True, False, {}
        return "Nothing. Commands: ask, open <code>.", 0.0, False, False, {}

    def hint(self, level=2):
        return "The guard can be asked."

    def solution(self):
        return ["ask", f"open {self.code}"]
'''
FIXED = VAULT.replace("str(random.Random(seed).randrange(1000, 9999))", '"4711"')


def record(source: str) -> Any:
    from synthgym.spec import EnvRecord

    return EnvRecord(source=source, entry="VaultEnv", max_turns=6)


def test_a_strategy_may_stand_in_for_the_own_hint(pool: Pool) -> None:
    assert check_hint(record(VAULT), "Ask the guard before you say a code.", pool=pool) == ()


@pytest.mark.parametrize(
    ("source", "hint", "reason"),
    [
        (VAULT, "   ", Reason.HINT_EMPTY),
        (FIXED, "First ask, then open 4711.", Reason.HINT_IS_SCRIPT),
        (VAULT.replace('return ["ask"', 'return ["nothing"'), "Ask.", Reason.SOLUTION_DOES_NOT_WIN),
        (VAULT, "A vault and a guard. Commands: ask, open <code>.", Reason.HINT_IN_OBSERVATION),
    ],
)
def test_what_may_not(source: str, hint: str, reason: Reason, pool: Pool) -> None:
    findings = check_hint(record(source), hint, pool=pool)
    assert [f.reason for f in findings] == [reason]


def test_a_hint_is_tried_on_more_than_one_instance(pool: Pool) -> None:
    from synthgym.errors import ConfigError

    with pytest.raises(ConfigError, match="at least 2"):
        check_hint(record(VAULT), GOOD, pool=pool, seeds=1)
