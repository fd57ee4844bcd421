"""ACEBench, agent part: tasks on a simulated phone and a travel desk, judged by the state at the end.

Chen et al., "ACEBench: Who Wins the Match Point in Tool Usage?" (2025). The benchmark is no package: its data,
scenarios and prompts come from a checkout that the user names, and its scenarios run in a process of their own
(`acebench_worker`). `multi_step` gives a task at once; in `multi_turn` a simulated user, another model, tells it bit by
bit. Score 1 where the final state is that of the ground truth (end-to-end accuracy); milestones stand in the detail.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from spade_loop.backends.endpoint import EndpointWriter
from spade_loop.errors import ConfigError, ModelError
from spade_loop.evaluation.suite import Attempt, Failure, Item, Say, spread
from spade_loop.evaluation.suites.acebench_data import (
    KINDS,
    SOURCE,
    Prompts,
    Task,
    check_checkout,
    differences,
    filled,
    milestones_passed,
    read_prompts,
    read_tasks,
)
from spade_loop.evaluation.suites.calls import Call, NoCallsError, offered, read_calls, spoken
from spade_loop.evaluation.suites.children import (
    HERE,
    Child,
    ChildError,
    Crew,
    Limits,
    own_faults,
)
from spade_loop.speaking import Decoding, Speaker
from spade_loop.types import Message
from synthgym.ids import did_you_mean

NO_CALL: Final = "no-call"
"""Failure: no function was called at all."""
MESSAGES: Final = 40
"""Of one conversation, those of functions and user among them, as in the benchmark."""
END: Final = "finish conversation"
_GRADING: Final = "1"
_USER_DECODING: Final = Decoding(max_tokens=1000)
"""The benchmark's, whose temperature is 0.001."""
_LIMITS: Final = Limits(seconds=60.0, reads=True, required=False)
_OPENING: Final = "What can I do for you?"
_NO_QUESTIONS: Final = (
    "There is nobody to ask: solve the task with what you know, by calling functions."
)


def suite(
    *,
    data: Path | None = None,
    categories: tuple[str, ...] = KINDS,
    language: Literal["en", "zh"] = "en",
    user_model: str = "",
    user_endpoint: str = "",
    user_api_key_env: str = "",
) -> AceBenchAgent:
    """The suite, over the checkout `data`. `multi_turn` needs a user: a model behind an OpenAI-compatible endpoint.

    `ModelError` without a checkout, `ConfigError` for one that is none, for unknown categories, and for conversations
    without a user.
    """
    for category in categories:
        if category not in KINDS:
            raise ConfigError(
                f"acebench-agent has no category {category!r}{did_you_mean(category, KINDS)} "
                f"(it has: {', '.join(KINDS)})"
            )
    if not categories:
        raise ConfigError(f"acebench-agent needs a category: {', '.join(KINDS)}")
    if data is None:
        raise ModelError(
            "acebench-agent needs the benchmark's data and scenarios, which are in no package: "
            f"`git clone {SOURCE}`, then give --suite-option data=DIR"
        )
    if "multi_turn" in categories and not (user_model and user_endpoint):
        raise ConfigError(
            "acebench-agent: in multi_turn a model plays the user (the benchmark's is gpt-4o): give --suite-option "
            "user_model=NAME and user_endpoint=URL (and user_api_key_env=VARIABLE), or play categories=multi_step alone"
        )
    check_checkout(data, categories, language)
    user = None
    if "multi_turn" in categories:
        user = Speaker(
            EndpointWriter(user_endpoint, user_model, api_key_env=user_api_key_env), rows=1
        )
    return AceBenchAgent(data, tuple(dict.fromkeys(categories)), language, user)


