r"""The forms in which a reply can hold text to act on: a box, an answer element, a fenced block, all of it.

Every finder takes a text without thinking and reads it in one pass, whatever it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

_WRAPPERS: Final = (
    "text textbf textit texttt textrm textsf textsc textnormal emph mbox "
    "mathrm mathbf mathit mathtt mathsf mathnormal boldsymbol bm operatorname"
)
_BRACES: Final = re.compile(
    r"\\(?P<box>boxed|fbox)\s*+\{"
    rf"|\\(?P<wrapper>{'|'.join(_WRAPPERS.split())})\s*+\{{"
    r"|(?<!\\)\\[{}]|[{}]"
)
_ESCAPED: Final = re.compile(r"(?<!\\)\\([{}_%#&$])")
_ESCAPED_SPACE: Final = re.compile(r"(?<!\\)\\ ")
_MATH: Final = (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"))
_BOX: Final = re.compile(r"\\(?:boxed|fbox)\s*+\{")
_ANSWER: Final = re.compile(r"<(/?)answer>", re.IGNORECASE | re.ASCII)
_TICKS: Final = re.compile(r"`{3,}+")
_LINE_END: Final = re.compile(r"[^\S\n]*+(?:\n|\Z)")


class ParseStatus(StrEnum):
    """What a reply came to."""

    OK = "ok"
    """There is an action."""
    NO_BOX = "no-box"
    r"""No `\boxed{` outside of thinking, where only a box would do."""
    NO_ACTION = "no-action"
    """None of the forms that would do, outside of thinking."""
    UNBALANCED = "unbalanced"
    """A form begins, but none of its kind ends."""
    EMPTY = "empty"
    """The last complete form holds nothing but white space."""
    MALFORMED_CALL = "malformed-call"
    """A tool call that does not read as one: bad JSON or tags, arguments that are no object, no name."""
    TOO_LONG = "too-long"
    """A tool call, or the answer in its place, longer than an action may be: cut short it would be another, or none."""


@dataclass(frozen=True, slots=True)
class Form:
    """What one finder made of a text."""

    status: ParseStatus
    action: str = ""
    span: tuple[int, int] | None = None


class _Braces(NamedTuple):
    """A matched pair of braces behind a box or a wrapper."""

    opener: str
    start: int
    inner: int
    end: int


def most_informative(forms: Iterable[Form]) -> Form | None:
    """The failure that says most: a bad call, then an empty form, then one that does not end; None without any."""
    ranks = (
        ParseStatus.MALFORMED_CALL,
        ParseStatus.TOO_LONG,
        ParseStatus.EMPTY,
        ParseStatus.UNBALANCED,
    )
    failed = [form for form in forms if form.status in ranks]
    return min(failed, key=lambda form: ranks.index(form.status), default=None)


def find_box(text: str, source: str | None = None) -> Form:
    r"""The last balanced `\boxed{...}` or `\fbox{...}`; of nested ones the inner.

    Braces nest, as in LaTeX: `\{` and `\}` are characters and not braces. What the box holds is
    freed of LaTeX: wrappers (`\text{...}`, `\textbf{...}`, `\mathrm{...}` and the like), math
    signs around the whole (`$...$`, `$$...$$`, `\(...\)`, `\[...\]`), and the backslash of
    `\{ \} \_ \% \# \& \$` and of a space. Everything else is left as it is.

    Where `text` is a copy with parts blanked out, `source` is the original that the content is taken from.
    """
    first = _BOX.search(text)
    if first is None:
        return Form(ParseStatus.NO_BOX)
    pairs = _match_braces(text, first.start())
    boxes = [pair for pair in pairs if pair.opener == "box"]
    if not boxes:
        return Form(ParseStatus.UNBALANCED)
    box = max(boxes, key=lambda pair: pair.start)
    content = _ESCAPED_SPACE.sub(" ", _unwrap(source or text, box, pairs))
    pieces = _ESCAPED.split(_outside_math(content))  # the group is kept, the backslash is not
    return _complete("".join(pieces), (box.start, box.end))


def find_answer(text: str, source: str | None = None) -> Form:
    """The last `<answer>...</answer>`, in any case; an answer that is nothing but a box is what the box holds.

    For `source` see `find_box`.
    """
    opening: re.Match[str] | None = None
    last: tuple[re.Match[str], re.Match[str]] | None = None
    seen = False
    for tag in _ANSWER.finditer(text):
        seen = True
        if not tag[1]:
            opening = tag
        elif opening is not None:
            last, opening = (opening, tag), None
    if last is None:
        return Form(ParseStatus.UNBALANCED if seen else ParseStatus.NO_ACTION)
    content = (source or text)[last[0].end() : last[1].start()].strip()
    box = find_box(content)
    if box.span == (0, len(content)):
        content = box.action
    return _complete(content, (last[0].start(), last[1].end()))


def find_fence(text: str) -> Form:
    """What the last fenced block holds: from three or more backticks to as many at the end of a later line.

    What follows the opening backticks on their line is the block's language, and dropped, unless the
    block closes on that line.
    """
    last: Form | None = None
    opening: re.Match[str] | None = None
    line_end = -1
    for run in _TICKS.finditer(text):
        if opening is None:
            opening = run
            if run.start() > line_end:
                line_end = text.find("\n", run.end()) % (len(text) + 1)
        elif run.start() < line_end or _closes(text, run, opening):
            inner = opening.end() if run.start() < line_end else line_end
            last = _complete(text[inner : run.start()], (opening.start(), run.end()))
            opening = None
    if last is None:
        return Form(ParseStatus.NO_ACTION if opening is None else ParseStatus.UNBALANCED)
    return last


def find_raw(text: str) -> Form:
    """All of the text."""
    action = text.strip()
    if not action:
        return Form(ParseStatus.EMPTY)
    start = len(text) - len(text.lstrip())
    return Form(ParseStatus.OK, action, (start, start + len(action)))


def _complete(content: str, span: tuple[int, int]) -> Form:
    action = content.strip()
    return Form(ParseStatus.OK if action else ParseStatus.EMPTY, action, span)


def _closes(text: str, run: re.Match[str], opening: re.Match[str]) -> bool:
    return len(run[0]) >= len(opening[0]) and _LINE_END.match(text, run.end()) is not None


def _match_braces(text: str, start: int) -> list[_Braces]:
    """The matched pairs of boxes and wrappers from `start` on, in the order in which they close."""
    opened: list[re.Match[str] | None] = []
    pairs: list[_Braces] = []
    for token in _BRACES.finditer(text, start):
        mark = token.group()
        if mark == "{":
            opened.append(None)
        elif mark == "}":
            opener = opened.pop() if opened else None
            if opener is not None and opener.lastgroup is not None:
                pairs.append(_Braces(opener.lastgroup, *opener.span(), token.end()))
        elif token.lastgroup is not None:
            opened.append(token)
    return pairs


def _unwrap(text: str, box: _Braces, pairs: list[_Braces]) -> str:
    """The content of `box` with each wrapper replaced by what it holds."""
    first, last = box.inner, box.end - 1
    dropped: list[tuple[int, int]] = []
    for opener, start, inner, end in pairs:
        if opener == "wrapper" and first <= start and end <= last:
            dropped += [(start, inner), (end - 1, end)]
    pieces: list[str] = []
    for start, end in sorted(dropped):
        pieces.append(text[first:start])
        first = end
    pieces.append(text[first:last])
    return "".join(pieces)


def _outside_math(content: str) -> str:
    """`content` without the math signs around the whole of it; `$a$ or $b$` stays as it is."""
    start, end = 0, len(content)
    while True:
        while start < end and content[start].isspace():
            start += 1
        while start < end and content[end - 1].isspace():
            end -= 1
        for opening, closing in _MATH:
            inner = (start + len(opening), end - len(closing))
            if (
                inner[0] <= inner[1]
                and content.startswith(opening, start, end)
                and content.endswith(closing, start, end)
                and content[inner[1] - 1] != "\\"
                and ("$" not in opening or "$" not in content[inner[0] : inner[1]])
            ):
                start, end = inner
                break
        else:
            return content[start:end]
