"""Pulling, as tests do it again and again."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from games import write_games

from synthgym.publishing.publish import publish
from synthgym.publishing.pull import Pulled, make_settings, pull_release
from synthgym.registry import Snapshot


def get(reference: str, **settings: Any) -> Pulled:
    return pull_release(reference, make_settings(**settings))


def publish_versions(tmp_path: Path, remote: Path, *versions: str, **how: Any) -> list[Snapshot]:
    snapshots = [write_games(tmp_path / version, version, **how) for version in versions]
    for snapshot in snapshots:
        publish(snapshot.path, remote)
    return snapshots


def files_in(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(location: object) -> None:
        raise AssertionError(f"{location} was opened")

    for module in ("pull", "lookup", "sources"):
        monkeypatch.setattr(import_module(f"synthgym.publishing.{module}"), "open_remote", refuse)
