from __future__ import annotations

from pathlib import Path

import pytest

from synthgym.spec import EnvRecord, SynthEnvSpec
from synthgym.testing import check_synth_env

DATA = Path(__file__).parent / "data"


def spec(path: Path) -> SynthEnvSpec:
    record = EnvRecord(source=path.read_text(), entry="LockerEnv", max_turns=8)
    return SynthEnvSpec(record=record, name="Locker")


def test_a_good_environment_passes() -> None:
    check_synth_env(spec(DATA / "good_envs" / "locker.py"))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("solution-does-not-win", "does not win"),
        ("reward-out-of-range", "bad_value"),
        ("reset-empty", "first observation is empty"),
    ],
)
def test_a_bad_environment_is_an_assertion_error(code: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_synth_env(spec(DATA / "bad_envs" / f"{code}.py"))


def test_something_else_is_an_assertion_error() -> None:
    import gymnasium

    env = gymnasium.make("CartPole-v1")
    with pytest.raises(AssertionError, match="expected a SynthEnv"):
        check_synth_env(env)  # type: ignore[arg-type]
    env.close()
