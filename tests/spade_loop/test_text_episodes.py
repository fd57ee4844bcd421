"""Episodes as text: the rules of the token player, over a model that is a function here and says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from spade_loop.chat import ChatFormat
from spade_loop.completers import JsonSchema, Reply, ScriptedSampler
from spade_loop.config import AgentConfig
from spade_loop.episodes import Play, Player
from spade_loop.errors import ConfigError, ContextError, ModelError
from spade_loop.measurement import Arms, fault_reproduces, measure
from spade_loop.speaking import Decoding, Speaker, Usage
from spade_loop.text_episodes import TextPlayer
from spade_loop.types import NOTHING, Arm, Message, StopReason
from synthgym.sandbox import Pool
from synthgym.spec import EnvRecord, SynthEnvSpec

COUNTER = '''"""Say the number on the wall, twice."""


class CounterEnv:
    max_turns = 4

    def reset(self, seed):
        if seed == 13:
            raise ValueError("unlucky")
        self.number, self.paid = seed, 0.0
        return f"Number {self.number}.", {}

    def step(self, action):
        if action == "lose":
            return "Lost.", 0.0, True, False, {}
        if action == str(self.number):
            self.paid += 0.5
            return "Right.", 0.5, self.paid >= 1.0, False, {}
        return f"{action} is wrong.", 0.0, False, False, {}

    def hint(self, level=2):
        return f"Read the wall (level {level})."

    def solution(self):
        return [str(self.number)] * 2
'''
SPEC = SynthEnvSpec(
    record=EnvRecord(source=COUNTER, entry="CounterEnv", max_turns=4), name="Counter"
)
SHORT = Decoding(max_tokens=8)
Answer = Callable[[Sequence[Message]], str]


class Scripted:
    """A writer whose replies a function makes from the chat. No model."""

    concurrent = True
    name = "scripted"

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.chats: list[list[Message]] = []
        self.seeds: list[int] = []

    def write(
        self,
        chats: Sequence[Sequence[Message]],
        *,
        max_tokens: int,
        temperature: float,
        seeds: Sequence[int],
        schema: JsonSchema | None = None,
        top_p: float = 1.0,
        top_k: int = 0,
    ) -> list[Reply]:
        self.chats += [list(chat) for chat in chats]
        self.seeds += seeds
        return [Reply(self.answer(chat), 2, True, 7) for chat in chats]

    def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=2) as pool:
        yield pool


def script(replies: Sequence[str]) -> Answer:
    """Reply i in turn i; the chat before the first has six messages of examples and one observation."""
    return lambda chat: replies[sum(m.role == "assistant" for m in chat) - 2]


def player(answer: Answer, pool: Pool, **settings: Any) -> tuple[TextPlayer, Scripted, Speaker]:
    writer = Scripted(answer)
    speaker = Speaker(writer, rows=1)
    options = {"decoding": SHORT, "max_turns": 9, "hint_level": 2} | settings
    return TextPlayer(speaker, pool, **options), writer, speaker


CASES = {
    "won": ["\\boxed{7}", "so \\boxed{7}"],
    "lost": ["\\boxed{1}", "\\boxed{lose}"],
    "unboxed": ["7", "\\boxed{}", "nothing", "\\boxed{7}"],
    "turns": ["\\boxed{7}", *["\\boxed{1}"] * 3],
    "limit": ["\\boxed{7}", "\\boxed{7}"],
}


@pytest.mark.parametrize("arm", list(Arm))
@pytest.mark.parametrize("case", CASES)
def test_an_episode_is_that_of_the_token_player(
    case: str, arm: Arm, pool: Pool, chat: ChatFormat, tokenizer: Any
) -> None:
    replies, turns = CASES[case], 1 if case == "limit" else 9
    play = Play(SPEC, 7, 0, arm)
    config = AgentConfig(max_turns=turns, turn_tokens=60, context=8000)
    sampler = ScriptedSampler(chat, lambda row, turn, text: replies[turn], tokenizer.eos_token_id)
    (expected,) = Player(config, pool, hint_level=2).play(sampler, [play], stream=[1])
    found = player(script(replies), pool, max_turns=turns)[0].play(play, 3)
    assert found.turns == expected.turns
    assert (found.stop, found.success, found.episode_return) == (
        expected.stop,
        expected.success,
        expected.episode_return,
    )
    assert (found.digest, found.seed, found.arm) == (expected.digest, 7, arm)
    assert (found.prompt_ids, found.completion) == ((), NOTHING)


def test_the_chat_grows_by_what_was_said_and_seen(pool: Pool) -> None:
    text, writer, speaker = player(script(CASES["won"]), pool)
    with speaker.counting() as tally:
        text.play(Play(SPEC, 7, 0, Arm.HINTED), 2**31 - 1)
    first, second = writer.chats
    assert first[-1].content.endswith("Number 7.\n\nHint: Read the wall (level 2).")
    assert second[: len(first)] == first
    assert second[len(first) :] == [Message("assistant", "\\boxed{7}"), Message("user", "Right.")]
    assert writer.seeds == [2**31 - 1, 0]
    assert tally.usage == Usage(2, 14, 4) == speaker.usage


def test_a_fault_in_reset_is_not_the_agents(pool: Pool) -> None:
    text, writer, _ = player(script([]), pool)
    found = text.play(Play(SPEC, 13, 0, Arm.PLAIN), 0)
    assert found.stop is StopReason.FAULT
    assert found.fault is not None
    assert found.fault.call == "reset"
    assert writer.chats == []


@pytest.mark.parametrize("turn", [0, 1])
def test_a_full_context_ends_the_episode(turn: int, pool: Pool) -> None:
    def answer(chat: Sequence[Message]) -> str:
        if sum(m.role == "assistant" for m in chat) - 2 == turn:
            raise ContextError("full")
        return "\\boxed{7}"

    found = player(answer, pool)[0].play(Play(SPEC, 7, 0, Arm.PLAIN), 0)
    assert found.stop is StopReason.CONTEXT
    assert len(found.turns) == turn
    assert found.episode_return == 0.5 * turn


def test_a_model_that_is_gone_is_no_episode(pool: Pool) -> None:
    def answer(chat: Sequence[Message]) -> str:
        raise ModelError("gone")

    with pytest.raises(ModelError, match="gone"):
        player(answer, pool)[0].play(Play(SPEC, 7, 0, Arm.PLAIN), 0)


def test_trajectories_are_measured_like_those_of_training(pool: Pool) -> None:
    def answer(chat: Sequence[Message]) -> str:
        seen = "".join(m.content for m in chat)
        return "\\boxed{7}" if "Hint:" in seen else "\\boxed{lose}"

    text = player(answer, pool)[0]
    arms = {
        arm: tuple(text.play(Play(SPEC, seed, 0, arm), seed) for seed in (7, 13))
        for arm in (Arm.PLAIN, Arm.HINTED)
    }
    found = measure(
        SPEC,
        Arms(plain=arms[Arm.PLAIN], hinted=arms[Arm.HINTED]),
        lambda spec, t: fault_reproduces(spec, t, 2),
        iteration=0,
    )
    assert found.regret.seeds == 1
    assert found.regret.value == 1.0
    assert found.fault_share == 0.5


def test_no_turn_is_refused(pool: Pool) -> None:
    with pytest.raises(ConfigError, match="max_turns must be at least 1"):
        player(script([]), pool, max_turns=0)
