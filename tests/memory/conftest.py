from __future__ import annotations

from collections.abc import Callable

import pytest

from synthgym.memory import Description, HashEmbedder, NoveltyMemory
from synthgym.spec import sha256_digest

Describe = Callable[..., Description]


@pytest.fixture
def memory() -> NoveltyMemory:
    return NoveltyMemory(HashEmbedder(64), family_quota=4, window=3)


@pytest.fixture
def program() -> Describe:
    """A free program by the letters of its structure and of its data."""

    def make(structure: str, data: str = "", text: str = "") -> Description:
        return Description(text or f"rules of {structure} {data}", f"ast/1:{structure}", data)

    return make


@pytest.fixture
def blueprint() -> Describe:
    """A blueprint by family and parameters; all blueprints share their structure."""

    def make(*parameters: float, family: str = "locks") -> Description:
        return Description("rules of locks", "ast/1:shared", "", family, parameters)

    return make


@pytest.fixture
def digest() -> Callable[[object], str]:
    return lambda key: sha256_digest(repr(key).encode())
