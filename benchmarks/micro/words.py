"""The words of the micro experiment, and the tokenizer that knows no others.

Everything that an episode or a design is decided by is one token: operations, states, answers, ladders, levels, the
pieces of a blueprint's JSON. Everything else is left out when a text is encoded, so the English of the product's
prompts costs nothing: a prompt of eighty words becomes a dozen tokens.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from spade_loop.families import Family

USER: Final = "<u>"
ASSISTANT: Final = "<a>"
END: Final = "<e>"
"""Ends a message; the model's stop token and its padding too."""
STATES: Final = 5
SPARES: Final = 8
"""Operations of no ladder, two for each shift: with them the model learns what an operation does to a state."""
TEMPLATE: Final = (
    "{% for m in messages %}"
    "{% if m['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    "{{ '<u>' if m['role'] == 'user' else '<a>' }}{{ m['content'] }}<e>"
    "{% endfor %}"
    "{% if add_generation_prompt %}<a>{% endif %}"
)


def operation(number: int) -> str:
    """How the family spells an operation."""
    return f"op{number:03d}"


def state(number: int) -> str:
    """A state in an observation or a hint."""
    return f"s{number}"


def answer(number: int) -> str:
    """A state as the agent answers with it."""
    return rf"\boxed{{{number}}}"


def ladder_operations(family: Family) -> list[str]:
    """Those of the ladders, level by level; then come the spare ones."""
    return [operation(i) for i in range(family.size())]


def spare_operations(family: Family) -> dict[str, int]:
    """The spare operations, each with how far it shifts a state."""
    first = family.size()
    return {operation(first + i): 1 + i % (STATES - 1) for i in range(SPARES)}


def pieces(family: Family) -> list[str]:
    """The text of a blueprint between the values of its parameters, each piece as long as it can be."""
    choices = family.choices()
    marks = {name: f"\0{name}\0" for name in choices}
    return re.split(
        "|".join(re.escape(mark) for mark in marks.values()),
        json.dumps({"family": family.name, **marks}).replace("\\u0000", "\0"),
    )


def words(family: Family) -> list[str]:
    """The whole vocabulary, in the order of ids."""
    values = [str(value) for options in family.choices().values() for value in options]
    return [
        USER,
        ASSISTANT,
        END,
        "Hint:",
        "too easy",
        "too hard",
        *pieces(family),
        *values,
        *map(state, range(STATES)),
        *map(answer, range(STATES)),
        *ladder_operations(family),
        *spare_operations(family),
    ]


def build_tokenizer(family: Family) -> PreTrainedTokenizerFast:
    """A tokenizer of whole words; what is no word of the vocabulary is dropped."""
    known = words(family)
    special = known[:3]
    tokenizer = Tokenizer(
        models.WordLevel({word: i for i, word in enumerate(known)}, unk_token=END)
    )
    # The longest first: a word may begin with another one.
    pattern = "|".join(re.escape(w) for w in sorted(known[3:], key=len, reverse=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens(
        [AddedToken(word, special=True, normalized=False) for word in special]
    )
    made = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END,
        pad_token=END,
        additional_special_tokens=special,
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )
    made.chat_template = TEMPLATE
    return made


def save_tokenizer(family: Family, folder: Path) -> None:
    """Write it as transformers reads it."""
    build_tokenizer(family).save_pretrained(folder)
