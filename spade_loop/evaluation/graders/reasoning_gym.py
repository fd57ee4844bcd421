"""Questions and scores of Reasoning Gym. The only module that imports `reasoning_gym`; it runs inside graders.

Some of its scorers call `eval` on the answer to read a list, and some let SymPy evaluate it as a formula. Here `eval`
is `ast.literal_eval` in the former, and the latter get no answer that holds more than a formula.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import reasoning_gym

_LISTS: Final = (
    "algorithmic.binary_matrix",
    "algorithmic.spiral_matrix",
    "algorithmic.string_insertion",
    "games.n_queens",
)
"""Modules whose scorers call `eval` on an answer that is no plain text."""
_FORMULAS: Final = (
    "countdown",
    "intermediate_integration",
    "polynomial_multiplication",
    "puzzle24",
    "simple_integration",
)
"""Datasets whose scorers hand the answer to SymPy's parser, which evaluates it."""
_NO_FORMULA: Final = re.compile(r"""__|["'\\@:;=\n\[\]{}]|[A-Za-z_)]\s*\.\s*[A-Za-z_]""", re.ASCII)
"""What turns a formula into a program: texts, attributes, assignments."""
_TRUTH: Final = ("game_of_life_halting",)
"""Datasets that compare `bool(answer)` with that of a text, so that any answer is right: here, texts are compared."""

for _module in _LISTS:
    vars(importlib.import_module(f"reasoning_gym.{_module}"))["eval"] = ast.literal_eval


def question(name: str, parameters: Mapping[str, Any], size: int, seed: int, index: int) -> str:
    """The text of one item."""
    return str(_entry(name, _key(parameters), size, seed, index)["question"])


def score(
    name: str, parameters: Mapping[str, Any], size: int, seed: int, index: int, answer: str
) -> float:
    """What the dataset's own scorer gives an answer, but for those of `_TRUTH`."""
    if name in _FORMULAS and _NO_FORMULA.search(answer):
        return 0.0
    entry = _entry(name, _key(parameters), size, seed, index)
    if name in _TRUTH:
        return float(answer.strip().lower() == str(entry["answer"]).lower())
    with contextlib.redirect_stdout(io.StringIO()):
        return float(_dataset(name, _key(parameters), size, seed).score_answer(answer, entry))


def oracle(
    name: str, parameters: Mapping[str, Any], size: int, seed: int, index: int
) -> str | None:
    """The answer that comes with an item; None where the dataset keeps none."""
    answer = _entry(name, _key(parameters), size, seed, index)["answer"]
    return None if answer is None else str(answer)


def _key(parameters: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(
        (key, tuple(value) if isinstance(value, list) else value)
        for key, value in parameters.items()
    )


@lru_cache(maxsize=8)
def _dataset(name: str, key: tuple[tuple[str, Any], ...], size: int, seed: int) -> Any:
    parameters = {k: list(v) if isinstance(v, tuple) else v for k, v in key}
    with contextlib.redirect_stdout(io.StringIO()):
        return reasoning_gym.create_dataset(name, size=size, seed=seed, **parameters)


@lru_cache(maxsize=256)
def _entry(name: str, key: tuple[tuple[str, Any], ...], size: int, seed: int, index: int) -> Any:
    with contextlib.redirect_stdout(io.StringIO()):
        return _dataset(name, key, size, seed)[index]
