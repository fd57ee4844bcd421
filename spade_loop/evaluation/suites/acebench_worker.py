"""The scenarios of an ACEBench checkout in a process of their own: one item's functions and their state.

A script for `children.Child`, with the checkout's folder as its argument; it uses the standard library beside it. The
checkout evaluates the texts of calls; only such come here that `calls` rebuilt, and the process is confined.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

SAVED: Final[Mapping[str, tuple[str, ...]]] = {
    "BaseApi": ("wifi", "logged_in"),
    "MessageApi": ("inbox",),
    "ReminderApi": ("reminder_list",),
    "FoodPlatform": ("users", "logged_in_users", "orders"),
    "Travel": ("users", "reservations"),
}
"""What of each class is compared with the ground truth, as the benchmark does it."""
_MODEL: Final = "model"


class Episode:
    """One item under way."""

    def __init__(self) -> None:
        self._execute: Callable[[list[str]], tuple[Any, Any]] = lambda _: ([], {})
        self._entry: dict[str, Any] = {}

    def open(self, kind: str, language: str, entry: dict[str, Any]) -> dict[str, Any]:
        """Begin an item; returns the names of the functions that may be called."""
        self._entry = entry
        utils = importlib.import_module(f"model_inference.{kind}.{kind}_utils")
        self._execute = lambda calls: utils.execute_agent_func_call(
            func_call_list=calls,
            initial_config=entry["initial_config"],
            involved_classes=entry["involved_classes"],
            model_name=_MODEL,
            test_entry_id=entry["id"].rpartition("_")[2],
            language=language,
        )
        names = {
            name
            for instance in self._instances().values()
            for name, _ in inspect.getmembers(instance, inspect.ismethod)
            if not name.startswith("_")
        }
        return {"functions": sorted(names)}

    def call(self, calls: list[str]) -> dict[str, Any]:
        """Make calls, one after another; returns what each came to."""
        results = []
        for call in calls:
            made, _ = self._execute([call])
            results.append(made[0] if isinstance(made, list) and made else str(made))
        texts = [one if isinstance(one, str) else json.dumps(one, default=str) for one in results]
        return {"results": texts}

    def states(self) -> dict[str, Any]:
        """The compared attributes of each class, in the item's order."""
        return {
            "states": [
                {
                    name: {
                        key: value
                        for key, value in vars(instance).items()
                        if key in SAVED.get(name, ())
                    }
                }
                for name, instance in self._instances().items()
            ]
        }

    def _instances(self) -> Mapping[str, Any]:
        _, instances = self._execute([])
        found: Mapping[str, Any] = instances
        return found


def main() -> None:
    """Answer requests until the input ends. What a request raises is its answer."""
    sys.path.insert(0, sys.argv[1])
    answers, sys.stdout = sys.stdout, sys.stderr  # in case that something prints
    episode = Episode()
    for line in sys.stdin:
        request = json.loads(line)
        method: Callable[..., dict[str, Any]] = getattr(episode, request.pop("do"))
        try:
            answer = json.dumps(method(**request), default=str)
        except Exception as error:  # noqa: BLE001 -- whatever a scenario raises
            answer = json.dumps({"error": f"{type(error).__name__}: {error}"})
        answers.write(answer + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
