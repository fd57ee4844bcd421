from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Run

from synthgym import atomic


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(capsys, monkeypatch)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, where nothing of the user's is known and the disk is not waited for."""
    for name in ("SYNTHGYM_STATE", "SYNTHGYM_CACHE", "XDG_CONFIG_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home" / name))
    for name in ("SYNTHGYM_REMOTES", "SYNTHGYM_ALLOWED_SIGNERS", "SYNTHGYM_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(atomic, "_sync", lambda *_: None)
    return tmp_path / "here"
