from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import gymnasium
import numpy as np
import pytest

from synthgym.contract import MAX_ACTION_CHARS
from synthgym.envs import SavedState, SynthEnv
from synthgym.envs.rendering import printable
from synthgym.errors import ConfigError, EnvFaultError, ResetNeeded
from synthgym.sandbox import Pool
from synthgym.spec import EnvRecord, SynthEnvSpec


@pytest.fixture
def env(locker: SynthEnvSpec, pool: Pool) -> Iterator[SynthEnv]:
    env = SynthEnv(locker, pool=pool)
    yield env
    env.close()


@pytest.fixture
def odd(misbehaving: SynthEnvSpec, pool: Pool) -> Iterator[SynthEnv]:
    env = SynthEnv(misbehaving, pool=pool)
    yield env
    env.close()


def test_the_witness_wins_with_a_return_of_one(env: SynthEnv) -> None:
    env.reset(seed=3)
    steps = [env.step(action) for action in env.solution()]
    assert sum(step.reward for step in steps) == pytest.approx(1.0)
    assert steps[-1].terminated
    assert steps[-1].info["success"]


def test_equal_seeds_and_actions_give_equal_transitions(locker: SynthEnvSpec, pool: Pool) -> None:
    runs = []
    for _ in range(2):
        env = SynthEnv(locker, pool=pool)
        runs.append([env.reset(seed=5), env.step("take key"), env.step("open 1")])
        env.close()
    assert runs[0] == runs[1]
    assert runs[0][0][1] == {"seed": 5, "turn": 0, "success": False, "env": {}}


def test_an_unseeded_reset_draws_a_seed_that_reproduces_it(env: SynthEnv) -> None:
    env.reset(seed=1)
    observation, info = env.reset()
    assert env.reset(seed=info["seed"])[0] == observation
    env.reset(seed=1)
    assert env.reset()[1]["seed"] == info["seed"]


def test_the_class_info_stays_under_env(odd: SynthEnv) -> None:
    assert odd.reset(seed=2)[1]["env"] == {"seed": 2}
    assert odd.step("hello").info["env"] == {"turn": 1}


def test_max_turns_truncates(odd: SynthEnv) -> None:
    odd.reset(seed=2)
    steps = [odd.step("hello") for _ in range(6)]
    assert [step.truncated for step in steps] == [False] * 5 + [True]


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        ("raise", "error"),
        ("hang", "timeout"),
        ("pay nan on", "bad_value"),
        ("pay 2 end", "bad_value"),
    ],
)
def test_a_fault_in_step_is_a_truncated_transition(odd: SynthEnv, action: str, kind: str) -> None:
    first, _ = odd.reset(seed=2)
    transition = odd.step(action)
    assert transition[:4] == (first, 0.0, False, True)
    assert transition.info["fault"] == {"kind": kind, "call": "step"}
    with pytest.raises(ResetNeeded):
        odd.step("hello")
    assert odd.reset(seed=2)[0] == first


def test_a_fault_in_reset_raises_and_the_next_reset_works(odd: SynthEnv) -> None:
    with pytest.raises(EnvFaultError, match=r"seed 13.*unlucky"):
        odd.reset(seed=13)
    with pytest.raises(ResetNeeded):
        odd.step("hello")
    assert odd.reset(seed=2)[0] == "Instance 2."


def test_step_and_hint_need_a_reset_and_step_an_episode_that_goes_on(env: SynthEnv) -> None:
    for call in (lambda: env.step("x"), lambda: env.hint, env.solution, env.save_state):
        with pytest.raises(gymnasium.error.ResetNeeded):
            call()
    env.reset(seed=3)
    for action in env.solution():
        env.step(action)
    with pytest.raises(gymnasium.error.ResetNeeded, match="over"):
        env.step("again")


