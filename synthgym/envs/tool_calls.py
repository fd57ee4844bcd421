"""Tool calls out of a model's reply, and the one way in which they are written as an action.

Models write calls as JSON or as tags. What counts as a call, in this order:

- blocks `<tool_call>...</tool_call>` that hold JSON or functions, and functions without a block. A block
  that lacks its end is taken when all it holds is complete. Beside tags, JSON elsewhere is prose;
- without tags, every JSON object or list of objects that is a call, fenced or not, in the order of the text. A tag
  in a JSON string is a part of the string.

A JSON call is `{"name": ..., "arguments": {...}}`, `{"function": {the same}}`, a list of those, or an object that
has the list under `calls` or `tool_calls`. Arguments may be an object written as a JSON string. Beside name and
arguments only labels (`id`, `type`, `index`, `call_id`, `status`) may stand: anything else might be an argument.
A function is `<function=name>` with `<parameter=x>value</parameter>` for each argument, or with one JSON object.
A parameter's value is JSON when it reads as JSON (`5`, `true`, `[1, 2]`, `"5"`), else the text between the tags
without one line feed at either end.

Nothing is repaired and nothing is taken in part: when one call is malformed, the reply is. Other JSON is prose, unless
it looks like a call that went wrong: then it spoils the calls beside it, and the reply when there is no answer.

Without any call the reply may be a final answer: the last `{"answer": ...}` with a text or a number, else the last
`<answer>...</answer>`, else the last box.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from synthgym.contract import MAX_ACTION_CHARS
from synthgym.envs.forms import Form, ParseStatus, find_answer, find_box, most_informative
from synthgym.envs.json_reader import JsonReader, Outcome
from synthgym.errors import ConfigError

MAX_ARGUMENT_NESTING: Final = 32
"""Objects and lists in one another within the arguments of a call."""

Call = dict[str, Any]
"""`name` and `arguments`."""
Span = tuple[int, int]

MAX_OBJECTS: Final = 256
"""Pieces of JSON in a reply without tags, and broken ones before a tag. A reply with more is malformed."""
_LABELS: Final = frozenset({"id", "type", "index", "call_id", "status"})
_LISTS: Final = ("calls", "tool_calls")
_CALL_KEYS: Final = frozenset({"name", "arguments", "function", "answer", *_LISTS})
_TAG: Final = re.compile(r"<tool_call>|<function=")
_STRAY: Final = re.compile(r"</tool_call>|</function>|<parameter=|</parameter>")
_FUNCTION: Final = re.compile(r"<function=([^<>\n]*+)>")
_PARAMETER: Final = re.compile(r"<parameter=([^<>\n]*+)>")
_INSIDE_VALUE: Final = re.compile(r"</?tool_call>|<function=|</function>|<parameter=")
_EDGE: Final = re.compile(r"\A\r?\n|\r?\n\Z")
_SPACE: Final = re.compile(r"\s*+")
_CALL_KEY: Final = r"['\"\u201c]?(?:name|arguments|function|calls|tool_calls)\b['\"\u201d]?"
_OBJECT: Final = re.compile(
    rf'(?:\[\s*+)?\{{\s*+(?:(?P<call>{_CALL_KEY})|"(?:[^"\\]++|\\.)*+")\s*+:', re.DOTALL
)
"""Where JSON begins: an object with a first key, or a list of such objects."""


class _MalformedError(Exception):
    """A call that began with a tag cannot be read beyond `end`."""

    def __init__(self, end: int) -> None:
        super().__init__(end)
        self.end = end


def encode_action(calls: Sequence[Mapping[str, Any]]) -> str:
    """The action of calls `{"name": str, "arguments": object}`: canonical JSON.

    Sorted keys, no white space, no escapes but those that JSON demands. `ConfigError` when a reply
    could not say the same: no call, other keys, no name, arguments that are not plain JSON.
    """
    try:
        action = _canonical({"calls": [dict(call) for call in calls]})
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"expected calls that JSON can hold: {error}") from error
    if find_tool(action).action != action:
        raise ConfigError(
            "expected calls {'name': str, 'arguments': object} of plain JSON and at most "
            f"{MAX_ACTION_CHARS} characters, got {action:.200}"
        )
    return action


def encode_answer(text: str) -> str:
    """The action of a final answer: `{"answer": text}` as canonical JSON."""
    return _canonical({"answer": text})


def find_tool(text: str, joints: Sequence[int] = ()) -> Form:
    r"""The calls of `text` as one action, or its answer: `{"answer": ...}`, `<answer>` or a box.

    `joints` are the places, in order, where thinking was taken out. A call that reaches over one is malformed:
    what is left of it is not what was written. The span of a malformed call goes to where reading it stopped.
    """
    reader = JsonReader()
    return _find_tagged(text, joints, reader) or _find_untagged(text, joints, reader)


def _canonical(action: Mapping[str, Any]) -> str:
    return json.dumps(
        action, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def _acted(action: str, span: Span | None) -> Form:
    if len(action) > MAX_ACTION_CHARS:
        return Form(ParseStatus.TOO_LONG, "", span)
    return Form(ParseStatus.OK, action, span)


def _cut(joints: Sequence[int], start: int, end: int) -> bool:
    """Whether thinking was taken out between `start` and `end`."""
    return bisect_right(joints, start) < bisect_left(joints, end)


# --- JSON ---


def _calls_of(value: object, reader: JsonReader) -> list[Call] | None:
    """The calls that a JSON value stands for, at least one; None when any of it is something else."""
    if isinstance(value, dict) and not value.keys().isdisjoint(_LISTS):
        keys = value.keys() & _CALL_KEYS
        value = value[keys.pop()] if len(keys) == 1 else None
    elif isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        return None
    calls = [call for item in value if (call := _call_of(item, reader)) is not None]
    return calls if 0 < len(calls) == len(value) else None


def _call_of(item: object, reader: JsonReader) -> Call | None:
    if isinstance(item, dict) and "function" in item and item.keys() <= _LABELS | {"function"}:
        item = item["function"]
    if not (isinstance(item, dict) and item.keys() <= _LABELS | {"name", "arguments"}):
        return None
    name, arguments = item.get("name"), item.get("arguments")
    if isinstance(arguments, str):
        arguments = reader.read_whole(arguments).value
    if not (isinstance(name, str) and name.strip() and isinstance(arguments, dict)):
        return None
    if _nesting(arguments) > MAX_ARGUMENT_NESTING:
        return None
    return {"arguments": arguments, "name": name}


def _nesting(value: object) -> int:
    """Levels of objects and lists; the reader has bounded them."""
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list):
        return 0
    return 1 + max(map(_nesting, value), default=0)


@dataclass(slots=True)
class _Json:
    """The JSON of a text, sorted."""

    calls: list[Call] = field(default_factory=list)
    called: list[Span] = field(default_factory=list)
    answer: tuple[str, Span] | None = None
    """The last one."""
    doubtful: Span | None = None
    """The first that may have been meant as a call, or as data that is quoted."""
    malformed: Span | None = None
    """One that was meant as a call and is no JSON; nothing behind it is read."""
    rest: str = ""
    """The text, with spaces in place of all JSON."""


def _read_json(text: str, joints: Sequence[int], reader: JsonReader) -> _Json:
    found = _Json()
    pieces: list[str] = []
    position = number = 0
    while (begin := _OBJECT.search(text, position)) is not None:
        reading = reader.read(text, begin.start())
        number += 1
        span = (begin.start(), max(reading.end, begin.start() + 1))
        pieces += [text[position : span[0]], " " * (span[1] - span[0])]
        position = span[1]
        sound = reading.outcome is Outcome.VALUE and not _cut(joints, *span)
        if number > MAX_OBJECTS or (begin["call"] and not sound):
            found.malformed = span
            break
        if sound:
            _sort(found, reading.value, span, reader)
        else:
            found.doubtful = found.doubtful or span
    found.rest = "".join([*pieces, text[position:]])
    return found


def _sort(found: _Json, value: object, span: Span, reader: JsonReader) -> None:
    calls = _calls_of(value, reader)
    if calls is not None:
        found.calls += calls
        found.called.append(span)
    elif (answer := _answer_of(value)) is not None:
        found.answer = (answer, span)
    else:
        objects = value if isinstance(value, list) else [value]
        if any(isinstance(item, dict) and item.keys() & _CALL_KEYS for item in objects):
            found.doubtful = found.doubtful or span


def _answer_of(value: object) -> str | None:
    """The text of `{"answer": ...}`, which may be a number; None for anything else."""
    answer = value["answer"] if isinstance(value, dict) and value.keys() == {"answer"} else None
    if isinstance(answer, int | float) and not isinstance(answer, bool):
        return json.dumps(answer)
    return answer if isinstance(answer, str) else None


def _find_untagged(text: str, joints: Sequence[int], reader: JsonReader) -> Form:
    found = _read_json(text, joints, reader)
    bad = found.malformed or (found.doubtful if found.calls else None)
    if bad is not None:
        return Form(ParseStatus.MALFORMED_CALL, "", bad)
    if found.calls:
        span = (found.called[0][0], found.called[-1][1])
        return _acted(_canonical({"calls": found.calls}), span)
    stray = _STRAY.search(found.rest)
    forms = [_answered(find(found.rest, text)) for find in (find_answer, find_box)]
    if found.answer is not None:
        answer, span = found.answer
        empty = Form(ParseStatus.EMPTY, "", span)
        forms.insert(0, _acted(encode_answer(answer), span) if answer.strip() else empty)
    if found.doubtful is not None:
        forms.append(Form(ParseStatus.MALFORMED_CALL, "", found.doubtful))
    elif stray is not None:
        forms.append(Form(ParseStatus.MALFORMED_CALL, "", stray.span()))
    for form in forms:
        if form.status is ParseStatus.OK:
            return form
    return most_informative(forms) or Form(ParseStatus.NO_ACTION)


def _answered(form: Form) -> Form:
    if form.status is not ParseStatus.OK:
        return form
    return _acted(encode_answer(form.action), form.span)


# --- tags ---


def _find_tagged(text: str, joints: Sequence[int], reader: JsonReader) -> Form | None:
    """The calls that stand in tags; None without any tag that opens one."""
    calls: list[Call] = []
    first, end = 0, 0
    while (tag := _next_tag(text, end, reader)) is not None:
        start = tag.start()
        if reader.broken > MAX_OBJECTS:
            return Form(ParseStatus.MALFORMED_CALL, "", tag.span())
        first = first if calls else start
        try:
            if tag.group() == "<tool_call>":
                found, end = _read_block(text, tag.end(), reader)
            else:
                call, end = _read_function(text, start, reader)
                found = [call]
        except _MalformedError as error:
            return Form(ParseStatus.MALFORMED_CALL, "", (start, error.end))
        if _cut(joints, start, end):
            return Form(ParseStatus.MALFORMED_CALL, "", (start, end))
        calls += found
    return _acted(_canonical({"calls": calls}), (first, end)) if calls else None


def _next_tag(text: str, position: int, reader: JsonReader) -> re.Match[str] | None:
    """The next tag that opens a call and is no part of a JSON string."""
    tag = _TAG.search(text, position)
    while tag is not None and reader.broken <= MAX_OBJECTS:
        begin = _OBJECT.search(text, position, tag.start())
        if begin is None:
            break
        position = max(reader.read(text, begin.start()).end, begin.end())
        if position > tag.start():
            tag = _TAG.search(text, position)
    return tag


def _read_block(text: str, position: int, reader: JsonReader) -> tuple[list[Call], int]:
    """(calls, where the block ends), from behind its opening tag."""
    calls: list[Call] = []
    while True:
        last, position = position, _skip(text, position)
        if calls and text.startswith("</tool_call>", position):
            return calls, position + len("</tool_call>")
        if calls and (position == len(text) or text.startswith("<tool_call>", position)):
            return calls, last
        if text.startswith("<function=", position):
            call, position = _read_function(text, position, reader)
            calls.append(call)
            continue
        found = None
        if text.startswith(("{", "["), position):
            reading = reader.read(text, position)
            found, position = _calls_of(reading.value, reader), reading.end
        if found is None:
            raise _MalformedError(position)
        calls += found


def _read_function(text: str, start: int, reader: JsonReader) -> tuple[Call, int]:
    """(call, where the function ends)."""
    head = _FUNCTION.match(text, start)
    name = head[1].strip() if head else ""
    if head is None or not name:
        raise _MalformedError(start + len("<function="))
    position = _skip(text, head.end())
    if text.startswith("{", position):
        reading = reader.read(text, position)
        arguments, position = reading.value, _skip(text, reading.end)
    else:
        arguments, position = _read_parameters(text, position, reader)
    call = _call_of({"name": name, "arguments": arguments}, reader)
    if call is None or not text.startswith("</function>", position):
        raise _MalformedError(position)
    return call, position + len("</function>")


def _read_parameters(text: str, position: int, reader: JsonReader) -> tuple[dict[str, object], int]:
    """(arguments, where the last parameter and the white space behind it end)."""
    arguments: dict[str, object] = {}
    while (head := _PARAMETER.match(text, position)) is not None:
        name, start = head[1].strip(), head.end()
        end = text.find("</parameter>", start)
        if end < 0 or not name or name in arguments:
            raise _MalformedError(start)
        inside = _INSIDE_VALUE.search(text, start, end)
        if inside is not None:  # the value's own end is missing, and what was found is another's
            raise _MalformedError(inside.start())
        arguments[name] = _parameter_value(text[start:end], end, reader)
        position = _skip(text, end + len("</parameter>"))
    return arguments, position


def _parameter_value(text: str, end: int, reader: JsonReader) -> object:
    reading = reader.read_whole(text)
    if reading.outcome is Outcome.VALUE:
        return reading.value
    if reading.outcome is Outcome.REFUSED and text.lstrip().startswith(("{", "[")):
        raise _MalformedError(end)
    return _EDGE.sub("", text)


def _skip(text: str, position: int) -> int:
    """Where the white space from `position` on ends."""
    space = _SPACE.match(text, position)
    return position if space is None else space.end()
