"""Curricula that other packages offer."""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path
from types import ModuleType
from typing import ClassVar, Self

import pytest

from spade_loop.config import load_config
from spade_loop.curriculum import Uniform, curriculum_from_json, plugin
from spade_loop.errors import ConfigError, RunStateError
from spade_loop.field import make_curriculum
from spade_loop.library import Library, open_snapshot
from synthgym.spec import SynthEnvSpec


class ByLength(Uniform):
    """A curriculum that remembers what it began with."""

    kind: ClassVar[str] = "by-length"
    begun: ClassVar[tuple[int, int]] = (0, 0)

    @classmethod
    def begin(cls, specs: Collection[SynthEnvSpec], seed: int) -> Self:
        cls.begun = (len(specs), seed)
        return cls()


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that offers one that works, one that is not there, and one under another name than its own."""
    info = tmp_path / "acme_curricula-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-curricula\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[spade_loop.curricula]\nby-length = acme_curricula:ByLength\ngone = acme_curricula:Gone\n"
        "other = acme_curricula:ByLength\n"
    )
    module = ModuleType("acme_curricula")
    module.ByLength = ByLength  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "acme_curricula", module)
    monkeypatch.syspath_prepend(str(tmp_path))


def test_a_recipe_takes_one_by_its_name() -> None:
    config = load_config("tiny", ["curriculum.choice=by-length", "seed=7"])
    library = Library.start(open_snapshot("bundled"))
    made = make_curriculum(config, library)
    assert isinstance(made, ByLength)
    assert ByLength.begun == (len(library.specs), 7)
    assert curriculum_from_json(made.to_json()) == made


def test_an_unknown_one_is_refused_with_all_names() -> None:
    with pytest.raises(ConfigError, match=r"uniform, .*by-length.*did you mean 'by-length'"):
        load_config("tiny", ["curriculum.choice=by-lenght"])
    assert plugin("by-lenght") is None
    with pytest.raises(RunStateError, match="of kind uniform"):
        curriculum_from_json({"kind": "by-lenght"})


@pytest.mark.parametrize(
    ("kind", "said"),
    [("gone", "acme-curricula, which fails"), ("other", "expected a class of kind 'other'")],
)
def test_one_that_does_not_load_or_fit_is_named(kind: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        plugin(kind)
