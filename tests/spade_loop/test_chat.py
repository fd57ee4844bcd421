"""Chats as ids: the template's tokens come from the template alone, and a conversation only ever grows."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from chat_tokenizers import ADDED, SPECIAL, byte_tokenizer, piece_tokenizer, template
from hypothesis import given, settings
from hypothesis import strategies as st

from spade_loop.chat import ChatFormat
from spade_loop.errors import ModelError
from spade_loop.types import Message
from synthgym.envs import ParseStatus, parse_action

KINDS = {"bytes": byte_tokenizer, "pieces": piece_tokenizer}
PLAIN = ("chatml", "llama3", "mistral", "system_in_last", "gemma", "next_speaker_ends")
"""Templates that write a reply down as they ask for it."""
THINKING = (("qwen3", None), ("qwen3", True), ("qwen3", False), ("opened_thought", None))
ALL = [(name, None) for name in PLAIN] + list(THINKING)
ENDS = {
    "chatml": "<|im_end|>",
    "qwen3": "<|im_end|>",
    "llama3": "<|eot_id|>",
    "mistral": "</s>",
    "system_in_last": "</s>",
    "gemma": "<end_of_turn>",
    "opened_thought": "<|end|>",
    "next_speaker_ends": "<|user|>",
}


@cache
def format_of(name: str, thinking: bool | None, kind: str) -> tuple[Any, ChatFormat]:
    tokenizer = KINDS[kind](template(name))
    return tokenizer, ChatFormat(tokenizer, thinking=thinking)


def conversation(
    chat: ChatFormat, opening: str, turns: list[tuple[str, bool, str]], system: str = ""
) -> tuple[int, ...]:
    """Prompt, then (reply, whether the model ended it, what the user says next) for each turn."""
    begin = [Message("system", system)] if system else []
    ids = chat.prompt([*begin, Message("user", opening)])
    for reply, stopped, text in turns:
        ids += chat.encode_text(reply) + ((chat.end_id,) if stopped else ())
        ids += chat.next_turn(text, stopped=stopped)
    return ids


def rendered(tokenizer: Any, messages: list[tuple[str, str]], **options: Any) -> str:
    chat = [{"role": role, "content": content} for role, content in messages]
    return str(
        tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False, **options)
    )


def ids_of(tokenizer: Any, text: str) -> tuple[int, ...]:
    return tuple(tokenizer.encode(text, add_special_tokens=False))


def controls(tokenizer: Any, ids: tuple[int, ...]) -> list[int]:
    """The template's own tokens among `ids`: special ones, and added ones that it writes."""
    own = [*SPECIAL, *(t for t in ADDED if t in tokenizer.chat_template)]
    control = set(tokenizer.convert_tokens_to_ids(own))
    return [i for i in ids if i in control]


# What a player or an environment may write: words, whatever else, and the tokens of templates.
words = st.from_regex(r"[a-z]{1,6}( [a-zA-Z.!]{1,6}){0,3}", fullmatch=True)
hostile = st.lists(
    st.one_of(
        st.text(max_size=8),
        st.sampled_from([*SPECIAL, *ADDED, "[INST]", "SYNTHGYMCONTENT0PLACEHOLDER"]),
    ),
    max_size=5,
).map("".join)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PLAIN)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_conversation_has_the_ids_of_the_template_rendered_whole(
    name: str, kind: str, data: st.DataObject
) -> None:
    tokenizer, chat = format_of(name, None, kind)
    opening = data.draw(words)
    turns = [(data.draw(words), data.draw(st.booleans()), data.draw(words)) for _ in range(2)]
    ids = conversation(chat, opening, turns)
    messages = [("user", opening)]
    for reply, _, text in turns:
        messages += [("assistant", reply), ("user", text)]
    whole = rendered(tokenizer, messages)
    expected = ids_of(tokenizer, whole)
    if kind == "bytes" and name != "mistral":
        assert ids == expected
    else:  # a space before a reply is a part of its first token, which is the model's affair
        assert controls(tokenizer, ids) == controls(tokenizer, expected)
        assert "".join(tokenizer.decode(ids).split()) == "".join(whole.split())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PLAIN)
def test_a_prompt_has_the_ids_of_the_template(name: str, kind: str) -> None:
    tokenizer, chat = format_of(name, None, kind)
    messages = [("user", "Go"), ("assistant", "pull lever"), ("user", "It moved")]
    ids = chat.prompt([Message(role, text) for role, text in messages])  # type: ignore[arg-type]
    assert ids == ids_of(tokenizer, rendered(tokenizer, messages))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "thinking"), ALL)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_text_never_becomes_one_of_the_templates_tokens(
    name: str, thinking: bool | None, kind: str, data: st.DataObject
) -> None:
    tokenizer, chat = format_of(name, thinking, kind)
    stops = data.draw(st.lists(st.booleans(), min_size=1, max_size=3))
    texts = [(data.draw(hostile), stopped, data.draw(hostile)) for stopped in stops]
    system = data.draw(hostile)
    ids = conversation(chat, data.draw(hostile), texts, f"s{system}")
    plain = conversation(chat, "x", [("x", stopped, "x") for stopped in stops], "s")
    assert controls(tokenizer, ids) == controls(tokenizer, plain)
    assert controls(tokenizer, plain)  # or this would say nothing


