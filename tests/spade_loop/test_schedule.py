"""The clock of a run: nothing waits for ever, and nothing is trained on twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spade_loop.config import load_config
from spade_loop.schedule import Schedule, Waiting


def walk(schedule: Schedule) -> list[tuple[int, int]]:
    """(step, iteration whose designs it trained on), over a whole run."""
    queue: tuple[Waiting, ...] = ()
    trained = []
    for step in range(schedule.steps):
        if schedule.regenerates(step):
            queue = (*queue, Waiting(iteration=step, attempts=()))
        due, queue = schedule.release(queue, step)
        trained += [(step, waiting.iteration) for waiting in due]
    assert queue == ()
    return trained


@given(iterations=st.integers(1, 40), every=st.integers(1, 12), delay=st.integers(0, 50))
def test_every_design_is_trained_on_once_at_its_delay_or_after_the_end(
    iterations: int, every: int, delay: int
) -> None:
    schedule = Schedule(iterations, every, delay, designs=True)
    trained = walk(schedule)
    assert [i for _, i in trained] == list(range(0, iterations, every))
    steps = [step for step, _ in trained]
    assert len(set(steps)) == len(steps)  # never two iterations' designs in one step
    for step, iteration in trained:
        if iteration + delay < iterations:
            assert step == iteration + delay
        else:
            assert step >= iterations
    assert schedule.steps == iterations + sum(step >= iterations for step in steps)


def test_the_recipe_of_the_paper_trains_on_all_hundred_regenerations() -> None:
    """The released code loses the last of them (its final flush never comes)."""
    schedule = Schedule(400, 4, 4, designs=True)
    assert len(walk(schedule)) == 100
    assert schedule.drain_steps == 1


def test_a_delay_that_is_no_multiple_of_the_interval_is_legal() -> None:
    """The released code trains on nothing at all there."""
    assert walk(Schedule(8, 4, 3, designs=True)) == [(3, 0), (7, 4)]


@pytest.mark.parametrize(
    ("settings", "steps"),
    [
        ([], 3),
        (["designer.train=false", "designer.initial_share=0", "schedule.designer_delay=5"], 3),
        (["schedule.designer_delay=2", "trainer.learning_rate=1e-6"], 5),
        (["schedule.regenerate_every=3", "schedule.designer_delay=0"], 3),
    ],
)
def test_the_steps_of_a_recipe(settings: list[str], steps: int) -> None:
    settings = ["trainer.learning_rate=1e-6", *settings]
    assert Schedule.of(load_config("tiny", settings)).steps == steps