@dataclass(slots=True)
class _Conversation:
    """One attempt under way."""

    task: Task
    child: Child
    functions: frozenset[str]
    history: str = ""
    """What the agent is shown, as the benchmark writes it."""
    shown: list[Message] = field(default_factory=list)
    """The transcript."""
    calls: list[str] = field(default_factory=list)
    """Replies that called functions, as they were written."""
    spent: int = 0
    """Messages so far."""
    cut: bool = False
    ended: bool = False

    def add(self, who: str, message: str) -> None:
        """One more message of the conversation."""
        self.shown.append(Message("assistant" if who == "agent" else "user", message))
        self.ended = self.spent > 1 and END in message
        self.spent += 1

    @property
    def over(self) -> bool:
        return self.ended or self.spent >= MESSAGES


class AceBenchAgent:
    """Suite `acebench-agent`; see the module."""

    name = "acebench-agent"
    decoding = Decoding(max_tokens=16_384, temperature=0.7)
    samples = 1

    def __init__(
        self, checkout: Path, kinds: Sequence[str], language: str, user: Speaker | None
    ) -> None:
        self._checkout = checkout.resolve()
        self._kinds = tuple(kinds)
        self._language = language
        self._user = user
        self._crew = Crew()
        self._prompts = {kind: read_prompts(checkout, kind, language) for kind in kinds}
        self.version = f"{_GRADING}+{language}" + (f"+user-{user.name}" if user else "")
        self._tasks = {kind: read_tasks(checkout, kind, language) for kind in kinds}
        self._check_scenarios()

    def items(self, limit: int | None) -> Sequence[Item]:
        """The items of the categories, in the order of the files."""
        items = [
            Item(id=str(task.entry["id"]), category=kind, content=task)
            for kind in self._kinds
            for task in self._tasks[kind]
        ]
        return spread(items, limit)

    def play(self, item: Item, say: Say, seed: int) -> Attempt:
        """Let the agent work until it, or the user, ends the conversation; then compare the states."""
        task: Task = item.content
        talk: _Conversation | None = None
        try:
            with self._child() as child:
                functions = self._opened(child, item.category, task)
                talk = _Conversation(task, child, functions)
                if item.category == "multi_step":
                    self._steps(talk, say)
                else:
                    self._turns(talk, say, seed)
                states = child.ask({"do": "states"})["states"]
        except ChildError as error:
            return Attempt.failed(Failure.CHECKER, talk.shown if talk else (), str(error))
        return _graded(talk, states)

    def close(self) -> None:
        """End what is under way; ask the simulated user nothing more."""
        self._crew.close()
        if self._user is not None:
            self._user.close()

    def _steps(self, talk: _Conversation, say: Say) -> None:
        """A task told at once. Like the benchmark's, the history holds results, and not the agent's own messages."""
        prompts = self._prompts["multi_step"]
        question = str(talk.task.entry["question"])
        talk.history = f"user:{question}\n"
        self._begin(talk, prompts, "")
        while not talk.over:
            text = self._agent(talk, say, prompts, "")
            if talk.over:
                return
            try:
                calls = read_calls(text)
            except NoCallsError:
                calls = ()
            result = _made(talk, text, calls) if calls else _NO_QUESTIONS
            talk.history += f"execution result:{result}\n"
            talk.add("execution", result)

    def _turns(self, talk: _Conversation, say: Say, seed: int) -> None:
        """A conversation: what the agent says without calling a function goes to the user."""
        assert self._user is not None
        prompts = self._prompts["multi_turn"]
        involved = talk.task.entry["involved_classes"]
        rules = "".join(text for name, text in prompts.rules.items() if name in involved)
        told = next((text for name, text in prompts.simulated.items() if name in involved), "")
        user = _User(self._user, filled(told, instruction=talk.task.entry["question"]), seed)
        talk.history = f"user:{user.answer(_OPENING)}\n"
        self._begin(talk, prompts, rules)
        while not talk.over:
            text = self._agent(talk, say, prompts, rules)
            talk.history += f"agent:{text}\n"
            if talk.over:
                return
            try:
                calls = read_calls(text) if "[" in text else ()
            except NoCallsError:
                calls = ()
            who, answer = (
                ("execution", _made(talk, text, calls)) if calls else ("user", user.answer(text))
            )
            talk.history += f"{who}:{answer}\n"
            talk.add(who, answer)

    def _check_scenarios(self) -> None:
        """Refuse a checkout whose scenarios do not run, with `ConfigError`: no item could be right."""
        for kind, tasks in self._tasks.items():
            try:
                with self._child() as child:
                    for task in tasks[:1]:
                        self._opened(child, kind, task)
            except ChildError as error:
                raise ConfigError(
                    f"acebench-agent: the scenarios in {self._checkout} cannot be used: {error}"
                ) from error

    def _opened(self, child: Child, kind: str, task: Task) -> frozenset[str]:
        """Begin an item; the names of its functions."""
        request = {"do": "open", "kind": kind, "language": self._language, "entry": task.entry}
        return frozenset(child.ask(request)["functions"])

    def _child(self) -> Child:
        with own_faults():
            command = (str(HERE / "acebench_worker.py"), str(self._checkout))
            return Child(command, _LIMITS, self._crew)

    def _begin(self, talk: _Conversation, prompts: Prompts, rules: str) -> None:
        talk.shown += self._chat(talk, prompts, rules)

    def _agent(self, talk: _Conversation, say: Say, prompts: Prompts, rules: str) -> str:
        """The agent's next message: it is asked anew each time, with the history as text."""
        reply = say(self._chat(talk, prompts, rules))
        talk.cut = talk.cut or not reply.stopped
        text = spoken(reply.text)
        talk.add("agent", text)
        return text

    def _chat(self, talk: _Conversation, prompts: Prompts, rules: str) -> list[Message]:
        functions = talk.task.entry["function"]
        conversation = bool(prompts.simulated)  # whose system message has no places to fill
        system = prompts.system if conversation else filled(prompts.system, time="")
        return [
            Message("system", system + rules),
            Message("user", filled(prompts.user, functions=functions, history=talk.history)),
        ]