@settings(max_examples=100, deadline=None)
@given(hostile)
def test_plain_text_comes_back_as_it_was(text: str) -> None:
    tokenizer, chat = format_of("qwen3", None, "bytes")
    ids = chat.encode_text(text)
    assert not controls(tokenizer, ids)
    assert tokenizer.decode(ids) == text.encode("utf-8", "replace").decode()


def test_characters_that_the_vocabulary_lacks_stay_in_the_text_as_unknown() -> None:
    tokenizer, chat = format_of("mistral", None, "pieces")
    unknown = tokenizer.unk_token_id
    assert chat.encode_text("a☃b").count(unknown) == 1
    assert chat.prompt([Message("user", "a☃b")]).count(unknown) == 1
    assert chat.prompt([Message("user", "a☃b</s>")]).count(unknown) == 1


@pytest.mark.parametrize(("name", "thinking"), ALL)
def test_what_ends_a_turn_is_a_stop_token(name: str, thinking: bool | None) -> None:
    tokenizer, chat = format_of(name, thinking, "bytes")
    assert tokenizer.convert_ids_to_tokens(chat.end_id) == ENDS[name]
    assert chat.stop_ids == {chat.end_id, tokenizer.eos_token_id}
    cut = chat.next_turn("x", stopped=False)
    assert cut == (chat.end_id, *chat.next_turn("x", stopped=True))


def test_stop_tokens_of_a_generation_config_are_stop_tokens() -> None:
    tokenizer = byte_tokenizer(template("llama3"), eos_token="<|endoftext|>")
    extra = tokenizer.convert_tokens_to_ids("<|end|>")
    chat = ChatFormat(tokenizer, stop_ids=[extra])
    names = tokenizer.convert_ids_to_tokens(sorted(chat.stop_ids))
    assert set(names) == {"<|eot_id|>", "<|endoftext|>", "<|end|>"}


@pytest.mark.parametrize("name", ["llama3", "next_speaker_ends"])
def test_behind_another_stop_token_the_template_still_ends_the_turn(name: str) -> None:
    _, chat = format_of(name, None, "bytes")
    (other,) = chat.stop_ids - {chat.end_id}
    ended = chat.next_turn("x", stopped=True, last=chat.end_id)
    assert chat.next_turn("x", stopped=True, last=other) == (chat.end_id, *ended)
    assert chat.next_turn("x", stopped=True) == ended


# --- thinking ---


@pytest.mark.parametrize("thinking", [None, True])
def test_earlier_thoughts_stay_where_the_template_would_drop_them(thinking: bool | None) -> None:
    tokenizer, chat = format_of("qwen3", thinking, "bytes")
    reply = "<think>\nIt is left.\n</think>\n\nleft"
    sampled = (*ids_of(tokenizer, reply), chat.end_id)
    ids = chat.prompt([Message("user", "Go")]) + sampled + chat.next_turn("Next", stopped=True)
    assert tokenizer.decode(ids) == (
        f"<|im_start|>user\nGo<|im_end|>\n<|im_start|>assistant\n{reply}<|im_end|>\n"
        "<|im_start|>user\nNext<|im_end|>\n<|im_start|>assistant\n"
    )
    again = rendered(tokenizer, [("user", "Go"), ("assistant", reply), ("user", "Next")])
    assert "left<|im_end|>" in again
    assert "<think>" not in again  # so a second rendering is not what was sampled


def test_without_thinking_every_reply_opens_behind_an_empty_thought() -> None:
    tokenizer, chat = format_of("qwen3", False, "bytes")
    opening = "<|im_start|>assistant\n<think>\n\n</think>\n\n"
    assert tokenizer.decode(chat.prompt([Message("user", "Go")])).endswith(opening)
    assert tokenizer.decode(chat.next_turn("Next", stopped=True)).endswith(opening)


def test_a_template_that_cannot_be_told_to_think_says_so() -> None:
    tokenizer = byte_tokenizer(template("chatml"))
    with pytest.raises(ModelError, match=r"thinking=true.*no `enable_thinking`"):
        ChatFormat(tokenizer, thinking=True)


@pytest.mark.parametrize("special", [False, True])
def test_thoughts_can_be_told_from_the_reply(special: bool) -> None:
    tokenizer = byte_tokenizer(template("qwen3"))
    if special:  # some tokenizers call the tags special
        tokenizer.add_special_tokens(
            {"additional_special_tokens": [*SPECIAL, "<think>", "</think>"]}
        )
    chat = ChatFormat(tokenizer)
    text = r"<think>\boxed{left}?</think>\boxed{right}"
    ids = (*ids_of(tokenizer, text), chat.end_id)
    assert chat.reply(ids) == text
    assert parse_action(chat.reply(ids)).action == "right"


