"""Runs one solution of a programming problem on one input, inside a confined process. The standard library alone.

`solution_runner.py FOLDER [FUNCTION]`: runs `FOLDER/solution.py` as a program on stdin; or with a function, calls it
(as a method of `Solution` where there is such a class) with the arguments in `FOLDER/arguments.json` and writes what
it returned to `FOLDER/result.json`. The expected output is not here: a solution cannot look it up.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

RECURSION: Final = 50_000
"""As in LiveCodeBench's runner."""
AT_HAND: Final = (
    *("string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random"),
    *("statistics", "itertools", "functools", "operator", "io", "sys", "json", "typing"),
)
"""Modules that a solution may use without importing them, with their names, as in LiveCodeBench's runner."""


def main(arguments: Sequence[str]) -> None:
    """Run the solution; an exception of it ends the process with its traceback and status 1."""
    folder = Path(arguments[0])
    sys.setrecursionlimit(RECURSION)
    code = compile((folder / "solution.py").read_text(encoding="utf-8"), "solution.py", "exec")
    names: dict[str, Any] = {}
    for module in AT_HAND:
        exec(f"from {module} import *", names)  # noqa: S102 -- fixed names
    for module in AT_HAND:
        exec(f"import {module}", names)  # noqa: S102 -- after the names, some of which are modules' names
    names["__name__"] = "__main__" if len(arguments) == 1 else "solution"
    try:
        exec(code, names)  # noqa: S102 -- what this process is for; it is confined
        if len(arguments) > 1:
            _answer(names, folder, arguments[1])
    except SystemExit:
        pass  # a program may end itself; its output counts
    sys.stdout.flush()


def _answer(names: dict[str, Any], folder: Path, function: str) -> None:
    given = json.loads((folder / "arguments.json").read_text(encoding="utf-8"))
    owner = names["Solution"]() if "Solution" in names else None
    method = getattr(owner, function) if owner is not None else names[function]
    result = json.dumps(method(*given))
    (folder / "result.json").write_text(result, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
