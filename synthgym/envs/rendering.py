"""Transcripts for people, without characters that could drive a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Final

from synthgym.envs.episode import Transition

_HIDDEN_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})


def printable(text: str) -> str:
    """`text` with control, format (bidirectional), surrogate and unassigned characters replaced.

    Newlines and tabs stay. Text of generated code goes through here before it reaches a terminal.
    """
    return "".join(
        char
        if char in "\n\t" or unicodedata.category(char) not in _HIDDEN_CATEGORIES
        else "\N{REPLACEMENT CHARACTER}"
        for char in text
    )


def render_reset(seed: int, observation: str) -> str:
    """The head of a transcript."""
    return f"[seed {seed}]\n{printable(observation)}\n"


def render_turn(action: str, transition: Transition) -> str:
    """One turn of a transcript: the action, what came back, the reward if any, the end."""
    lines = [f"> {printable(action)}", printable(transition.observation)]
    if transition.reward:
        lines.append(f"[reward {transition.reward:g}]")
    if "fault" in transition.info:
        fault = transition.info["fault"]
        lines.append(f"[fault: {fault['kind']} in {fault['call']}]")
    elif transition.terminated:
        lines.append("[success]" if transition.info["success"] else "[lost]")
    elif transition.truncated:
        lines.append("[out of turns]")
    return "\n".join(lines) + "\n"


def render_transcript(
    seed: int, first_observation: str, turns: Sequence[tuple[str, Transition]]
) -> str:
    """The whole episode so far."""
    parts = [render_reset(seed, first_observation)]
    parts += [render_turn(action, transition) for action, transition in turns]
    return "\n".join(parts)
