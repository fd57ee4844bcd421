"""Reason codes: every way in which validation can find fault with an environment.

A reason's value is the file stem of its bad example, `tests/data/bad_envs/<code>.py`, and of the near
miss that must pass, `tests/data/near_misses/<code>.py`. To add one: add the member, its check, both
examples, and its line in `docs/reasons.md`; tests compare them all.
"""

from __future__ import annotations

from enum import StrEnum

from synthgym.contract import MAX_SOURCE_BYTES, MAX_TURNS, MIN_TURNS


class Severity(StrEnum):
    """What a finding means for the environment."""

    REFUSED = "refused"
    """It is not admitted."""
    WARNING = "warning"
    """It is admitted, and whoever uses it should know."""


class Reason(StrEnum):
    """A stable code for one thing that is wrong; `explanation` says what, `remedy` what to do."""

    explanation: str
    """What is wrong, in one line."""
    remedy: str
    """What to do about it, in one line."""
    severity: Severity

    def __new__(
        cls,
        value: str,
        explanation: str = "",
        remedy: str = "",
        severity: Severity = Severity.REFUSED,
    ) -> Reason:
        """A member: its code, its two lines, and how much it weighs."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.explanation = member.__doc__ = explanation
        member.remedy = remedy
        member.severity = severity
        return member

    # static: the text alone
    NOT_TEXT = (
        "not-text",
        "The source is not UTF-8 text.",
        "Save the file as UTF-8 without NUL characters and lone surrogates.",
    )
    SOURCE_TOO_LARGE = (
        "source-too-large",
        f"The source is longer than {MAX_SOURCE_BYTES} bytes.",
        "Shorten it: generate tables from the seed instead of writing them out.",
    )
    SYNTAX = "syntax", "The source is not Python that parses.", "Mend the line that is named."
    POLICY = (
        "policy",
        "The source uses something that sandboxed code may not use.",
        "Use what the message names instead; docs/environments.md lists what is allowed.",
    )
    NO_ENV_CLASS = (
        "no-env-class",
        "No class at the top level has a name that ends in `Env`.",
        "Name the class of the environment so, for example `LedgerEnv`.",
    )
    SEVERAL_ENV_CLASSES = (
        "several-env-classes",
        "More than one class at the top level has a name that ends in `Env`.",
        "Keep one environment a file; name helpers and bases otherwise.",
    )
    NEEDS_ARGUMENTS = (
        "needs-arguments",
        "The class cannot be made without arguments.",
        "Give every parameter of `__init__` a default.",
    )
    MISSING_RESET = (
        "missing-reset",
        "The class has no `reset(self, seed)`.",
        "Add it; it returns (observation, info).",
    )
    MISSING_STEP = (
        "missing-step",
        "The class has no `step(self, action)`.",
        "Add it; it returns (observation, reward, terminated, truncated, info).",
    )
    MISSING_SOLUTION = (
        "missing-solution",
        "The class has no `solution(self)`.",
        "Add it; it returns the actions that win from the state after reset.",
    )
    MISSING_HINT = (
        "missing-hint",
        "The class has neither `hint(self, level=2)` nor a text `hint`.",
        "Add one: a strategy for this instance that does not name the answer.",
    )
    MAX_TURNS = (
        "max-turns",
        f"The class attribute `max_turns` is not a whole number from {MIN_TURNS} to {MAX_TURNS}.",
        "Write it as a number in the class body.",
    )
    MISSING_DOCSTRING = (
        "missing-docstring",
        "Neither the module nor the class has a docstring that tells the rules.",
        "Begin the file with one.",
    )
    # load and reset
    LOAD_RAISED = (
        "load-raised",
        "Running the module or building the class raised.",
        "Run the file once yourself and mend what it raises.",
    )
    LOAD_TIMEOUT = (
        "load-timeout",
        "Running the module or building the class took too long.",
        "Move the work into `reset`, and make it less.",
    )
    RESET_RAISED = (
        "reset-raised",
        "`reset` raised.",
        "Make it work for every seed from 0 to 2**63 - 1.",
    )
    RESET_TYPE = (
        "reset-type",
        "`reset` did not return (text, dict).",
        "Return a str and a dict, as a tuple.",
    )
    RESET_EMPTY = (
        "reset-empty",
        "`reset` returned an observation without any text.",
        "Tell the situation, the goal and what can be done.",
    )
    RESET_TIMEOUT = (
        "reset-timeout",
        "`reset` took too long.",
        "Bound every loop that draws until something fits.",
    )
    # every step, whoever plays
    STEP_RAISED = (
        "step-raised",
        "`step` raised on an action of an ordinary agent.",
        "Answer an unknown command with a helpful observation and no reward.",
    )
    STEP_TYPE = (
        "step-type",
        "`step` did not return (text, number, bool, bool, dict).",
        "Return exactly these five, as a tuple, on every path.",
    )
    STEP_EMPTY = (
        "step-empty",
        "`step` returned an observation without any text, and the episode went on.",
        "Say what came of the action, even if it is nothing.",
    )
    STEP_TIMEOUT = (
        "step-timeout",
        "`step` took too long.",
        "Bound every loop by something that is known beforehand.",
    )
    INFO_NOT_JSON = (
        "info-not-json",
        "An info holds what JSON cannot carry, or more than is kept.",
        "Put only dicts with text keys, lists, text, finite numbers, bools and None there.",
    )
    REWARD_NOT_FINITE = (
        "reward-not-finite",
        "A reward is infinite or not a number.",
        "Guard the division or logarithm that it comes from.",
    )
    REWARD_OUT_OF_RANGE = (
        "reward-out-of-range",
        "The running sum of rewards left the declared range, which is [0, 1].",
        "On the win pay `1.0 - paid so far`, and take back no more than was paid.",
    )
    FULL_REWARD_WITHOUT_END = (
        "full-reward-without-end",
        "The running sum of rewards reached 1 on a step that is not terminated.",
        "Return terminated=True with the last part of the reward.",
    )
    # the witness
    SOLUTION_RAISED = (
        "solution-raised",
        "`solution` raised.",
        "Compute it from what `reset` stored; it is asked right after a reset.",
    )
    SOLUTION_TYPE = (
        "solution-type",
        "`solution` did not return a list of texts.",
        "Return a list of str, one action each.",
    )
    SOLUTION_TIMEOUT = (
        "solution-timeout",
        "`solution` took too long.",
        "Build the instance from its solution instead of searching for one.",
    )
    SOLUTION_DOES_NOT_WIN = (
        "solution-does-not-win",
        "Playing `solution()` as text does not win within `max_turns` on every seed.",
        "Play it by hand on the seed that is named; mend the rules, the parser or the witness.",
    )
    # agents that understand nothing
    NULL_AGENT_WINS = (
        "null-agent-wins",
        "An agent that only sends empty actions wins.",
        "Do not let time alone reach the goal.",
    )
    REPEATING_AGENT_WINS = (
        "repeating-agent-wins",
        "An agent that repeats one command wins.",
        "Make the goal depend on choosing between commands.",
    )
    RANDOM_AGENT_WINS = (
        "random-agent-wins",
        "An agent that sends random words of the observation wins more than 2 % of its episodes.",
        "Make wrong commands cost something, or ask for more than one word.",
    )
    SCRAPING_AGENT_WINS = (
        "scraping-agent-wins",
        "An agent that picks at random among the commands on offer wins too often.",
        "Offer more wrong ways, or fewer turns to spare.",
    )
    COPYING_AGENT_WINS = (
        "copying-agent-wins",
        "An agent that sends back pieces of what it has just read wins too often.",
        "Do not show the action that wins; ask for something that must be worked out.",
    )
    ONE_ACTION_WIN = (
        "one-action-win",
        "One action wins: the witness has only one, or a command on offer wins at once.",
        "Make the goal need at least two actions, and let the witness show them.",
    )
    # interaction
    IGNORES_ACTIONS = (
        "ignores-actions",
        "What is observed does not depend on what is done.",
        "Let each observation tell what came of the action.",
    )
    NO_STATE = (
        "no-state",
        "A step depends on its action and the turn alone: nothing that was done before matters.",
        "Keep state that actions change and that decides what follows.",
    )
    ANSWERABLE_AT_ONCE = (
        "answerable-at-once",
        "The last action of the witness wins on the first turn: who knows the answer need not act.",
        "Fine for a question to be asked of the world; else let the goal need the way.",
        Severity.WARNING,
    )
    # whatever a model may send
    FRAGILE_STEP = (
        "fragile-step",
        "`step` failed on text that a model may send.",
        "Expect any text: empty, long, any characters, numbers out of range. str.isdigit is not int.",
    )
    NONSENSE_PAID = (
        "nonsense-paid",
        "Text that is no command earns reward.",
        "Pay for commands that make progress, and for nothing else.",
    )
    # rewards
    REWARD_FARMED = (
        "reward-farmed",
        "Going in a circle, or doing the same again, is paid again and again.",
        "Pay each part of the progress once, or take back on undoing what doing paid.",
    )
    # leaks
    ANSWER_IN_OBSERVATION = (
        "answer-in-observation",
        "An agent that sends nonsense is told what only the witness knows.",
        "Do not name the answer in the reply to a wrong or unknown action.",
    )
    WITNESS_IN_OBSERVATION = (
        "witness-in-observation",
        "The actions of the witness stand in the observation, in order.",
        "Tell the rules and the situation, not the solution.",
    )
    HINT_IN_OBSERVATION = (
        "hint-in-observation",
        "An observation holds the text of the hint.",
        "Keep the hint out of observations: it is shown to hinted agents only.",
    )
    HINT_NAMES_ANSWER = (
        "hint-names-answer",
        "A hint of level 1 or 2 names what only the witness knows.",
        "Say how to find it; what it is belongs into level 3 at most.",
    )
    HINT_IS_SCRIPT = (
        "hint-is-script",
        "A hint of level 1 or 2 spells out the actions of the witness in order.",
        "Tell the strategy; a near-answer belongs into level 3.",
    )
    HINT_RAISED = (
        "hint-raised",
        "`hint` raised.",
        "Compute it from what `reset` stored, for levels 1, 2 and 3.",
    )
    HINT_TYPE = "hint-type", "`hint` did not return text.", "Return a str for every level."
    HINT_EMPTY = "hint-empty", "`hint` returned no text.", "Return some text for every level."
    HINT_TIMEOUT = "hint-timeout", "`hint` took too long.", "Do the work in `reset`."
    # seeds
    SAME_INSTANCE = (
        "same-instance",
        "Every seed gives the same instance: `reset` must use its seed.",
        "Draw the instance from `random.Random(seed)`.",
    )
    FEW_INSTANCES = (
        "few-instances",
        "The seeds give only a handful of instances, which an agent can learn by heart.",
        "Draw more of the instance from the seed.",
    )
    NOT_DETERMINISTIC = (
        "not-deterministic",
        "The same seed and actions gave something else.",
        "Draw from the seed alone; sort what comes from a set; share nothing between instances.",
    )
    # tools
    TOOL_SCHEMA = (
        "tool-schema",
        "A tool has no schema: each `tool_` method needs type hints and a docstring.",
        "Annotate every parameter with a JSON type, and say in the docstring what the tool does.",
    )
    TOOL_RAISED = (
        "tool-raised",
        "A tool raised something other than ToolError on arguments of its own schema.",
        "Raise ToolError with a text for the agent, or return one.",
    )
    CRITERION_MET_AT_RESET = (
        "criterion-met-at-reset",
        "The criterion of an instruction is met before anything is done.",
        "Test a change of state that only the instruction asks for.",
    )
    CRITERION_RAISED = (
        "criterion-raised",
        "The criterion of an instruction raised.",
        "Let it give True or False in every state, also before the instruction is given.",
    )
    CRITERION_UNREACHED = (
        "criterion-unreached",
        "The witness does not meet the criterion of an instruction.",
        "Give the agent tools that can reach it, and a witness that does.",
    )
    # cost
    STEP_SLOW = (
        "step-slow",
        "Steps take too long for training.",
        "Do less in `step`: precompute in `reset`, or bound the search.",
    )
    MEMORY_HEAVY = (
        "memory-heavy",
        "Two dozen episodes at once do not fit into a quarter of the memory quota.",
        "Keep less for each instance.",
    )
    MEMORY = "memory", "The memory quota was reached.", "Keep less; bound what grows."
    CRASH = (
        "crash",
        "The worker process died, or sent what is not a reply.",
        "Bound recursion, and do not ask the interpreter for the impossible.",
    )
    UNDECIDED = (
        "undecided",
        "A check could not decide, and what is not proved is refused.",
        "See the detail: most often there is far too much text to judge.",
    )
