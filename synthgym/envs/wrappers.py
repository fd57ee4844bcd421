"""Wrappers over a `SynthEnv`, whatever other wrappers lie between."""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from synthgym.contract import DEFAULT_HINT_LEVEL
from synthgym.spaces import TextSpace


class HintWrapper(gymnasium.Wrapper[str, str, str, str], RecordConstructorArgs):
    """Shows the hint in the first observation: the observation, a blank line, `Hint: ...`.

    The instance played is the same as without it. `reset` raises `EnvFaultError` when the
    environment gives no hint.
    """

    def __init__(self, env: gymnasium.Env[str, str], level: int = DEFAULT_HINT_LEVEL) -> None:
        RecordConstructorArgs.__init__(self, level=level)
        gymnasium.Wrapper.__init__(self, env)
        self.level = level
        inner = env.observation_space
        if isinstance(inner, TextSpace):
            # A hint is bounded by the same limit as an observation.
            self.observation_space = TextSpace(2 * inner.max_length + len(_joined("", "")))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Reset, and put the hint under the observation."""
        observation, info = self.env.reset(seed=seed, options=options)
        hint = self.env.get_wrapper_attr("hint_at")(self.level)
        return _joined(observation, hint), info


def _joined(observation: str, hint: str) -> str:
    return f"{observation}\n\nHint: {hint}"