def test_the_hint_is_for_the_last_reset_and_does_not_disturb_the_player(odd: SynthEnv) -> None:
    odd.reset(seed=2)
    before = odd.step("hello")
    assert odd.hint == "Say pay 1.0 end (level 2)."
    assert odd.hint_at(1) == "Say pay 1.0 end (level 1)."
    assert odd.solution() == ("pay 0.5 on", "pay 0.5 end")
    assert odd.step("hello").info["env"]["turn"] == before.info["env"]["turn"] + 1


def test_a_hint_that_fails_raises(odd: SynthEnv) -> None:
    odd.reset(seed=2)
    with pytest.raises(EnvFaultError, match="no such hint"):
        odd.hint_at(3)
    with pytest.raises(ConfigError, match="level"):
        odd.hint_at(4)


def test_an_annotation_hint_stands_in_for_level_two(misbehaving: SynthEnvSpec, pool: Pool) -> None:
    env = SynthEnv(replace(misbehaving, hint="Think."), pool=pool)
    env.reset(seed=2)
    assert (env.hint, env.hint_at(1)) == ("Think.", "Say pay 1.0 end (level 1).")
    env.close()


def test_long_actions_are_cut(odd: SynthEnv) -> None:
    odd.reset(seed=2)
    observation = odd.step("x" * (MAX_ACTION_CHARS + 1)).observation
    assert observation == f"You said {MAX_ACTION_CHARS} characters."


def test_actions_are_text(env: SynthEnv) -> None:
    env.reset(seed=3)
    with pytest.raises(ConfigError, match="str"):
        env.step(5)  # type: ignore[arg-type]
    assert env.step(np.str_("take key")).reward == 0.25


def test_a_saved_state_comes_back_in_another_env(locker: SynthEnvSpec, pool: Pool) -> None:
    env, other = SynthEnv(locker, pool=pool), SynthEnv(locker, pool=pool)
    env.reset(seed=3)
    env.step("take key")
    state = env.save_state()
    observation, info = other.restore_state(state)
    assert (observation, info["turn"]) == ("You take the key.", 1)
    last = env.solution()[-1]
    assert other.step(last) == env.step(last)
    assert env.save_state() == SavedState(locker.digest, 3, ("take key", last))
    env.close()
    other.close()


def test_a_state_of_another_environment_or_with_a_fault_is_refused(
    env: SynthEnv, odd: SynthEnv
) -> None:
    odd.reset(seed=2)
    with pytest.raises(ConfigError, match="belongs to"):
        env.restore_state(odd.save_state())
    odd.step("raise")
    with pytest.raises(EnvFaultError):
        odd.save_state()


def test_close_works_twice_and_reset_opens_again(locker: SynthEnvSpec, pool: Pool) -> None:
    env = SynthEnv(locker, pool=pool)
    env.close()
    env.reset(seed=1)
    env.close()
    env.close()
    assert env.reset(seed=1)[1]["seed"] == 1
    env.close()


def test_ansi_draws_the_transcript(locker: SynthEnvSpec, pool: Pool) -> None:
    env = SynthEnv(locker, render_mode="ansi", pool=pool)
    first, _ = env.reset(seed=3)
    for action in env.solution():
        env.step(action)
    drawn = env.render()
    assert isinstance(drawn, str)
    assert drawn.startswith(f"[seed 3]\n{first}\n\n> take key\nYou take the key.\n[reward 0.25]\n")
    assert drawn.endswith("[success]\n")
    env.close()


def test_human_prints_as_it_goes(
    locker: SynthEnvSpec, pool: Pool, capsys: pytest.CaptureFixture[str]
) -> None:
    env = SynthEnv(locker, render_mode="human", pool=pool)
    env.reset(seed=3)
    env.step("take key")
    assert env.render() is None
    assert "> take key\nYou take the key." in capsys.readouterr().out
    env.close()


def test_what_reaches_a_terminal_cannot_drive_it() -> None:
    assert printable("a\x1b[2Jb\tc\nd\u202ee\ud800") == "a\ufffd[2Jb\tc\nd\ufffde\ufffd"


