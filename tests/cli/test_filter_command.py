from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Run
from snapshots import contents, game, write

from synthgym.registry import Snapshot


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def ids(place: str) -> list[str]:
    return [entry.env_id.removeprefix("synthgym/") for entry in Snapshot.open(place)]


@pytest.fixture
def measured(here: Path) -> Path:
    """Four environments with skills, licenses and figures."""
    rates = (0.0, 0.05, 0.5, None)
    specs = [
        game(
            f"Game{n}",
            steps=n,
            title=f"The {word} game",
            skills=(skill,),
            license=license_,
            metrics={} if rate is None else {"agents": {"random": {"solve_rate": rate}}},
        )
        for n, (word, skill, license_, rate) in enumerate(
            zip(
                ("first", "second", "third", "fourth"),
                ("optimisation", "logical-deduction", "logical-deduction", "own-skill"),
                ("MIT", "MIT", "Apache-2.0", "CC0-1.0"),
                rates,
                strict=True,
            )
        )
    ]
    return write(here / "games", specs).path


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        (("--skill", "logical-deduction"), "12"),
        (("--skill", "optimisation", "--skill", "own-skill"), "03"),
        (("--license", "MIT"), "01"),
        (("--license", "MIT", "--skill", "logical-deduction"), "1"),
        (("--search", "FIRST the"), "0"),
        (("--where", "agents.random.solve_rate<0.1"), "01"),
        (("--where", "agents.random.solve_rate <= .05"), "01"),
        (("--where", "agents.random.solve_rate>=5e-2"), "12"),
        (("--where", "agents.random.solve_rate=0"), "0"),
        (("--where", "agents.random.solve_rate<0.05"), "0"),
        (("--where", "agents.random.solve_rate>0.05"), "2"),
        (("--where", "agents.random.solve_rate>0", "--where", "agents.random.solve_rate<.3"), "1"),
        (("--where", "agents.random.solve_rate<0.1", "--drop"), "23"),
        (("--ids", "ids.txt"), "03"),
        ((), "0123"),
    ],
)
def test_filter_keeps_what_fits_every_option(
    run: Run, measured: Path, options: tuple[str, ...], kept: str
) -> None:
    digest = Snapshot.open(measured).entry("Game3-v0").digest
    Path("ids.txt").write_text(f"synthgym/Game0-v0\n\n  {digest}  \n")
    ran = run("snapshot", "filter", "games", "out", *options)
    assert ran.code == 0, ran.err
    made = Snapshot.open("out")
    assert ran.out == f"{len(kept)} of 4 environments, games 1.0.0\n{made.digest}\n"
    assert ids("out") == [f"Game{number}-v0" for number in kept]
    assert made.verify() == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--skill", "logical-deducton"), "did you mean 'logical-deduction'"),
        (("--skill", "own-skil"), "did you mean 'own-skill'"),
        (("--license", "MTI"), "did you mean 'MIT'"),
        (("--where", "solve_rate"), "as agents.random.solve_rate<0.1, got 'solve_rate'"),
        (("--where", "a<1.2.3"), "got 'a<1.2.3'"),
        (("--where", "a<."), "got 'a<.'"),
        (("--where", "a<nan"), "got 'a<nan'"),
        (("--where", "a.b<1"), "nothing is written"),
        (("--skill", "spatial-reasoning"), "nothing is written"),
        (("--ids", "none.txt"), "--ids names a text file"),
        (("--ids", "wrong.txt"), "did you mean 'synthgym/Game0-v0'"),
        (("--layout", "shard"), "layout must be one of folder, shards, got 'shard'"),
        (("--name", "a b"), "a snapshot's name"),
        (("--release", "newest"), "a snapshot's version"),
    ],
)
def test_filter_says_what_is_wrong_and_writes_nothing(
    run: Run, measured: Path, options: tuple[str, ...], message: str
) -> None:
    Path("wrong.txt").write_text("synthgym/Gamee0-v0")
    ran = run("snapshot", "filter", "games", "out", *options)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert names(measured.parent) == ["games", "wrong.txt"]


def test_filter_names_and_lays_out_what_it_writes(run: Run, measured: Path) -> None:
    ran = run(
        *("snapshot", "filter", "games", "out", "--search", "game"),
        *("--name", "mine", "--release", "3.0", "--layout", "shards"),
    )
    assert ran.out.startswith("4 of 4 environments, mine 3.0\n")
    assert Snapshot.open("out").manifest.layout == "shards"
    assert contents(Snapshot.open("out")) == contents(Snapshot.open(measured))


