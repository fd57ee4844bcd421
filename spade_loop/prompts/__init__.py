"""Prompts are text files, read by people first: `## system`, `## user` and `## assistant` sections with $names."""

from __future__ import annotations

import re
import string
from dataclasses import dataclass, replace
from importlib import resources
from typing import Literal, cast

from spade_loop.errors import ConfigError
from spade_loop.types import Message
from synthgym.spec import sha256_digest

_SECTION = re.compile(r"^## (system|user|assistant)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A chat with placeholders."""

    name: str
    messages: tuple[Message, ...]
    digest: str
    """`sha256:<hex>` of the file, and of the text that `covering` added."""

    def covering(self, text: str) -> Prompt:
        """This prompt with a digest that covers `text` too: a value that it is always rendered with."""
        return replace(self, digest=sha256_digest(f"{self.digest}\n{text}".encode()))

    def render(self, **values: str) -> tuple[Message, ...]:
        """The chat with every `$name` filled in; `ConfigError` when one is missing."""
        try:
            return tuple(
                Message(m.role, string.Template(m.content).substitute(values))
                for m in self.messages
            )
        except KeyError as error:
            raise ConfigError(f"prompt {self.name} needs a value for ${error.args[0]}") from error


def load_prompt(name: str) -> Prompt:
    """The bundled prompt `name`."""
    text = resources.files(__package__).joinpath(f"{name}.md").read_text(encoding="utf-8")
    return parse_prompt(name, text)


def parse_prompt(name: str, text: str) -> Prompt:
    """A prompt from the text of its file. What stands before the first section is a note to the reader.

    `ConfigError` when there is no section, or a `$` that does not begin a placeholder.
    """
    pieces = _SECTION.split(text)
    roles, bodies = pieces[1::2], pieces[2::2]
    if not roles:
        raise ConfigError(f"prompt {name} has no '## system' or '## user' section")
    messages = tuple(
        Message(cast("Literal['system', 'user', 'assistant']", role), body.strip())
        for role, body in zip(roles, bodies, strict=True)
    )
    for message in messages:
        if not string.Template(message.content).is_valid():
            raise ConfigError(
                f"prompt {name} has a $ in its {message.role} section that begins no placeholder: "
                "write $name for a value, $$ for a dollar sign"
            )
    return Prompt(name, messages, sha256_digest(text.encode()))
