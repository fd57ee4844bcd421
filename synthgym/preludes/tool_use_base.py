"""`ToolUseBaseEnv`: the base class that tool-use environments of the SPADE pools expect to find.

Those sources subclass it without importing it: they fill `_tools`, `_state` and `_expected_answer` in `reset`, write
`tool_` methods and `solution`, and leave the rest to it. Written from the published description of that interface
(arXiv 2608.19197 and its prompts); what is not described there is kept plain.
"""

from __future__ import annotations

import json
import re
from typing import Any

_CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)


class ToolUseBaseEnv:
    """Base class of tool-use environments of the SPADE pools."""

    def __init__(self, max_turns: int = 10, **kwargs: Any) -> None:  # noqa: ARG002 - some pass more
        """Every attribute that a subclass may rely on before its `reset`."""
        self.max_turns = max_turns
        self.turn_count = 0
        self._tools: dict[str, Any] = {}
        self._state: dict[str, Any] = {}
        self._expected_answer: Any = ""
        self._call_history: list[Any] = []
        self._user_messages: list[str] = []
        self._message_criteria: list[Any] = []
        self._current_msg = 0
        self.tool_errors: list[str] = []
        """For the validator: what tools raised."""

    def criteria_states(self) -> list[str]:
        """For the validator: of each criterion whether it is met now, or that it raises."""
        states = []
        for criterion in self._message_criteria:
            try:
                states.append("met" if criterion(self._state) else "unmet")
            except Exception as error:
                if isinstance(error, MemoryError):
                    raise
                states.append(f"raised {type(error).__name__}")
        return states

    def get_tools(self) -> list[dict[str, Any]]:
        """The tools as OpenAI function schemas."""
        return [
            {
                "type": "function",
                "function": {
                    "name": name,
                    "description": tool.get("description", ""),
                    "parameters": tool.get("parameters", {"type": "object", "properties": {}}),
                },
            }
            for name, tool in self._tools.items()
        ]

    def execute_tool(self, name: str, arguments: dict[str, Any]) -> str:
        """Call one tool; whatever it raises becomes text."""
        method = getattr(self, f"tool_{name}", None)
        if name not in self._tools or method is None:
            return f"Error: unknown tool {name!r}. Available: {', '.join(self._tools)}."
        self._call_history.append({"name": name, "arguments": arguments})
        try:
            result = method(**arguments)
        except Exception as error:
            if isinstance(error, MemoryError):
                raise
            self.tool_errors.append(f"{name}: {type(error).__name__}")
            return f"Error: {type(error).__name__}: {error}"
        return result if isinstance(result, str) else json.dumps(result, default=str)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """An answer in `<answer>` ends the episode when it is right; calls in `<tool_call>` are carried out."""
        self.turn_count += 1
        late = self.turn_count >= self.max_turns
        answers = _ANSWER.findall(action)
        if answers:
            if self._check_answer(answers[-1].strip()):
                return "Correct.", 1.0, True, False, {"success": True}
            return "Wrong answer." + self._open_step(), 0.0, False, late, {}
        outputs = []
        for text in _CALL.findall(action):
            try:
                call = json.loads(text)
                outputs.append(
                    self.execute_tool(str(call["name"]), dict(call.get("arguments", {})))
                )
            except (ValueError, TypeError, KeyError):
                outputs.append(
                    'Error: a call is <tool_call>{"name": ..., "arguments": {...}}</tool_call>.'
                )
        if outputs:
            return "\n".join(outputs), 0.0, False, late, {}
        text = "Call a tool with <tool_call>...</tool_call> or answer with <answer>...</answer>."
        return text, -0.1, False, late, {}

    def _open_step(self) -> str:
        if self._current_msg < len(self._user_messages):
            return f" Still open: {self._user_messages[self._current_msg]}"
        return ""

    def _check_answer(self, answer: str) -> bool:
        """Equal but for case, or equal numbers to within 0.01 without `$` and `,`."""
        expected = str(self._expected_answer).strip()
        if answer.strip().lower() == expected.lower():
            return True
        try:
            one, other = (
                float(text.replace("$", "").replace(",", "")) for text in (answer, expected)
            )
        except ValueError:
            return False
        return abs(one - other) <= 0.01

    def solution(self) -> str:
        """The answer; subclasses tell the calls as well."""
        return f"ANSWER: {self._expected_answer}"