def test_search_finds_words_and_skills_in_any_place(run: Run, measured: Path) -> None:
    assert run("snapshot", "pack", "games", "games.sgz").code == 0
    for place in ("games", "games.sgz"):
        found = json.loads(run("search", "GAME third", "--snapshot", place, "--json").out)
        assert [row["id"] for row in found] == ["synthgym/Game2-v0"]
        assert found[0]["license"] == "Apache-2.0"
    words = ("search", "--skill", "logical-deduction", "--snapshot", "games", "--json")
    assert len(json.loads(run(*words).out)) == 2
    assert len(json.loads(run(*words, "--limit", 1).out)) == 1
    assert run(*words, "--limit", 0).code == 2
    for path in measured.glob("envs/*/*/*"):
        path.unlink()
    assert "synthgym/Game0-v0" in run("search", "first", "--snapshot", "games").out


def test_search_for_nothing_that_is_there_exits_with_1(run: Run, measured: Path) -> None:
    ran = run("search", "zebra", "--snapshot", measured, "--json")
    assert (ran.code, json.loads(ran.out), ran.err) == (1, [], "")
    ran = run("search", "--skill", "spatial-reasoning", "--snapshot", measured, "--json")
    assert (ran.code, json.loads(ran.out)) == (1, [])
    ran = run("search", "--skill", "spatial-resoning", "--snapshot", measured, "--json")
    assert (ran.code, ran.out) == (2, "")
    assert "did you mean 'spatial-reasoning'?" in ran.err


# --- zones that spade-loop gap noted ---


def with_zones(place: Path, *noted: dict[str, str]) -> Path:
    """Games with the zones of models."""
    specs = [
        game(
            f"Game{n}",
            steps=n,
            metrics={"gap": {model: {"zone": zone} for model, zone in zones.items()}}
            if zones
            else {},
        )
        for n, zones in enumerate(noted)
    ]
    return write(place, specs).path


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        (("--zone", "frontier", "--model", "org/a"), "0"),
        (("--zone", "frontier", "--model", "b"), "1"),
        (("--zone", "frontier", "--zone", "mastered", "--model", "b"), "01"),
        (("--zone", "frontier", "--model", "b", "--drop"), "023"),
    ],
)
def test_zones_of_a_model(here: Path, run: Run, options: tuple[str, ...], kept: str) -> None:
    place = with_zones(
        here / "games",
        {"org/a": "frontier", "b": "mastered"},
        {"org/a": "mastered", "b": "frontier"},
        {},
        {"b": "unmeasured"},
    )
    assert run("snapshot", "filter", place, here / "out", *options).code == 0
    assert ids(str(here / "out")) == [f"Game{n}-v0" for n in kept]


def test_the_one_model_that_was_measured_needs_no_name(here: Path, run: Run) -> None:
    place = with_zones(here / "games", {"a": "frontier"}, {})
    assert run("snapshot", "filter", place, here / "out", "--zone", "frontier").code == 0
    assert ids(str(here / "out")) == ["Game0-v0"]


@pytest.mark.parametrize(
    ("noted", "options", "told"),
    [
        (
            ({}, {}),
            ("--zone", "frontier"),
            "no zones are noted in games 1.0.0: measure a model with",
        ),
        (({"a": "frontier"},), ("--zone", "frontir"), "did you mean 'frontier'"),
        (({"a": "frontier"},), ("--zone", "mastered"), "there are frontier"),
        (({"a": "frontier"},), ("--zone", "frontier", "--model", "A1"), "there are a"),
        (({"a": "frontier", "b": "mastered"},), ("--zone", "frontier"), "one of a, b"),
        (({"a": "frontier"},), ("--model", "a"), "give --zone, too"),
    ],
)
def test_zones_that_cannot_be_meant(
    here: Path, run: Run, noted: tuple[dict[str, str], ...], options: tuple[str, ...], told: str
) -> None:
    place = with_zones(here / "games", *noted)
    done = run("snapshot", "filter", place, here / "out", *options)
    assert (done.code, told in done.err) == (2, True), done.err
    assert not (here / "out").exists()
