"""From a refused design to the message that asks for a better one: pure text, from `prompts/designer_repair.md`.

What is quoted (details, observations, lines) comes from untrusted sources and goes to the model that wrote them, cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from spade_loop.prompts import load_prompt
from spade_loop.types import Message
from synthgym.memory import NoveltyReason
from synthgym.validation import Reason

MAX_FAULTS: Final = 3
"""Findings that one message tells of: more are rarely mended in one go."""
_MAX_FAULT: Final = 420
_MAX_FAULTS: Final = 760
"""Characters of one fault, and of all of them: the whole message is at most some 250 tokens."""
_MAX_DETAIL, _MAX_LINE, _MAX_SEEN, _MAX_REMEDY = 150, 80, 100, 110
_LAST_ACTIONS: Final = 4
_MAX_ACTION: Final = 30

_REQUESTS: Final[Mapping[str, str]] = {
    "program": "Reply with the whole corrected file, its docstring too, in one ```python block.",
    "edit": "Reply with SEARCH/REPLACE blocks again, against the environment as it was given to you.",
    "blueprint": "Reply with one JSON specification.",
}
_COPY: Final = "Change the mechanism itself: other rules, other hidden state, another way to win."
_REMEDIES: Final[Mapping[str, str]] = {
    "cut": "Your reply was too long and was cut off. Write a smaller environment, and nothing but the reply.",
    "no-source": "Keep to the form of the reply.",
    NoveltyReason.SAME_PARAMETERS: "Choose other values.",
    NoveltyReason.FAMILY_FULL: "Design another kind of environment.",
}
"""What to do about what is no reason of validation; all other reasons of the memory mean a copy."""


class FindingLike(Protocol):
    """What is used of a `synthgym.validation.Finding`; something rebuilt from its JSON will do."""

    @property
    def reason(self) -> str: ...
    @property
    def detail(self) -> str: ...
    @property
    def seed(self) -> int | None: ...
    @property
    def line(self) -> int | None: ...
    @property
    def actions(self) -> Sequence[str]: ...
    @property
    def seen(self) -> str: ...


def repair_message(
    dialect: str,
    reasons: Sequence[str],
    findings: Sequence[FindingLike],
    detail: str,
    *,
    source: str = "",
) -> Message:
    """The user message of a repair turn.

    `reasons` are the codes for which the design was not admitted, `findings` what validation found (those of other
    reasons are left out), `detail` what is said of reasons without a finding. With the `source` that was judged, the
    line of a finding is quoted. `KeyError` for a dialect that does not exist.
    """
    told = [finding for finding in findings if str(finding.reason) in reasons]
    faults = [_fault(finding, source.splitlines()) for finding in told]
    found = {str(finding.reason) for finding in told}
    faults += [_bare(reason, detail) for reason in reasons if reason not in found]
    kept: list[str] = []
    for fault in faults[:MAX_FAULTS]:
        if kept and sum(map(len, kept)) + len(fault) > _MAX_FAULTS:
            break
        kept.append(fault)
    prompt = load_prompt("designer_repair")
    (message,) = prompt.render(faults="\n".join(kept), request=_REQUESTS[dialect])
    return message


def _fault(finding: FindingLike, lines: Sequence[str]) -> str:
    """One finding: its code and place, what was seen, what to do."""
    places = [f"line {finding.line}"] if finding.line is not None else []
    places += [f"seed {finding.seed}"] if finding.seed is not None else []
    place = f" ({', '.join(places)})" if places else ""
    parts = [f"- {finding.reason}{place}: {_cut(finding.detail, _MAX_DETAIL) or 'see below'}."]
    if finding.line is not None and 0 < finding.line <= len(lines):
        parts.append(f"The line: `{_cut(lines[finding.line - 1], _MAX_LINE)}`.")
    if finding.actions:
        last = [_cut(action, _MAX_ACTION) for action in finding.actions[-_LAST_ACTIONS:]]
        before = "..., " if len(finding.actions) > len(last) else ""
        parts.append(f"Sent: {before}{', '.join(map(repr, last))}.")
    if finding.seen:
        parts.append(f"Last seen: {_cut(finding.seen, _MAX_SEEN)!r}.")
    return _with_remedy(parts, str(finding.reason))


def _bare(reason: str, detail: str) -> str:
    """A reason without a finding."""
    return _with_remedy([f"- {reason}: {_cut(detail, _MAX_DETAIL)}."], reason)


def _with_remedy(parts: Sequence[str], reason: str) -> str:
    remedy = _cut(_remedy(reason), _MAX_REMEDY)
    return f"{_cut(' '.join(parts), _MAX_FAULT - len(remedy) - 3)}. {remedy}."


def _remedy(reason: str) -> str:
    if reason in _REMEDIES:
        return _REMEDIES[reason]
    try:
        return Reason(reason).remedy
    except ValueError:
        return _COPY


def _cut(text: str, limit: int) -> str:
    """On one line, in at most `limit` characters, without a full stop at the end."""
    flat = " ".join(text.split())
    return flat.rstrip(".") if len(flat) <= limit else f"{flat[: limit - 1].rstrip()}…"
