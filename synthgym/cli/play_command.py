"""`synthgym play`: a person plays in the terminal."""

from __future__ import annotations

import sys
from typing import Final

from synthgym.cli.entries import find_entry, open_snapshot
from synthgym.cli.output import print_text
from synthgym.envs import SynthEnv, parse_action
from synthgym.envs.episode import Transition

_HELP: Final = "(type a command; :hint shows the hint, :quit leaves)"


def run(path: str | None, wanted: str, seed: int | None, *, with_hint: bool) -> None:
    """Play one episode: commands come from standard input, its end leaves."""
    snapshot = open_snapshot(path)
    env = SynthEnv(snapshot.spec(find_entry(snapshot, wanted).digest))
    try:
        observation, info = env.reset(seed=seed)
        print_text(f"{env.spec_card.title or env.spec_card.env_id} [seed {info['seed']}] {_HELP}\n")
        print_text(observation)
        if with_hint:
            print_text(f"\nHint: {env.hint}")
        _play(env)
    finally:
        env.close()


def _play(env: SynthEnv) -> None:
    paid = 0.0
    while (command := _read_command()) is not None:
        if command == ":quit":
            return
        if command == ":hint":
            print_text(f"Hint: {env.hint}")
            continue
        if command.startswith(":"):
            print_text(f"{command!r} is not one of mine. {_HELP}")
            continue
        transition = env.step(_action(env, command))
        paid += transition.reward
        print_text(transition.observation)
        if transition.terminated or transition.truncated:
            print_text(_ending(transition, paid))
            return


def _action(env: SynthEnv, command: str) -> str:
    """The command; where the environment takes calls, the call that it spells as a model would."""
    if env.spec_card.record.action_format != "tools":
        return command
    return parse_action(command, "tools").action or command


def _read_command() -> str | None:
    """The next line without its end; None at the end of the input."""
    prompt = "\n> " if sys.stdin.isatty() else ""
    try:
        return input(prompt).strip()
    except EOFError:
        return None


def _ending(transition: Transition, paid: float) -> str:
    turns = transition.info["turn"]
    if "fault" in transition.info:
        fault = transition.info["fault"]
        return f"\nThe environment failed: {fault['kind']} in {fault['call']}."
    if transition.info["success"]:
        return f"\nYou won in {turns} turns."
    how = "lost" if transition.terminated else "ran out of turns"
    return f"\nYou {how} after {turns} turns; you were paid {paid:g} of 1."
