"""docs/spade.md names every setting with its default, every reward, and every field of a run's rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from pages import CODE, after, table

from spade_loop.batch import RoleSummary
from spade_loop.config import Config
from spade_loop.design.admission import Admission
from spade_loop.hints import WrittenHint
from spade_loop.measurement import Measured
from spade_loop.payment import Paid, Payment
from spade_loop.rehearsal import NOTHING_REHEARSED
from spade_loop.rewards import DESIGNER_REWARDS, Regret
from spade_loop.rows import design_rows, episode_rows, hint_rows, metrics_row, payment_rows
from spade_loop.schedule import Attempt
from spade_loop.types import (
    Arm,
    Candidate,
    Completion,
    JsonRow,
    Outcome,
    Role,
    StopReason,
    Trajectory,
    Turn,
)
from spade_loop.windows import Visit
from synthgym.contract import SKILLS
from synthgym.spec import EnvRecord, SynthEnvSpec


def flat(row: JsonRow, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted keys of nested data."""
    for key, value in row.items():
        if isinstance(value, dict) and value:
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def test_the_table_of_settings_has_every_setting_with_its_default() -> None:
    def as_shown(value: Any) -> str:
        if value == SKILLS:
            return "all six"
        return '`""`' if value == "" else f"`{list(value) if value == () else value}`"

    expected = {key: as_shown(value) for key, value in flat(Config().to_json())}
    assert table("docs/spade.md", "settings") == expected


def test_the_designer_rewards_are_those_of_the_code() -> None:
    assert set(table("docs/spade.md", "designer rewards")) == set(DESIGNER_REWARDS)


# --- rows of a run ---


def measured() -> Measured:
    spec = SynthEnvSpec(record=EnvRecord(source="", entry="E", max_turns=2), name="E")
    trajectory = Trajectory(
        digest=spec.digest,
        seed=0,
        play=0,
        arm=Arm.PLAIN,
        prompt_ids=(1,),
        completion=Completion((1,), (0.0,), (1,)),
        turns=(Turn("o", "r", "a", "ok", 0.0),),
        episode_return=0.0,
        success=False,
        stop=StopReason.TURNS,
    )
    return Measured(
        spec=spec,
        seeds=(0,),
        plain=(trajectory,),
        hinted=(),
        placebo=(),
        trained_seeds=1,
        return_SK=np.zeros((1, 1)),
        regret=Regret(0.0, 0.0, 0.0, 0.0, 2),
        interval=None,
        fault_share=0.0,
        visit=Visit(iteration=0, plain=((0.0,),), plain_won=((0.0,),)),
    )


class Step:
    def to_json(self) -> JsonRow:
        from spade_loop.trainer import StepReport

        return StepReport().to_json()


def documented_fields(marker: str) -> set[str]:
    return set(table("docs/spade.md", marker))


def test_every_field_of_a_metrics_row_is_explained() -> None:
    summary = RoleSummary(*(0.0,) * 0, **dict.fromkeys(RoleSummary.__slots__, 0))
    payment = Payment(trackers={})
    row = metrics_row(
        0,
        [Admission(attempt(), None)],
        [measured()],
        dict.fromkeys(Role, summary),
        {"payment": payment, "rehearsal": NOTHING_REHEARSED, "update": Step()},
    )
    keys = [re.sub(r"^roles\.\w+\.", "roles.<role>.", key) for key, _ in flat(row)]
    fields = {re.sub(r"^designers\.\w+\.", "designers.<name>.", key) for key in keys}
    assert documented_fields("metrics") == fields


def attempt() -> Candidate:
    return Candidate(
        skill="",
        document_id="",
        document_license="",
        prompt_ids=(),
        completion=Completion((), (), ()),
        reply="",
        spec=measured().spec,
    ).settled(Outcome.ADMITTED)


def test_every_field_of_a_hint_row_is_explained() -> None:
    written = WrittenHint(digest="d", text="t", prompt_ids=(), completion=Completion((), (), ()))
    (row,) = hint_rows(0, [written])
    assert documented_fields("hints") == set(row)


def test_every_field_of_a_payment_row_is_explained() -> None:
    attempt = Attempt(skill="s", group="g", trained=True, valid=True)
    paid = Paid(attempt=attempt, reward=0.0, total=0.0, advantage=0.0, window=None)
    (row,) = payment_rows(0, Payment(paid=(paid,), trackers={}))
    assert documented_fields("payments") == set(row)


def test_every_field_of_a_design_row_is_explained() -> None:
    (row,) = design_rows(0, [Admission(attempt(), None)], [measured()])
    assert documented_fields("designs") == {key for key, _ in flat(row)} | {"measured"}


def test_every_field_of_an_episode_row_is_explained() -> None:
    (row,) = episode_rows(0, [measured()])
    assert documented_fields("episodes") == set(row)
    turns = re.search(r"^\| `turns` \| (.*) \|$", after("docs/spade.md", "episodes"), re.MULTILINE)
    assert turns
    assert set(row["turns"][0]) <= set(CODE.findall(turns[1]))