def test_wrong_settings_are_refused(
    locker: SynthEnvSpec, pool: Pool, make_spec: Callable[..., SynthEnvSpec]
) -> None:
    with pytest.raises(ConfigError, match="render_mode"):
        SynthEnv(locker, render_mode="rgb_array", pool=pool)
    with pytest.raises(ConfigError, match="SynthEnvSpec"):
        SynthEnv("synthgym/Locker-v0", pool=pool)  # type: ignore[arg-type]
    other = EnvRecord(source="", entry="LockerEnv", max_turns=8, base="spade")
    with pytest.raises(ConfigError, match="base"):
        SynthEnv(replace(locker, record=other), pool=pool)


def test_two_copies_of_a_saved_episode_do_not_touch_each_other(
    locker: SynthEnvSpec, pool: Pool
) -> None:
    one, two = SynthEnv(locker, pool=pool), SynthEnv(locker, pool=pool)
    one.reset(seed=3)
    one.step("take key")
    saved = one.save_state()
    two.restore_state(saved)
    for _ in range(3):
        one.step("look")
    alone = SynthEnv(locker, pool=pool)
    alone.restore_state(saved)
    assert two.step("open box")[:4] == alone.step("open box")[:4]
    assert two.save_state() == alone.save_state() != one.save_state()
    for env in (one, two, alone):
        env.close()


# --- many at once ---


def test_a_round_is_what_each_would_do_alone(
    locker: SynthEnvSpec, misbehaving: SynthEnvSpec, pool: Pool
) -> None:
    specs = [locker, misbehaving, locker, misbehaving]
    seeds = [5, 2, 6, 3]
    script = [["take key", "hello", "look", "raise"], ["open 1", "hello", "take key", "x"]]
    together = [SynthEnv(spec, pool=pool) for spec in specs]
    alone = [SynthEnv(spec, pool=pool) for spec in specs]
    try:
        first = SynthEnv.reset_all(together, seeds)
        assert first == [env.reset(seed=seed) for env, seed in zip(alone, seeds, strict=True)]
        assert SynthEnv.hints_all(together, 2) == [env.hint for env in alone]
        round_one = SynthEnv.step_all(together, script[0])
        assert round_one == [env.step(a) for env, a in zip(alone, script[0], strict=True)]
        assert round_one[3].info["fault"]["kind"] == "error"
        # What failed is over; the others go on.
        assert SynthEnv.step_all(together[:3], script[1][:3]) == [
            env.step(a) for env, a in zip(alone[:3], script[1][:3], strict=True)
        ]
        with pytest.raises(ResetNeeded):
            SynthEnv.step_all(together, script[1])
        with pytest.raises(ConfigError, match="an action is a str"):
            SynthEnv.step_all(together[:1], [1])  # type: ignore[list-item]
    finally:
        for env in [*together, *alone]:
            env.close()


def test_a_reset_that_fails_in_a_round_is_an_error_in_its_place(
    locker: SynthEnvSpec, pool: Pool
) -> None:
    source = locker.record.source.replace(
        "def reset(self, seed):", "def reset(self, seed):\n        1 / (seed - 7)"
    )
    broken = replace(locker, record=replace(locker.record, source=source))
    envs = [SynthEnv(spec, pool=pool) for spec in (broken, locker, broken)]
    try:
        results = SynthEnv.reset_all(envs, [7, 7, 8])
        assert isinstance(results[0], EnvFaultError)
        assert results[0].call == "reset"
        assert not isinstance(results[1], EnvFaultError)
        assert not isinstance(results[2], EnvFaultError)
        assert SynthEnv.hints_all([envs[1], envs[2]], 2) == [envs[1].hint, envs[2].hint]
        with pytest.raises(ResetNeeded):
            SynthEnv.hints_all(envs, 2)
    finally:
        for env in envs:
            env.close()


def test_an_environment_cannot_be_twice_in_a_round(locker: SynthEnvSpec, pool: Pool) -> None:
    env = SynthEnv(locker, pool=pool)
    with pytest.raises(ConfigError, match="once"):
        SynthEnv.reset_all([env, env], [1, 2])
    env.close()
