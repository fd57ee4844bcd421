"""Whether the answer of a numeric task is one. Runs inside a grader, the only place where math-verify is imported."""

from __future__ import annotations

import logging

from math_verify import parse

# It warns that it has no time limit of its own: the grader has one.
logging.getLogger("math_verify").setLevel(logging.ERROR)


def readable(answer: str) -> bool:
    """Whether math-verify reads a number, a formula or a set; what it does not understand it keeps as text."""
    found = parse(f"$\\boxed{{{answer}}}$", parsing_timeout=None)
    return any(not isinstance(value, str) for value in found)
