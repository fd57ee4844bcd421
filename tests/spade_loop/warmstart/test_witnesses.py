"""Agent rows: witnesses as chats, on seeds that derive from one number."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warm_games import BROKEN, LIAR, game, spec_of

from spade_loop.episodes import Stage, formats_of
from spade_loop.types import Arm
from spade_loop.warmstart.settings import WarmStart
from spade_loop.warmstart.witnesses import episode_seeds, held_out_of, reply_of, witness_rows
from synthgym.envs import parse_action
from synthgym.registry import Snapshot, bundled_root
from synthgym.sandbox import Pool
from synthgym.spec import SynthEnvSpec


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=6) as pool:
        yield pool


@pytest.fixture(scope="module")
def bundled() -> list[SynthEnvSpec]:
    snapshot = Snapshot.open(bundled_root())
    return [snapshot.spec(entry.digest) for entry in snapshot]


def tools() -> SynthEnvSpec:
    return Snapshot.open(bundled_root()).spec("synthgym/StarPlates-v0")


# --- replies ---


@pytest.mark.parametrize(
    ("action", "reply"),
    [
        ("pull lever", r"\boxed{pull lever}"),
        ("set {a, b}", r"\boxed{set {a, b}}"),
        ("open }", r"\boxed{open \}}"),
        ("{", r"\boxed{\{}"),
        (r"\{", None),
    ],
)
def test_an_action_is_boxed_as_the_prompt_shows_it(action: str, reply: str | None) -> None:
    assert reply_of(action, game()) == reply


def test_calls_and_answers_have_the_forms_of_the_prompt() -> None:
    call = {"name": "lamp", "arguments": {"on": True, "note": "ü"}}
    action = json.dumps(
        {"calls": [call]}, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    assert reply_of(action, tools()) == (
        '<tool_call>{"name": "lamp", "arguments": {"note": "ü", "on": true}}</tool_call>'
    )
    assert reply_of('{"answer":"4"}', tools()) == "<answer>4</answer>"
    assert reply_of("lamp on", tools()) is None
    assert reply_of("[1]", tools()) is None


@settings(deadline=None)
@given(st.text(max_size=40))
def test_a_reply_means_its_action_or_there_is_none(action: str) -> None:
    reply = reply_of(action, game())
    if reply is not None:
        assert parse_action(reply, formats_of(game())).action == action
    if action and action == action.strip() and action.isalnum():
        assert reply == f"\\boxed{{{action}}}"


# --- seeds ---


@settings(deadline=None)
@given(st.integers(2, 200), st.floats(0.001, 0.999))
def test_some_seeds_are_held_out_and_never_all(count: int, share: float) -> None:
    held_out = held_out_of(count, share)
    assert 1 <= held_out <= count - 1
    assert abs(held_out - count * share) <= 1


def test_seeds_derive_from_one_number_and_from_the_environment_alone() -> None:
    first = episode_seeds(WarmStart(seeds=16), "sha256:a")
    assert first == episode_seeds(WarmStart(seeds=16), "sha256:a")
    assert first != episode_seeds(WarmStart(seeds=16, seed=1), "sha256:a")
    assert first != episode_seeds(WarmStart(seeds=16), "sha256:b")
    assert len({seed for seed, _, _ in first}) == 16
    assert Counter(split for _, split, _ in first) == {"held-out": 2, "train": 14}
    assert Counter(arm for _, _, arm in first) == {Arm.HINTED: 8, Arm.PLAIN: 8}


@pytest.mark.parametrize(("hinted", "expected"), [(0.0, 0), (1.0, 500)])
def test_the_share_of_hints_is_that_of_the_settings(hinted: float, expected: int) -> None:
    wanted = WarmStart(seeds=500, hinted=hinted)
    assert sum(a is Arm.HINTED for _, _, a in episode_seeds(wanted, "d")) == expected


def test_a_share_that_is_no_whole_number_is_right_on_average() -> None:
    wanted = WarmStart(seeds=2, hinted=0.3)
    arms = [arm for n in range(400) for _, _, arm in episode_seeds(wanted, f"d{n}")]
    assert sum(a is Arm.HINTED for a in arms) / 800 == pytest.approx(0.3, abs=0.05)


# --- rows ---


def made(spec: SynthEnvSpec, pool: Pool, wanted: WarmStart) -> tuple[list[object], Counter[str]]:
    dropped: Counter[str] = Counter()
    stage = Stage(pool, hint_level=2)
    rows = list(witness_rows(stage, spec, wanted, lambda why: dropped.update([why])))
    return rows, dropped


def test_every_witness_of_the_bundled_snapshot_is_a_row(
    bundled: list[SynthEnvSpec], pool: Pool
) -> None:
    stage = Stage(pool, hint_level=2)
    for spec in bundled:
        rows = list(witness_rows(stage, spec, WarmStart(seeds=2), pytest.fail))
        assert len(rows) == 2, spec.env_id
        for row in rows:
            assert (row.environment, row.digest) == (spec.env_id, spec.digest)
            shown = row.prompt[-1].content
            assert ("Hint: " in shown) is (row.arm is Arm.HINTED)
            assert len(row.completion) <= 2 * spec.record.max_turns - 1


def test_a_row_is_the_episode_as_the_agent_would_read_it(pool: Pool) -> None:
    (row, _), dropped = made(game(), pool, WarmStart(seeds=2, hinted=1.0))
    assert not dropped
    number = row.seed % 1000
    assert [m.content for m in row.completion] == [
        f"\\boxed{{{number}}}",
        "Right.",
        f"\\boxed{{{number}}}",
    ]
    assert row.prompt[-1].content.endswith(
        f"The wall says {number}. Say it.\n\nHint: Read the wall."
    )


@pytest.mark.parametrize(
    ("source", "name", "why"),
    [(LIAR, "Liar", "the witness does not win"), (BROKEN, "Broken", "the environment failed")],
)
def test_what_does_not_win_or_fails_is_counted_and_no_row(
    source: str, name: str, why: str, pool: Pool
) -> None:
    rows, dropped = made(spec_of(source, name), pool, WarmStart(seeds=3))
    assert rows == []
    assert dropped == {why: 3}
