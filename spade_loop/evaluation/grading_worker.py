"""Inside a grader: a call on each line of stdin, its value or its exception on a line of stdout. A script."""

from __future__ import annotations

import importlib
import json
import math
import os
import signal
import sys
from collections.abc import Callable
from typing import IO, Any


def serve(questions: IO[bytes], answers: IO[bytes]) -> None:
    """Answer until there are no more questions. A call that takes too long ends the process."""
    for line in questions:
        answers.write(json.dumps(_answer(json.loads(line))).encode() + b"\n")
        answers.flush()


def _answer(question: dict[str, Any]) -> dict[str, Any]:
    module, _, name = question["call"].partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
    except ImportError as error:
        return {"absent": str(error)}
    try:
        value = _call(function, question)
        json.dumps(value)
    except Exception as error:  # noqa: BLE001 -- told to the one who asked
        return {"raised": f"{type(error).__name__}: {error}"[:2000]}
    return {"value": value}


def _call(function: Callable[..., Any], question: dict[str, Any]) -> Any:
    # Not a handler: it would wait for the end of a long multiplication.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(math.ceil(question["seconds"]))
    try:
        return function(**question["with"])
    finally:
        signal.alarm(0)


def main() -> None:
    """Take the search path from the command line, JSON as it is."""
    if sys.flags.hash_randomization:
        # Children are started without a look at the environment.
        os.execve(
            sys.executable,
            [sys.executable, "-B", "-X", "utf8", *sys.argv],
            os.environ | {"PYTHONHASHSEED": "0", "MPLCONFIGDIR": os.environ["HOME"]},
        )
    sys.path[:] = json.loads(sys.argv[1])
    # What libraries print must not get among the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
