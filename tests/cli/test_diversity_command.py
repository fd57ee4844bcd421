from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from command_line import Run
from diversity_pools import BROKEN, DOORS, SCALES, mixed, snapshot, spec

from synthgym.diversity import FIGURES
from synthgym.memory.minilm import minilm_available

HASH = ("--embedder", "hash")


def test_a_snapshot_is_measured_and_what_could_not_be_is_named(run: Run, tmp_path: Path) -> None:
    mixed(tmp_path / "pool")
    page = tmp_path / "page.html"
    done = run("diversity", tmp_path / "pool", *HASH, "--html", page)
    assert (done.code, done.err) == (0, "")
    assert "pool 1.0: 3 of 5 environments measured, 2 families" in done.out
    assert "in no figure: synthgym/Broken-v0: error in reset: RuntimeError: <b>no</b>" in done.out
    assert "in no figure: synthgym/Refused-v0: refused in load" in done.out
    assert "\x1b" not in done.out
    rows = {line.split("  ")[0].strip(): line for line in done.out.splitlines()}
    assert "33.3 %" in rows["near copies"]
    assert "hash/1-512" in rows["Vendi score"]
    assert "hash" not in rows["near copies"]
    written = page.read_text()
    assert "&lt;script&gt;" in written
    assert "<script" not in written


def test_two_snapshots_are_compared_at_equal_size(run: Run, tmp_path: Path) -> None:
    mixed(tmp_path / "a")
    snapshot(tmp_path / "b", spec(DOORS, "Doors"), spec(SCALES, "Scales"), name="other")
    done = run("diversity", tmp_path / "a", tmp_path / "b", *HASH, "--json", "--seed", 3)
    assert done.code == 0
    found = json.loads(done.out)
    assert (found["embedder"], found["seed"], found["sample"]) == ("hash/1-512", 3, 2000)
    one, other = found["snapshots"]
    assert (one["size"], other["size"]) == (2, 2)
    assert (one["measured"], one["environments"]) == (3, 5)
    assert {item["kind"] for item in one["unmeasured"]} == {"error", "refused"}
    assert other["figures"]["near_copies"]["value"] == 0.0
    assert 0.0 < one["figures"]["near_copies"]["value"] < 0.5
    assert list(one["figures"]) == [figure.key for figure in FIGURES[:-3]]


def test_the_same_seed_gives_the_same_bytes(run: Run, tmp_path: Path) -> None:
    mixed(tmp_path / "pool")
    command = ("diversity", tmp_path / "pool", *HASH, "--sample", 2, "--json", "--seed")
    assert run(*command, 1).out == run(*command, 1).out
    assert run(*command, 1).out != run(*command, 2).out


def test_traces_are_there_when_they_are_asked_for(run: Run, tmp_path: Path) -> None:
    mixed(tmp_path / "pool")
    done = run("diversity", tmp_path / "pool", *HASH, "--traces", "--json")
    (found,) = json.loads(done.out)["snapshots"]
    assert found["figures"]["traces"]["value"] == pytest.approx(2 / 3, abs=1e-6)
    assert found["untraced"] == 0


def test_nothing_measured_is_told_and_is_no_error(run: Run, tmp_path: Path) -> None:
    snapshot(tmp_path / "pool", spec(BROKEN, "Broken"))
    done = run("diversity", tmp_path / "pool", *HASH)
    assert done.code == 0
    assert "0 of 1 environments measured" in done.out
    assert "Vendi" not in done.out


def test_without_a_path_the_bundled_environments_are_measured(run: Run) -> None:
    done = run("diversity", *HASH, "--json")
    (found,) = json.loads(done.out)["snapshots"]
    assert found["name"].startswith("bundled ")
    assert found["measured"] == found["environments"] >= 8
    assert found["unmeasured"] == []
    assert found["figures"]["near_copies"]["value"] == 0.0


@pytest.mark.slow
@pytest.mark.skipif(not minilm_available(), reason="needs synthgym[tiny]")
def test_minilm_is_named_beside_its_figures(
    run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    snapshot(tmp_path / "pool", spec(DOORS, "Doors"), spec(SCALES, "Scales"))
    done = run("diversity", tmp_path / "pool", "--embedder", "minilm", "--json")
    (found,) = json.loads(done.out)["snapshots"]
    assert found["figures"]["nn_1"]["embedder"] == "minilm/1"
    assert 1.0 < found["figures"]["vendi_1"]["value"] < 2.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--embedder", "word2vec"), "unknown embedder 'word2vec'"),
        (("--html", "none/page.html"), "expected a file in a folder that is there"),
        (("--html", "pool/page.html"), "it would lie in a snapshot"),
    ],
)
def test_mistakes_are_told_at_once(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    snapshot(tmp_path / "pool", spec(DOORS, "Doors"))
    done = run("diversity", "pool", *arguments)
    assert done.code == 2
    assert message in done.err


def test_a_folder_without_a_snapshot_is_a_mistake(run: Run, tmp_path: Path) -> None:
    done = run("diversity", tmp_path, *HASH)
    assert done.code == 2
    assert done.err.startswith("error: ")
