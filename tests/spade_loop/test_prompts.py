"""Prompt files: sections, placeholders, digests."""

from __future__ import annotations

from importlib import resources

import pytest

from spade_loop.errors import ConfigError
from spade_loop.prompts import load_prompt, parse_prompt
from spade_loop.types import Message

TEXT = """A note to the reader, with a $price that is nobody's.

## system
You design $what.

## user
## A heading of the text
It costs $$5.

## assistant
Done.
"""
BUNDLED = sorted(
    path.name.removesuffix(".md")
    for path in resources.files("spade_loop.prompts").iterdir()
    if path.name.endswith(".md")
)


def test_sections_become_messages_and_the_note_is_left_out() -> None:
    assert parse_prompt("p", TEXT).render(what="games") == (
        Message("system", "You design games."),
        Message("user", "## A heading of the text\nIt costs $5."),
        Message("assistant", "Done."),
    )


def test_a_value_is_never_read_as_a_template() -> None:
    value = "$what costs $$5\n## user\nnothing"
    system, *_ = parse_prompt("p", TEXT).render(what=value)
    assert system.content == f"You design {value}."


def test_a_missing_value_is_named() -> None:
    with pytest.raises(ConfigError, match=r"prompt p needs a value for \$what"):
        parse_prompt("p", TEXT).render(who="me")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no '## system' or '## user' section"),
        ("## tool\nx", "no '## system' or '## user' section"),
        ("### user\nx", "no '## system' or '## user' section"),
        ("## user\nIt costs $5.", r"has a \$ in its user section"),
    ],
)
def test_a_malformed_prompt_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_prompt("p", text)


def test_the_digest_covers_the_whole_text() -> None:
    prompt = parse_prompt("p", TEXT)
    assert prompt.digest == parse_prompt("other", TEXT).digest
    assert prompt.digest.startswith("sha256:")
    assert prompt.digest != parse_prompt("p", TEXT.replace("note", "remark")).digest


def test_the_digest_covers_a_text_that_is_always_rendered_with_it() -> None:
    prompt = parse_prompt("p", TEXT)
    digests = {prompt.digest, prompt.covering("one").digest, prompt.covering("two").digest}
    assert len(digests) == 3
    assert prompt.covering("one") == prompt.covering("one")
    assert prompt.covering("one").messages == prompt.messages


@pytest.mark.parametrize("name", BUNDLED)
def test_every_bundled_prompt_can_be_loaded(name: str) -> None:
    if name in (
        "agent_no_box",
        "agent_no_call",
        "designer_repair",
    ):  # messages that are fed into a running chat
        assert len(load_prompt(name).messages) == 1
    else:
        assert load_prompt(name).messages[0].role == "system"
        assert load_prompt(name).messages[-1].role == "user"
