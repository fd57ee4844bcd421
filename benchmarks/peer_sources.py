"""Sources of environments that other people wrote: read from installed packages, never copied.

pip install rlve-gym reasoning-gym textarena      # or --target DIR, and --path DIR for the benchmark
"""

from __future__ import annotations

import importlib.metadata
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from synthgym.errors import ConfigError
from synthgym.memory.fingerprint import parse_source

ROOT: Final = Path(__file__).parents[1]
_WORD: Final = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Package:
    """Where the environments of a package are."""

    distribution: str
    files: str
    """Pattern of the files that hold one environment each."""
    marker: str
    """What such a file spells."""
    base: str
    """Pattern of the files whose names and words the environments refer to."""


PACKAGES: Final = (
    Package(
        "rlve-gym",
        "Gym/environments/*/environment.py",
        "(VerifiableEnvironment)",
        "Gym/environment.py",
    ),
    Package(
        "reasoning-gym",
        "reasoning_gym/*/*.py",
        "(ProceduralDataset)",
        "reasoning_gym/{factory,dataset}.py",
    ),
    Package("textarena", "textarena/envs/*/env.py", "ta.Env", "textarena/{core,state}.py"),
)


@dataclass(frozen=True, slots=True)
class Collection:
    """Environments of one origin."""

    name: str
    sources: dict[str, str]
    """By name, in order."""
    keep: frozenset[str]
    """Names and words that a copy must not change."""
    root: Path
    skipped: tuple[str, ...]
    """Files that this Python cannot parse."""


def installed(name: str, path: Sequence[str] = ()) -> Collection | None:
    """The collection of an installed package, or of one below a folder of `path`; None without it."""
    package = next(package for package in PACKAGES if package.distribution == name)
    where = [*path, *sys.path]
    found = next(iter(importlib.metadata.distributions(name=name, path=where)), None)
    if found is None:
        return None
    root = Path(str(found.locate_file("")))
    files = [file for file in sorted(root.glob(package.files)) if file.name != "__init__.py"]
    base = [file for pattern in _braces(package.base) for file in sorted(root.glob(pattern))]
    words = _WORD.findall(" ".join(file.read_text("utf-8") for file in base))
    version = f"{name} {found.version}"
    return _read(version, files, root, package.marker, frozenset(words))


def folder(path: Path) -> Collection:
    """Every Python file below a folder that spells a class. `ConfigError` when there is none."""
    found = _read(str(path), sorted(path.rglob("*.py")), path, "class ", frozenset())
    if not found.sources:
        raise ConfigError(f"{path} holds no Python file with a class: give a folder of sources")
    return found


def bundled() -> Collection:
    """The environments of this project."""
    files = sorted((ROOT / "registry" / "envs").glob("*/v*/env.py"))
    return _read("bundled", files, ROOT / "registry" / "envs", "class ", frozenset())


def _read(
    name: str, files: Sequence[Path], root: Path, marker: str, keep: frozenset[str]
) -> Collection:
    sources: dict[str, str] = {}
    skipped = []
    for file in files:
        text = file.read_text("utf-8")
        if marker not in text:
            continue
        try:
            parse_source(text)
        except ConfigError:
            skipped.append(file.relative_to(root).as_posix())
        else:
            sources[file.relative_to(root).as_posix()] = text
    return Collection(name, sources, keep, root, tuple(skipped))


def _braces(pattern: str) -> list[str]:
    """`a/{b,c}.py` as `a/b.py` and `a/c.py`."""
    match = re.search(r"\{([^}]*)\}", pattern)
    if match is None:
        return [pattern]
    return [pattern[: match.start()] + one + pattern[match.end() :] for one in match[1].split(",")]
