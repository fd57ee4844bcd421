"""The benchmark of the estimators on few environments: its theory, its counts, what it refuses."""

from __future__ import annotations

import csv
import importlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

ROOT = Path(__file__).parents[1]


@pytest.fixture
def estimator(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("estimator")


@pytest.fixture
def few(estimator: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The benchmark over two kinds for each number of plays."""
    monkeypatch.setattr(estimator, "RATES", (0.6,))
    monkeypatch.setattr(estimator, "RESCUED", (0.0, 0.3))
    monkeypatch.setattr(estimator, "CORRELATIONS", (0.6,))
    return estimator


def test_with_a_useless_hint_theory_is_the_textbook_s(estimator: ModuleType) -> None:
    @settings(max_examples=50, deadline=None)
    @given(st.floats(0.01, 0.99), st.floats(0.0, 0.99), st.integers(1, 16))
    def check(rate: float, correlation: float, plays: int) -> None:
        kind = estimator.Kind(rate, 0.0, correlation, plays)
        expected = (1.0 - correlation) / (1.0 + (plays - 1) * correlation)
        assert kind.ratio == pytest.approx(expected)
        assert kind.shared == pytest.approx(correlation)

    check()


def test_a_hint_that_wins_everything_leaves_nothing_to_share(estimator: ModuleType) -> None:
    kind = estimator.Kind(0.3, 1.0, 0.8, 4)
    assert (kind.ratio, kind.shared, kind.regret) == (1.0, 0.0, 0.7)


def test_plays_have_the_rates_and_the_correlation_that_they_are_said_to_have(
    estimator: ModuleType,
) -> None:
    kind = estimator.Kind(0.6, 0.3, 0.4, 2)
    rng = np.random.default_rng(1)
    rate_ES = kind.rates((200, 500), rng)
    hinted, plain = kind.hinted(rate_ES, rng), kind.plain(rate_ES, rng)
    assert plain.mean() == pytest.approx(0.6, abs=0.01)
    assert hinted.mean() - plain.mean() == pytest.approx(kind.regret, abs=0.01)
    pair = np.corrcoef(plain[..., 0].ravel(), plain[..., 1].ravel())[0, 1]
    assert pair == pytest.approx(0.4, abs=0.02)


def test_an_interval_that_is_too_narrow_is_seen(
    few: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = few.regret_interval
    kind = few.Kind(0.6, 0.3, 0.6, 1)
    rng = np.random.default_rng(2)
    rate_ES = kind.rates((300, 64), rng)
    arms = kind.hinted(rate_ES, rng), kind.plain(rate_ES, rng)
    assert few.fixed(kind, *arms, 32).share >= 0.93
    monkeypatch.setattr(few, "regret_interval", lambda h, p: honest(h, p, 0.6))
    assert few.fixed(kind, *arms, 32).share < 0.8


def test_variances_of_an_estimator_that_shares_nothing_are_off_theory(few: ModuleType) -> None:
    kind = few.Kind(0.6, 0.3, 0.6, 4)
    right = few.measure(kind, 150, 0)
    assert right.deviation < 0.1
    rng = np.random.default_rng(3)
    rate_ES = kind.rates((150, 64), rng)
    hinted, elsewhere = (
        kind.hinted(rate_ES, rng),
        kind.plain(kind.rates(rate_ES.shape, rng), rng),
    )
    unshared = few.variances(hinted, elsewhere, elsewhere)
    assert unshared.ratio == pytest.approx(1.0, abs=0.05)
    assert unshared.actual == pytest.approx(1.0, abs=0.4)


def test_it_prints_two_tables_and_writes_every_number(
    few: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "estimator.csv"
    arguments = ["--environments", "300", "--out", str(out)]
    assert few.main(arguments) == 0
    printed = capsys.readouterr().out
    assert "missed" not in printed
    assert printed.count("| stopping rule |") == 2
    rows = list(csv.DictReader(out.read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 4 * 5
    assert {row["environments"] for row in rows} == {"300"}
    first = out.read_bytes()
    few.main(arguments)
    assert out.read_bytes() == first


def test_a_missed_goal_is_an_exit_code(few: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few, "COVERAGE", few.Goal(1.1, unit=""))
    assert few.main(["--environments", "20"]) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--environments", "1"], "one has no variance"),
        (["--environments", "many"], "whole number"),
        (["--out", "/nowhere/at/all.csv"], "there is no directory"),
    ],
)
def test_what_makes_no_sense_is_refused(
    estimator: ModuleType, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        estimator.main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
