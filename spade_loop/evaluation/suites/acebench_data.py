"""An ACEBench checkout, read: items with their ground truth, prompts, and how final states are compared.

The benchmark is published as a repository only. Its items are JSON lines; its prompts are texts in its sources, which
are read here without running them.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from spade_loop.errors import ConfigError

KINDS: Final = ("multi_step", "multi_turn")
SOURCE: Final = "https://github.com/chenchen0103/ACEBench"
_AGENT: Final = "MULTI_TURN_AGENT_PROMPT"
"""How both kinds name the prompts of the agent."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """Texts of one kind of item; what stands in braces is filled in."""

    system: str
    user: str
    """With `functions` and `history`."""
    rules: Mapping[str, str]
    """What is added to `system` where a class is involved."""
    simulated: Mapping[str, str]
    """What the simulated user is told, with `instruction`, by class; empty where there is none."""


@dataclass(frozen=True, slots=True)
class Task:
    """One item."""

    entry: Mapping[str, Any]
    states: Sequence[Mapping[str, Any]]
    """Each class with its attributes at the end."""
    milestones: Sequence[Sequence[str]]
    """Ways to get there, each a list of calls as texts."""


def check_checkout(folder: Path, kinds: Sequence[str], language: str) -> None:
    """Refuse a folder that is no checkout of the benchmark; `ConfigError` names what is missing."""
    needed = [path for kind in kinds for path in _files(folder, kind, language)]
    missing = [str(path.relative_to(folder)) for path in needed if not path.is_file()]
    if missing:
        raise ConfigError(
            f"acebench-agent: {folder} has no {', '.join(missing[:3])}: expected a checkout of {SOURCE}, with "
            f"the scenarios (model_inference/), which are programs, beside the data (data_all/data_{language}/)"
        )


def read_tasks(folder: Path, kind: str, language: str) -> list[Task]:
    """The items of one kind, in the order of their file. `ConfigError` names file and line of what is wrong."""
    data, answers, *_ = _files(folder, kind, language)
    truths = {row["id"]: row for row in _rows(answers, ("id", "ground_truth"))}
    tasks = []
    for entry in _rows(data, ("id", "question", "initial_config", "function", "involved_classes")):
        if entry["id"] not in truths:
            raise ConfigError(f"{answers}: no ground truth for {entry['id']!r}")
        truth = truths[entry["id"]]
        states, stones = truth["ground_truth"], truth.get("mile_stone") or []
        tasks.append(
            Task(
                entry,
                states if isinstance(states, list) else [states],
                stones if stones and isinstance(stones[0], list) else [stones],
            )
        )
    return tasks


def read_prompts(folder: Path, kind: str, language: str) -> Prompts:
    """The prompts of one kind. `ConfigError` names one that is not there or has unknown places."""
    end = language.upper()
    *_, agent, rules, user = _files(folder, kind, language)
    texts = _texts(agent)
    system, asked = f"{_AGENT}_SYSTEM_{end}", f"{_AGENT}_USER_{end}"
    if kind == "multi_step":
        prompts = Prompts(_named(texts, system, agent), _named(texts, asked, agent), {}, {})
        filled(prompts.system, time="")
    else:
        added, told = _texts(rules), _texts(user)
        prompts = Prompts(
            _named(texts, system, agent),
            _named(texts, asked, agent),
            {
                "Travel": _named(added, f"TRAVEL_PROMPT_{end}", rules),
                "BaseApi": _named(added, f"BASE_PROMPT_{end}", rules),
            },
            {
                "BaseApi": _named(told, f"SYSTEM_PROMPT_BASE_{end}", user),
                "Travel": _named(told, f"SYSTEM_PROMPT_TRAVEL_{end}", user),
            },
        )
    filled(prompts.user, functions="", history="")
    for text in prompts.simulated.values():
        filled(text, instruction="")
    return prompts


def filled(template: str, **values: Any) -> str:
    """A prompt with its places filled in. `ConfigError` for a place that is not known."""
    try:
        return template.format(**values)
    except (KeyError, IndexError, ValueError, AttributeError) as error:
        raise ConfigError(
            f"acebench-agent: a prompt of the checkout cannot be filled in ({error!r}); "
            f"expected only {', '.join(values)}"
        ) from error


def differences(
    expected: Sequence[Mapping[str, Any]], reached: Sequence[Mapping[str, Any]]
) -> list[str]:
    """How final states differ from the ground truth, by the benchmark's end-to-end rule; empty for a success.

    There must be as many classes. Of a class that both name: each attribute that was saved must be in the ground truth;
    of a dictionary the expected keys count, of anything else all of it. A class that the ground truth names otherwise
    is not compared: it spells one `ReminderAPI` that is `ReminderApi`, with texts that no item asks for.
    """
    if len(expected) != len(reached):
        return [f"expected {len(expected)} classes, got {len(reached)}"]
    by_name = {tuple(state): state for state in reversed(reached)}
    found = []
    for state in expected:
        if tuple(state) not in by_name:
            continue
        (name,) = tuple(state)
        for attribute, value in by_name[name,][name].items():
            if attribute not in state[name]:
                found.append(f"{name}.{attribute} is not in the ground truth")
            else:
                found += _unlike(f"{name}.{attribute}", state[name][attribute], value)
    return found


def _unlike(where: str, expected: Any, reached: Any) -> list[str]:
    if isinstance(expected, dict) and isinstance(reached, dict):
        return [
            f"{where}.{key}: expected {value!r}, got {reached.get(key)!r}"
            for key, value in expected.items()
            if key not in reached or reached[key] != value
        ]
    return [] if expected == reached else [f"{where}: expected {expected!r}, got {reached!r}"]


def milestones_passed(ways: Sequence[Sequence[str]], calls: Sequence[str]) -> tuple[int, int]:
    """(milestones found in this order among the calls, milestones) of the way that fits best."""
    best = (0, 1)
    for way in ways:
        place = count = 0
        for stone in way:
            at = next(
                (i for i in range(place, len(calls)) if calls[i].strip() == stone.strip()), None
            )
            if at is None:
                break
            place, count = at + 1, count + 1
        if not way or count * best[1] >= best[0] * len(way):
            best = (count, len(way))
    return best


def _files(folder: Path, kind: str, language: str) -> tuple[Path, ...]:
    """Items, ground truth, and sources: scenarios, agent; for conversations the rules and the user as well."""
    data = folder / "data_all" / f"data_{language}"
    code = folder / "model_inference" / kind
    files = (
        data / f"data_agent_{kind}.json",
        data / "possible_answer" / f"data_agent_{kind}.json",
        code / f"{kind}_utils.py",
        code / "APIModel_agent.py",
    )
    if kind == "multi_step":
        return (*files, *files[-1:] * 2)
    return (*files, folder / "model_inference" / f"prompt_{language}.py", code / "APIModel_user.py")


def _rows(path: Path, keys: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of a file of JSON lines."""
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ConfigError(f"{path}, line {number}: not JSON: {error}") from error
        missing = [key for key in keys if not isinstance(row, dict) or key not in row]
        if missing:
            raise ConfigError(f"{path}, line {number}: {', '.join(missing)} missing")
        rows.append(row)
    return rows


def _texts(path: Path) -> dict[str, str]:
    """Texts that a source assigns at its top level, by name; nothing of it is run."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError) as error:
        raise ConfigError(f"{path} is no Python source: {error}") from error
    return {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _named(texts: Mapping[str, str], name: str, path: Path) -> str:
    if name not in texts:
        raise ConfigError(
            f"acebench-agent: {path} has no text {name}: the checkout is laid out in a way that is not known here"
        )
    return texts[name]
