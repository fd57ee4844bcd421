from __future__ import annotations

import os
import threading
from typing import Any

import pytest
import quick_judges
from multiprocess.connection import Connection

from synthgym.audit import AuditSettings, crew


class Thread:
    """Stands for a process that never dies."""

    exitcode = 0

    def __init__(self, channel: Any, settings: AuditSettings) -> None:
        self._channel = channel
        self._thread = threading.Thread(target=quick_judges.serve, args=(channel, settings))
        self._thread.start()

    def join(self, timeout: float) -> None:
        self._thread.join(timeout)
        assert not self._thread.is_alive()

    def kill(self) -> None:
        """Its channel is closed, and so it ends."""


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judge by the first word of a text, in threads: nothing is started that takes its time."""

    def start(channel: Any, settings: AuditSettings) -> Thread:
        return Thread(Connection(os.dup(channel.fileno())), settings)

    monkeypatch.setattr(crew, "start_process", start)


@pytest.fixture
def deadly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judge by the first word of a text, in processes, which some texts end."""
    monkeypatch.setattr(crew, "serve", quick_judges.serve)
