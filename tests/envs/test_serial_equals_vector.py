"""Whatever is played, side by side or one by one, over one source or several: the same trajectories."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from synthgym.envs import SynthEnv, SynthVectorEnv
from synthgym.sandbox import Pool
from synthgym.spec import SynthEnvSpec

ACTIONS = st.sampled_from(
    ["hello", "", "stop", "raise", "pay 0.25 on", "pay 0.5 end", "pay 1.0 end", "pay 2.0 on", "ü"]
)
COMPARED = ("seed", "turn", "success")


def plain(infos: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """The infos of each sub-environment, as far as Gymnasium packs them alike."""
    found: list[dict[str, Any]] = [{} for _ in range(count)]
    for key in COMPARED:
        for row in np.flatnonzero(infos[f"_{key}"]):
            found[row][key] = infos[key][row]
    for row in np.flatnonzero(infos.get("_fault", ())):
        found[row]["fault"] = True
    return found


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    seed=st.integers(0, 1000),
    turns=st.lists(st.lists(ACTIONS, min_size=4, max_size=4), min_size=1, max_size=12),
    mode=st.sampled_from([AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP]),
    several=st.booleans(),
)
def test_a_vector_env_is_its_sub_environments(
    locker: SynthEnvSpec,
    misbehaving: SynthEnvSpec,
    pool: Pool,
    seed: int,
    turns: list[list[str]],
    mode: AutoresetMode,
    several: bool,
) -> None:
    specs = [locker, locker, misbehaving, misbehaving] if several else [misbehaving] * 4
    seeds = [seed + row if seed + row != 13 else 14 for row in range(4)]
    ours = SynthVectorEnv(
        [locker, misbehaving] if several else misbehaving, 4, autoreset_mode=mode, pool=pool
    )
    theirs = SyncVectorEnv(
        [lambda spec=spec: SynthEnv(spec, pool=pool) for spec in specs], autoreset_mode=mode
    )
    try:
        mine, his = ours.reset(seed=seeds), theirs.reset(seed=seeds)
        assert mine[0] == his[0]
        for actions in turns:
            mine_, his_ = ours.step(actions), theirs.step(actions)
            assert mine_[0] == his_[0]
            for column in (1, 2, 3):
                np.testing.assert_array_equal(mine_[column], his_[column])
            assert plain(mine_[4], 4) == plain(his_[4], 4)
    finally:
        ours.close()
        theirs.close()