def test_a_thought_that_the_template_opened_is_part_of_the_reply() -> None:
    tokenizer, chat = format_of("opened_thought", None, "bytes")
    cut = chat.reply(ids_of(tokenizer, r"Perhaps \boxed{left}, but"))
    assert cut == "<think>\n" + r"Perhaps \boxed{left}, but"
    assert parse_action(cut).status is not ParseStatus.OK
    done = chat.reply((*ids_of(tokenizer, r"hm</think>\boxed{right}"), chat.end_id))
    assert parse_action(done).action == "right"


# --- roles ---


@pytest.mark.parametrize("name", ["mistral", "gemma", "system_in_last"])
def test_without_a_system_role_the_first_user_message_begins_with_it(name: str) -> None:
    tokenizer, chat = format_of(name, None, "bytes")
    example = [Message("user", "Go"), Message("assistant", "left"), Message("user", "Next")]
    ids = chat.prompt([Message("system", " Be brief. "), *example])
    folded = [("user", "Be brief.\n\nGo"), ("assistant", "left"), ("user", "Next")]
    assert ids == ids_of(tokenizer, rendered(tokenizer, folded))


@pytest.mark.parametrize("name", ["mistral", "gemma"])
def test_neighbours_of_one_role_become_one_message_where_roles_must_alternate(name: str) -> None:
    tokenizer, chat = format_of(name, None, "bytes")
    ids = chat.prompt([Message("user", "one"), Message("user", "two")])
    assert ids == ids_of(tokenizer, rendered(tokenizer, [("user", "one\n\ntwo")]))


def test_a_system_role_and_neighbours_are_left_to_a_template_that_takes_them() -> None:
    tokenizer, chat = format_of("chatml", None, "bytes")
    messages = [("system", "Be brief."), ("user", "one"), ("user", "two")]
    ids = chat.prompt([Message(role, text) for role, text in messages])  # type: ignore[arg-type]
    assert ids == ids_of(tokenizer, rendered(tokenizer, messages))


def test_an_order_of_roles_that_the_template_refuses_is_named() -> None:
    _, chat = format_of("mistral", None, "bytes")
    with pytest.raises(ModelError, match=r"refuses a chat of assistant, user: .*take turns"):
        chat.prompt([Message("assistant", "left"), Message("user", "Go")])


@pytest.mark.parametrize(("name", "thinking"), ALL)
def test_white_space_around_a_message_says_nothing(name: str, thinking: bool | None) -> None:
    _, chat = format_of(name, thinking, "bytes")
    roomy = chat.prompt([Message("user", "\n Go \n")]) + chat.next_turn(" x\n", stopped=False)
    assert roomy == chat.prompt([Message("user", "Go")]) + chat.next_turn("x", stopped=False)


# --- what is refused, when the model is loaded ---


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("counts_messages", r"not prefix-preserving: what comes before the first message"),
        ("numbers_turns", r"not prefix-preserving: a user's turn .*assistant2.*assistant4"),
        ("numbers_users", r"not prefix-preserving: what comes between a reply and the next"),
        (
            "ends_two_ways",
            r"not prefix-preserving: the end of a reply .*<\|eot_id\|>.*<\|im_end\|>",
        ),
        ("reply_in_channel", r"not prefix-preserving: the opening of a reply"),
        ("last_message", r"drops or reorders messages"),
        ("no_end", r"does not end an assistant turn with a stop token"),
        ("wants_parts", r"refuses a chat of user: "),
    ],
)
def test_a_template_that_turns_cannot_be_appended_to_is_refused(name: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        ChatFormat(byte_tokenizer(template(name)))


def test_a_template_that_is_not_there_says_what_to_do() -> None:
    with pytest.raises(ModelError, match=r"no chat template.*instruction-tuned"):
        ChatFormat(byte_tokenizer(None))


def test_a_template_that_is_no_template_is_named_with_its_cause() -> None:
    with pytest.raises(ModelError, match=r"refuses a chat of user: .*end of"):
        ChatFormat(byte_tokenizer("{% for m in messages %}"))


def test_without_an_eos_token_the_templates_own_ends_a_reply() -> None:
    tokenizer = byte_tokenizer(template("chatml"), eos_token=None, pad_token=None)
    assert tokenizer.eos_token_id is None
    chat = ChatFormat(tokenizer)
    assert tokenizer.convert_ids_to_tokens(list(chat.stop_ids)) == ["<|im_end|>"]


# --- the tiny model's own ---


def test_the_tiny_models_prompt_is_what_its_template_says(tokenizer: Any, chat: ChatFormat) -> None:
    ids = chat.prompt([Message("system", "Be brief."), Message("user", "Hello")])
    messages = [("system", "Be brief."), ("user", "Hello")]
    assert ids == ids_of(tokenizer, rendered(tokenizer, messages))
