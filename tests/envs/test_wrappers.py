from __future__ import annotations

from gymnasium.wrappers import OrderEnforcing

from synthgym.envs import HintWrapper, SynthEnv
from synthgym.sandbox import Pool
from synthgym.spec import SynthEnvSpec


def test_the_hint_stands_under_the_first_observation(locker: SynthEnvSpec, pool: Pool) -> None:
    plain = SynthEnv(locker, pool=pool)
    hinted = HintWrapper(OrderEnforcing(SynthEnv(locker, pool=pool)))
    first, info = plain.reset(seed=4)
    observation, hinted_info = hinted.reset(seed=4)
    assert observation == f"{first}\n\nHint: {plain.hint}"
    assert hinted_info == info
    assert observation in hinted.observation_space
    assert hinted.step("take key")[0] == plain.step("take key").observation
    plain.close()
    hinted.close()


def test_the_level_is_recorded_and_used(misbehaving: SynthEnvSpec, pool: Pool) -> None:
    env = HintWrapper(SynthEnv(misbehaving, pool=pool), level=1)
    assert env.reset(seed=2)[0].endswith("Hint: Say pay 1.0 end (level 1).")
    assert HintWrapper.wrapper_spec(level=1).kwargs == {"level": 1}
    assert env._saved_kwargs == {"level": 1}
    env.close()
