from __future__ import annotations

import inspect

import pytest

import synthgym

SIGNATURES = {
    "SynthEnv": "(spec, *, render_mode=None, pool=None)",
    "SynthVectorEnv": (
        "(spec, num_envs, *, max_episode_steps=None, render_mode=None, "
        "autoreset_mode=<AutoresetMode.NEXT_STEP: 'NextStep'>, group_size=1, pool=None)"
    ),
    "HintWrapper": "(env, level=2)",
    "parse_action": "(reply, formats=None)",
    "register_snapshot": "(snapshot, *, on_conflict='error', limit=20000)",
    "validate": "(source, *, pool=None, seeds=20, limits=None, dialect='program')",
    "Pool": (
        "(*, max_workers=32, sources_per_worker=1, require=None, max_strikes=3, hash_seed=0, "
        "code_cache=None)"
    ),
}
"""What callers rely on. To change one is a breaking change: say so in CHANGELOG.md."""


def bare(signature: inspect.Signature) -> str:
    parameters = [
        p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()
    ]
    return str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty))


@pytest.mark.parametrize("name", sorted(SIGNATURES))
def test_signatures_stay(name: str) -> None:
    assert bare(inspect.signature(getattr(synthgym, name))) == SIGNATURES[name]


def test_there_are_at_most_twenty_public_names_and_each_is_documented() -> None:
    assert len(synthgym.__all__) <= 20
    assert synthgym.__all__ == sorted(set(synthgym.__all__))
    for name in synthgym.__all__:
        value = getattr(synthgym, name)
        assert name in dir(synthgym)
        if callable(value):
            assert inspect.getdoc(value), name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        synthgym.nonsense  # noqa: B018
