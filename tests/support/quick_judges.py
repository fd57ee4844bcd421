"""Processes of an audit that judge by the first word of a text, without any sandbox; some texts are deadly."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from synthgym.audit.judging import Failed, Ready
from synthgym.audit.rows import Judgement, Status
from synthgym.audit.settings import AuditSettings
from synthgym.validation import Finding, Reason


def serve(channel: Any, settings: AuditSettings) -> None:
    """Like `synthgym.audit.judging.serve`."""
    with suppress(ConnectionError), channel:
        channel.send(Ready())
        _judge_all(channel)


def _judge_all(channel: Any) -> None:
    while True:
        try:
            text = channel.recv()
        except (EOFError, OSError):
            return
        word, _, rest = text.partition(" ")
        if word == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        elif word == "leave":
            os._exit(3)
        elif word == "die-once" and not Path(rest).exists():
            Path(rest).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        elif word == "hang":
            time.sleep(600)
        elif word == "no-sandbox":
            channel.send(Failed("no zygote today"))
            return
        elif word == "bad":
            finding = Finding(Reason.STEP_RAISED, rest, 0, None, ("look",), "a room")
            channel.send(Judgement(status=Status.REFUSED, findings=(finding,)))
        else:
            channel.send(Judgement(status=Status.OK, gates={"static": "passed"}, detail=""))


def never_start(channel: Any, settings: AuditSettings) -> None:
    """A process that ends before it says that it is there."""
    os._exit(7)
