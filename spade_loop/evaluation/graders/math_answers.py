"""Mathematical answers, compared by math-verify. The only module here that imports it; it runs inside graders."""

from __future__ import annotations

import logging

from math_verify import parse, verify

# It warns that it has no time limit of its own: the grader has one.
logging.getLogger("math_verify").setLevel(logging.ERROR)


def equal(expected: str, answer: str) -> bool:
    r"""Whether an answer, as LaTeX or plain text, has the value that is expected.

    Both are read as the content of a `\boxed{}`. An answer that cannot be read equals nothing.
    """
    gold = _read(expected)
    if not gold:
        raise ValueError(f"the expected answer {expected!r} cannot be read")
    given = _read(answer)
    return bool(given) and bool(verify(gold, given, timeout_seconds=None))


def _read(text: str) -> list[object]:
    return list(parse(f"$\\boxed{{{text}}}$", parsing_timeout=None))
