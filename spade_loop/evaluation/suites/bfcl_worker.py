"""The `bfcl-eval` package in a process of its own: its items, its functions, its checker.

A script for `children.Child`, in any interpreter that has the package: it uses the standard library beside it. The
package evaluates the texts of calls; only such come here that `calls` rebuilt, and the process is confined. It holds
the functions of one item and ends with it, as the package keeps them in a table of its module for ever.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

FUNCTIONS: Final = "@@functions@@"
"""Stands for the functions in the prompt that `describe` returns."""
_MODEL: Final = "model"
_FAILING: Final = "call_that_cannot_be_made()"
"""A call that the package evaluates to an error, as it does with the one that was written."""
_CHECKER: Final = "bfcl_eval.eval_checker.multi_turn_eval"


class Episode:
    """One item under way."""

    def __init__(self) -> None:
        self._entry: dict[str, Any] = {}
        self._truth: list[list[str]] = []
        self._turns: list[list[list[str]]] = []

    def describe(self) -> dict[str, Any]:
        """The package's version, its prompts and its limit of steps."""
        prompts = importlib.import_module("bfcl_eval.constants.default_prompts")
        style = prompts.PROMPT_STYLE_TEMPLATES["classic"]
        system = prompts.PROMPT_TEMPLATE_MAPPING["plaintext"].format(
            persona=style["persona"],
            task=style["task"],
            tool_call_format=style["tool_call_no_tag"].format(
                output_format=prompts.OUTPUT_FORMAT_MAPPING["python"],
                param_types=prompts.PARAM_TYPE_MAPPING["python"],
            ),
            multiturn_behavior=style["multiturn_behavior"],
            available_tools=style["available_tools"].format(format="json", functions=FUNCTIONS),
        )
        more = prompts.DEFAULT_USER_PROMPT_FOR_ADDITIONAL_FUNCTION_PROMPTING
        return {
            "version": importlib.metadata.version("bfcl-eval"),
            "system": system,
            "more": more.format(functions=FUNCTIONS),
            "steps": prompts.MAXIMUM_STEP_LIMIT,
        }

    def load(self, category: str) -> dict[str, Any]:
        """Items of a category with the documents of their functions, and their ground truth."""
        utils = importlib.import_module("bfcl_eval.utils")
        return {
            "entries": utils.load_dataset_entry(category, include_prereq=False),
            "truth": utils.load_ground_truth_entry(category),
        }

    def open(self, entry: dict[str, Any], truth: list[list[str]]) -> dict[str, Any]:
        """Begin an item; returns the names of the functions that may be called."""
        self._entry, self._truth, self._turns = entry, truth, []
        _, instances = self._execute([])
        names = {
            name
            for instance in instances.values()
            for name, _ in inspect.getmembers(instance, inspect.ismethod)
            if not name.startswith("_")
        }
        return {"functions": sorted(names)}

    def turn(self) -> dict[str, Any]:
        """Begin a turn of the conversation."""
        self._turns.append([])
        return {}

    def call(self, calls: list[str | None]) -> dict[str, Any]:
        """Make the calls of one step; None stands for one that cannot be made. Returns what each came to."""
        made = [_FAILING if call is None else call for call in calls]
        self._turns[-1].append(made)
        results, _ = self._execute(made)
        return {"results": [str(result) for result in results]}

    def check(self) -> dict[str, Any]:
        """Whether all turns reached the states and the answers of the ground truth."""
        checker = importlib.import_module(f"{_CHECKER}.multi_turn_checker")
        found = checker.multi_turn_checker(
            self._turns, self._truth, self._entry, self._category(), _MODEL
        )
        return {
            "valid": bool(found["valid"]),
            "kind": str(found.get("error_type", "")),
            "message": str(found.get("error_message", "")),
        }

    def _execute(self, calls: list[str]) -> tuple[list[Any], Mapping[str, Any]]:
        utils = importlib.import_module(f"{_CHECKER}.multi_turn_utils")
        results, instances = utils.execute_multi_turn_func_call(
            func_call_list=calls,
            initial_config=self._entry["initial_config"],
            involved_classes=self._entry["involved_classes"],
            model_name=_MODEL,
            test_entry_id=self._entry["id"],
            long_context="long_context" in self._category(),
            is_evaL_run=False,
        )
        return results, instances

    def _category(self) -> str:
        return str(self._entry["id"]).rsplit("_", 1)[0]


def main() -> None:
    """Answer requests until the input ends. What a request raises is its answer."""
    os.environ["BFCL_PROJECT_ROOT"] = os.environ[
        "HOME"
    ]  # the package makes folders where it is imported
    answers, sys.stdout = sys.stdout, sys.stderr  # it prints
    episode = Episode()
    for line in sys.stdin:
        request = json.loads(line)
        method: Callable[..., dict[str, Any]] = getattr(episode, request.pop("do"))
        try:
            answer = method(**request)
        except Exception as error:  # noqa: BLE001 -- whatever a function of the package raises
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
