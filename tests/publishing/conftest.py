from __future__ import annotations

from pathlib import Path

import fsspec
import pytest

from synthgym.publishing.cache import Cache


@pytest.fixture(autouse=True)
def _own_places(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the user's is read or written."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("SYNTHGYM_CACHE", str(home / "cache"))
    monkeypatch.setenv("SYNTHGYM_STATE", str(home / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    for name in ("SYNTHGYM_REMOTES", "SYNTHGYM_OFFLINE", "SYNTHGYM_ALLOWED_SIGNERS"):
        monkeypatch.delenv(name, raising=False)
    fsspec.filesystem("memory").store.clear()
    fsspec.filesystem("memory").pseudo_dirs[:] = [""]


@pytest.fixture
def cache() -> Cache:
    return Cache()


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    """An empty folder to publish to."""
    return tmp_path / "remote"
