"""What an environment with tools is to be about: an everyday domain, a kind of task, and how much there is of it.

Method: SPADE (arXiv 2608.19197) draws one domain and one kind for every design. The words are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, get_args

import numpy as np

from spade_loop.errors import ConfigError
from synthgym.contract import TOOL_SKILLS
from synthgym.ids import did_you_mean

Kind = Literal["execute", "read-then-write", "missing-argument", "out-of-scope"]

KIND_WEIGHTS: Final[Mapping[Kind, int]] = MappingProxyType(
    {"execute": 3, "read-then-write": 2, "missing-argument": 1, "out-of-scope": 1}
)
"""How often each kind is drawn, as shares of their sum."""
USER_MESSAGES: Final = range(3, 6)
"""How many instructions the user gives."""
DISTRACTORS: Final = range(1, 3)
"""How many tools help with none of them."""
DOMAINS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "shop orders": "orders with items and a delivery state; changed, sent back, paid back, sent to another address",
        "trips": "flights and hotel nights with prices and seats; searched, booked, moved, cancelled under fare rules",
        "phone plans": "lines with a plan, a data allowance and extras; looked up, switched, topped up, blocked",
        "bank accounts": "accounts, cards and standing orders; balances read, sums moved within limits, cards locked",
        "calendar": "appointments with people, rooms and hours; free times found, entries made, moved, shared",
        "files": "folders, files and their owners; listed, read, moved, renamed, archived, their access changed",
        "shopping cart": "products with stock and prices, a cart, vouchers; filled, compared, reduced, checked out",
        "support tickets": "tickets with a customer, an urgency and a team; found, read, assigned, merged, closed",
        "smart home": "rooms with lamps, heating, blinds and scenes; read, set, put on a schedule, grouped",
        "project tracker": "tasks with owners, states and what they depend on; created, assigned, linked, moved on",
    }
)
"""The domains by name: what there is, and what is done with it."""
_KIND_TEXTS: Final[Mapping[Kind, str]] = MappingProxyType(
    {
        "execute": "Everything is said: each instruction names what it is about and the values to be written, and the "
        "difficulty lies in the right tools, their order, and ids that must be looked up.",
        "read-then-write": "Every change needs something read first: which record is meant, or the value to be "
        "written, follows from what several reads give together.",
        "missing-argument": "One of the instructions leaves out a value without which its tool cannot be called. No "
        "record holds it; it must be asked for, and only a tool that asks the user reveals it.",
        "out-of-scope": "One of the instructions is for something that none of the tools can do. It must be declined "
        "with the tool for that; the others are carried out as usual.",
    }
)


@dataclass(frozen=True, slots=True)
class ToolTask:
    """One task for a designer of environments with tools."""

    domain: str
    """A name in `DOMAINS`."""
    kind: Kind
    user_messages: int
    """Instructions that the user gives, one after another: 3 to 5."""
    distractors: int
    """Tools that work and help with none of the instructions: 1 or 2."""

    def __post_init__(self) -> None:
        """`ConfigError` for a domain or kind that there is not, and for numbers out of range."""
        if self.domain not in DOMAINS:
            near = did_you_mean(self.domain, DOMAINS)
            raise ConfigError(f"unknown domain {self.domain!r}{near} (known: {', '.join(DOMAINS)})")
        if self.kind not in get_args(Kind):
            known = ", ".join(get_args(Kind))
            raise ConfigError(f"unknown kind of task {self.kind!r} (known: {known})")
        for name, value, legal in (
            ("user_messages", self.user_messages, USER_MESSAGES),
            ("distractors", self.distractors, DISTRACTORS),
        ):
            if value not in legal:
                raise ConfigError(f"{name} must be {legal[0]} to {legal[-1]}, got {value}")

    def text(self) -> str:
        """What a designer is told, in a few lines: the value of `$task` in the prompt `designer_tools`."""
        tools = "one tool helps" if self.distractors == 1 else f"{self.distractors} tools help"
        return (
            f"- Domain: {self.domain} ({DOMAINS[self.domain]}).\n"
            f"- Kind: {self.kind}. {_KIND_TEXTS[self.kind]}\n"
            f"- The user gives {self.user_messages} instructions, one after another, each a single wish. "
            f"Besides the tools that are needed, {tools} with none of them."
        )


def draw_task(rng: np.random.Generator, skill: str) -> ToolTask:
    """A task for `skill`; equal generators give equal tasks.

    The domain and the two numbers are drawn uniformly, the kind by `KIND_WEIGHTS`, always in the same number of draws.
    `ConfigError` for a skill that is none of `synthgym.contract.TOOL_SKILLS`.
    """
    if skill not in TOOL_SKILLS:
        near = did_you_mean(skill, TOOL_SKILLS)
        raise ConfigError(
            f"a task with tools is drawn for a skill of tool use, got {skill!r}{near} "
            f"(known: {', '.join(TOOL_SKILLS)})"
        )
    urn = [kind for kind, weight in KIND_WEIGHTS.items() for _ in range(weight)]
    return ToolTask(
        domain=list(DOMAINS)[int(rng.integers(len(DOMAINS)))],
        kind=urn[int(rng.integers(len(urn)))],
        user_messages=USER_MESSAGES[int(rng.integers(len(USER_MESSAGES)))],
        distractors=DISTRACTORS[int(rng.integers(len(DISTRACTORS)))],
    )
