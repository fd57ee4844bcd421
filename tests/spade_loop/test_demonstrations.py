"""Demonstrations: rows that survive a file, and ids that are those of an episode."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chat_tokenizers import byte_tokenizer, template
from hypothesis import given, settings
from hypothesis import strategies as st
from pages import table
from warm_games import game

from spade_loop.chat import ChatFormat
from spade_loop.completers import ScriptedSampler
from spade_loop.config import AgentConfig, load_config
from spade_loop.demonstrations import (
    Demonstration,
    Room,
    encode,
    read_demonstrations,
)
from spade_loop.episodes import Play, Player, Stage
from spade_loop.errors import ConfigError, ModelError
from spade_loop.state import dump_row
from spade_loop.types import Arm, Message, Role
from spade_loop.warmstart.settings import WarmStart
from spade_loop.warmstart.witnesses import witness_rows
from synthgym.registry import Snapshot, bundled_root
from synthgym.sandbox import Pool

NO_LIMIT = Room()


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=4) as pool:
        yield pool


def row(*turns: str, **changes: Any) -> Demonstration:
    said = [Message("user" if i % 2 else "assistant", t) for i, t in enumerate(turns or ("yes",))]
    made = Demonstration(
        role=Role.AGENT, prompt=(Message("user", "Is it?"),), completion=tuple(said)
    )
    return replace(made, **changes)


# --- files ---


@settings(deadline=None)
@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=5), st.text())
def test_a_row_comes_back_from_its_file(turns: list[str], asked: str) -> None:
    odd = turns if len(turns) % 2 else turns[:-1]
    written = row(*odd, prompt=(Message("user", asked),))
    assert _read([dump_row(written.to_json())]) == (written,)


def _read(lines: list[str]) -> tuple[Demonstration, ...]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        return read_demonstrations(path).rows


GOOD = {
    "role": "agent",
    "prompt": [{"role": "user", "content": "a"}],
    "completion": [{"role": "assistant", "content": "b"}],
}


def test_what_a_person_writes_needs_role_prompt_and_completion_alone() -> None:
    (read,) = _read([json.dumps(GOOD), "", "   "])
    assert (read.split, read.arm, read.seed) == ("train", None, None)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: expected a JSON object"),
        ("[1]", "line 2: expected a JSON object"),
        (json.dumps(GOOD | {"promt": []}), "unknown key 'promt'.*did you mean.*prompt"),
        (json.dumps({"role": "agent", "prompt": GOOD["prompt"]}), "line 2: .*completion"),
        (json.dumps(GOOD | {"role": "judge"}), "line 2: .*judge"),
        (json.dumps(GOOD | {"split": "test"}), "line 2: .*test"),
        (json.dumps(GOOD | {"prompt": []}), "must end with a user message"),
        (json.dumps(GOOD | {"completion": []}), "begin and end with the assistant, got no message"),
        (
            json.dumps(GOOD | {"completion": GOOD["prompt"]}),
            "assistant and user in turns.*got user",
        ),
        (json.dumps(GOOD | {"completion": GOOD["completion"] * 2}), "got assistant, assistant"),
        (
            json.dumps(GOOD | {"completion": [{"role": "assistant", "content": " "}]}),
            "nothing to imitate",
        ),
        (
            json.dumps(GOOD | {"completion": [{**GOOD["completion"][0], "tool_calls": []}]}),
            r"completion\[0\]: unknown key 'tool_calls'",
        ),
    ],
)
def test_a_wrong_line_is_named_with_what_was_expected(line: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        _read([json.dumps(GOOD), line])


def test_a_file_that_is_not_there_or_holds_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.jsonl: cannot read demonstrations"):
        read_demonstrations(tmp_path / "nowhere.jsonl")
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n")
    with pytest.raises(ConfigError, match="holds no demonstration"):
        read_demonstrations(empty)
    empty.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="cannot read demonstrations"):
        read_demonstrations(empty)


def test_every_field_of_a_row_is_explained() -> None:
    assert set(table("docs/warmstart.md", "demonstrations")) == set(row().to_json())


# --- ids ---


@pytest.mark.parametrize("name", ["Wall", "StarPlates"])
@pytest.mark.parametrize("arm", [Arm.PLAIN, Arm.HINTED])
def test_a_witness_has_the_ids_and_the_mask_that_its_episode_would_have(
    name: str, arm: Arm, chat: ChatFormat, pool: Pool
) -> None:
    snapshot = Snapshot.open(bundled_root())
    spec = game() if name == "Wall" else snapshot.spec("synthgym/StarPlates-v0")
    settings = WarmStart(seeds=2, hinted=float(arm is Arm.HINTED))
    demonstration = next(witness_rows(Stage(pool, hint_level=2), spec, settings, pytest.fail))
    assert demonstration.arm is arm
    replies = [m.content for m in demonstration.completion if m.role == "assistant"]
    config = AgentConfig(max_turns=spec.record.max_turns, turn_tokens=400, context=60_000)
    sampler = ScriptedSampler(chat, lambda _row, turn, _text: replies[turn], chat.end_id)
    plays = [Play(spec, demonstration.seed or 0, 0, arm)]
    (played,) = Player(config, pool, hint_level=2).play(sampler, plays, stream=[0])
    assert played.success
    encoded = encode(chat, demonstration, NO_LIMIT)
    assert encoded is not None
    assert encoded.prompt_ids == played.prompt_ids
    assert encoded.completion == played.completion
    assert encoded.whole


@pytest.mark.parametrize("name", ["chatml", "llama3", "mistral", "gemma"])
def test_the_trained_tokens_are_the_replies_and_their_ends(name: str) -> None:
    ends = {
        "llama3": "<|eot_id|>",
        "gemma": "<end_of_turn>",
        "mistral": "</s>",
        "chatml": "<|im_end|>",
    }
    chat = ChatFormat(byte_tokenizer(template(name), eos_token=ends[name]))
    said = (r"\boxed{pull}", "It moves. <|im_end|>", "<|im_end|> \\boxed{push}")
    encoded = encode(chat, row(*said), NO_LIMIT)
    assert encoded is not None
    ids, mask = encoded.completion.ids, encoded.completion.mask
    runs: list[list[int]] = [[]]
    for i, own in zip(ids, mask, strict=True):
        if own:
            runs[-1].append(i)
        elif runs[-1]:
            runs.append([])
    assert [chat.reply(run) for run in runs] == [said[0], said[2]]
    assert [run.count(chat.end_id) for run in runs] == [1, 1]
    assert all(run[-1] == chat.end_id for run in runs)


def test_a_template_that_opens_thoughts_is_refused() -> None:
    chat = ChatFormat(byte_tokenizer(template("opened_thought"), eos_token="<|im_end|>"))
    with pytest.raises(ModelError, match=r"policy\.thinking=off"):
        encode(chat, row(), NO_LIMIT)


# --- room ---


def test_turns_end_where_the_recipe_s_end(chat: ChatFormat) -> None:
    shown = row("a", "b", "c", "d", "e")
    whole = encode(chat, shown, NO_LIMIT)
    cut = encode(chat, shown, Room(turns=2))
    assert whole is not None
    assert cut is not None
    assert (whole.turns, whole.whole, cut.turns, cut.whole) == (3, True, 2, False)
    assert whole.completion.ids[: len(cut.completion.ids)] == cut.completion.ids
    assert cut.completion.ids[-1] == chat.end_id


def test_a_reply_that_could_not_be_finished_is_not_shown(chat: ChatFormat) -> None:
    short, long = len(chat.encode_text("ab")) + 1, len(chat.encode_text("abcdefghij")) + 1
    assert short < long
    cut = encode(chat, row("ab", "go on", "abcdefghij"), Room(reply=long - 1))
    assert cut is not None
    assert cut.turns == 1
    assert encode(chat, row("abcdefghij"), Room(reply=long - 1)) is None
    kept = encode(chat, row("abcdefghij"), Room(reply=long))
    assert kept is not None
    assert kept.whole


def test_a_turn_fits_when_the_longest_reply_would(chat: ChatFormat) -> None:
    shown = row("a", "b", "c")
    whole = encode(chat, shown, NO_LIMIT)
    assert whole is not None
    length = len(whole.prompt_ids) + len(whole.completion.ids)
    last = len(chat.encode_text("c")) + 1
    fits = encode(chat, shown, Room(reply=10, total=length - last + 10))
    cut = encode(chat, shown, Room(reply=10, total=length - last + 9))
    assert fits is not None
    assert cut is not None
    assert (fits.turns, cut.turns) == (2, 1)


def test_room_is_that_of_the_recipe() -> None:
    config = load_config("tiny", ["designer.repairs=2"])
    assert Room.of(config, Role.AGENT) == Room(turns=5, reply=12, total=512)
    assert Room.of(config, Role.DESIGNER) == Room(turns=3, reply=96)
