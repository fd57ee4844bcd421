"""Run by test_redteam_language.py in a process of its own: plays payloads in one Runtime each."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

from synthgym.sandbox.compile import compile_source
from synthgym.sandbox.runtime import Runtime

SECONDS = 5


class Expired(BaseException):
    """The payload took too long."""


def expire(signum: int, frame: object) -> None:
    raise Expired


def play(source: str) -> str:
    """What the payload came to: `refused`, `observed <text>` or `raised <type>`."""
    compiled = compile_source(source)
    if compiled.code is None:
        return "refused"
    signal.alarm(SECONDS)
    try:
        runtime = Runtime()
        namespace = runtime.instantiate(compiled.code, 0)
        env = runtime.env_class(namespace)()
        env.reset(seed=0)
        return f"observed {env.step('go')[0]}"
    except BaseException as error:  # noqa: BLE001 - whatever a payload raises is a result here
        return f"raised {type(error).__name__}: {error}"
    finally:
        signal.alarm(0)


if __name__ == "__main__":
    signal.signal(signal.SIGALRM, expire)
    paths = [Path(arg) for arg in sys.argv[1:]]
    json.dump({path.name: play(path.read_text()) for path in paths}, sys.stdout)
