"""A command of ours in this process: what it prints and how it ends."""

from __future__ import annotations

import io
import sys
from typing import NamedTuple

import pytest

from synthgym.cli import main


class Ran(NamedTuple):
    """What one command line came to."""

    code: int
    out: str
    err: str


class Run:
    """Runs a command line of synthgym."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys, self._monkeypatch = capsys, monkeypatch

    def __call__(self, *arguments: object, stdin: str = "") -> Ran:
        self._monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        with pytest.raises(SystemExit) as exit_info:
            main([str(argument) for argument in arguments])
        captured = self._capsys.readouterr()
        code = exit_info.value.code
        return Ran(code if isinstance(code, int) else 0, captured.out, captured.err)