class _User:
    """The simulated user of one conversation."""

    def __init__(self, speaker: Speaker, told: str, seed: int) -> None:
        self._speaker = speaker
        self._chat = [Message("system", told)]
        self._seed = seed

    def answer(self, message: str) -> str:
        self._chat.append(Message("user", message.removeprefix("agent:").removeprefix("user:")))
        text = spoken(self._speaker.say(self._chat, _USER_DECODING, self._seed).text)
        self._chat.append(Message("assistant", text))
        return text


def _made(talk: _Conversation, text: str, calls: Sequence[Call]) -> str:
    """Make the calls of a reply; what they came to, as the benchmark writes it."""
    talk.calls.append(text)
    checked = [offered(call, talk.functions) for call in calls]
    able = [call.rendered() for call in checked if not call.problem]
    results = iter(talk.child.ask({"do": "call", "calls": able})["results"])
    return str(
        [
            f"Error during execution: {call.problem}" if call.problem else _read(next(results))
            for call in checked
        ]
    )


def _read(result: str) -> Any:
    try:
        return json.loads(result)
    except ValueError:
        return result


def _graded(talk: _Conversation, states: Sequence[Mapping[str, Any]]) -> Attempt:
    passed, stones = milestones_passed(talk.task.milestones, talk.calls)
    wrong = differences(talk.task.states, states) if talk.calls else ["no function was called"]
    detail = f"{passed} of {stones} milestones" + "".join(f"; {one[:200]}" for one in wrong[:5])
    if not wrong:
        return Attempt(score=1.0, correct=True, transcript=tuple(talk.shown), detail=detail)
    kinds: tuple[tuple[bool, str], ...] = (
        (talk.cut, Failure.CUT),
        (not talk.calls, NO_CALL),
        (not talk.ended, Failure.TURNS),
    )
    failure = next((kind for holds, kind in kinds if holds), "")
    return Attempt(
        score=0.0, correct=False, transcript=tuple(talk.shown), failure=failure, detail=detail
    )
