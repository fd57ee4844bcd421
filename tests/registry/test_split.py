from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from snapshots import LAYOUTS, contents, game, games, rich, write

from synthgym import atomic
from synthgym.errors import ConfigError, SnapshotError
from synthgym.memory.fingerprint import ast_hash, parse_source
from synthgym.registry import Snapshot
from synthgym.registry.algebra import split
from synthgym.spec import Provenance, SynthEnvSpec


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here is about power cuts."""
    monkeypatch.setattr(atomic, "_sync", lambda *_: None)


def parts(
    snapshot: Snapshot, out: Path, shares: Iterable[float] = (0.7, 0.3), seed: int = 0
) -> dict[str, Snapshot]:
    targets = {f"part{n}": (out / f"part{n}", share) for n, share in enumerate(shares)}
    made = split(snapshot, targets, seed=seed, version="1.0.0")
    assert list(made) == list(targets)
    return made


def where(snapshot: Snapshot, out: Path, seed: int = 0) -> dict[str, str]:
    """The part of each digest."""
    made = parts(snapshot, out, seed=seed)
    return {digest: name for name, part in made.items() for digest in part.digests()}


@pytest.mark.parametrize("kind", LAYOUTS)
def test_parts_are_disjoint_and_complete_and_keep_ids_and_notes(tmp_path: Path, kind: str) -> None:
    specs = games(12, title="A game", metrics={"rate": 0.5})
    vectors = {spec.digest: {"e": [1.0, 2.0]} for spec in specs[::2]}
    whole = write(tmp_path / "whole", specs, kind, vectors=vectors)
    made = parts(whole, tmp_path / "out", (0.5, 0.3, 0.2))
    assert sum(len(part) for part in made.values()) == 12
    found = {k: v for part in made.values() for k, v in contents(part).items()}
    assert found == contents(whole)
    for name, part in made.items():
        assert part.path == tmp_path / "out" / name
        assert part.verify() == ()
        (parent,) = part.core.parents
        assert (parent.digest, parent.relation) == (whole.digest, "split")


def test_shares_are_met_as_nearly_as_chance_allows(tmp_path: Path) -> None:
    whole = write(tmp_path / "whole", games(300), "shards")
    made = parts(whole, tmp_path / "out", (0.6, 0.3, 0.1))
    sizes = [len(part) for part in made.values()]
    # Binomial: standard deviations of 8.5, 7.9 and 5.2; four of each.
    assert sum(sizes) == 300
    assert abs(sizes[0] - 180) < 34
    assert abs(sizes[1] - 90) < 32
    assert abs(sizes[2] - 30) < 21


def test_the_layout_does_not_matter_and_the_seed_does(tmp_path: Path) -> None:
    whole = [write(tmp_path / kind, games(20), kind) for kind in LAYOUTS]
    made = [parts(s, tmp_path / f"out-{s.path.name}") for s in whole]
    assert [p.digest for p in made[0].values()] == [p.digest for p in made[1].values()]
    seeds = [where(whole[0], tmp_path / f"seed{seed}", seed) for seed in range(3)]
    assert seeds[0] != seeds[1] != seeds[2]


def test_near_copies_stay_together(tmp_path: Path) -> None:
    # Ten structures, each under five names and with five texts.
    specs = [
        game(f"Game{steps}Copy{copy}", text=str(copy), steps=steps)
        for steps in range(10)
        for copy in range(5)
    ]
    whole = write(tmp_path / "whole", specs)
    for seed in range(4):
        made = parts(whole, tmp_path / f"out{seed}", (0.5, 0.5), seed)
        structures = [
            {ast_hash(parse_source(part.spec(digest).record.source)) for digest in part.digests()}
            for part in made.values()
        ]
        assert structures[0].isdisjoint(structures[1])
        assert len(structures[0] | structures[1]) == 10
        assert [len(part) % 5 for part in made.values()] == [0, 0]


def test_families_stay_together_with_the_near_copies_of_their_members(tmp_path: Path) -> None:
    specs = [
        replace(spec, provenance=Provenance(family=f"family{n % 8}"))
        for n, spec in enumerate(games(24))
    ]
    lone = [game(f"Lone{n}", text="copy", steps=n) for n in range(24)]  # of the same structures
    whole = write(tmp_path / "whole", [*specs, *lone])
    for seed in range(4):
        found = where(whole, tmp_path / f"out{seed}", seed)
        for n in range(24):
            family = {found[spec.digest] for spec in (*specs[n % 8 :: 8], *lone[n % 8 :: 8])}
            assert len(family) == 1


def test_two_families_that_share_a_structure_stay_together(tmp_path: Path) -> None:
    def of(family: str, name: str, steps: int) -> SynthEnvSpec:
        return game(name, steps=steps, provenance=Provenance(family=family))

    specs = [of("a", "A", 1), of("a", "Ab", 2), of("b", "Ba", 2), of("b", "Bc", 3), of("c", "C", 3)]
    others = [game(f"Other{n}", steps=10 + n) for n in range(12)]
    for seed in range(6):
        whole = write(tmp_path / f"whole{seed}", [*specs, *others])
        found = where(whole, tmp_path / f"out{seed}", seed)
        assert len({found[spec.digest] for spec in specs}) == 1


def test_a_snapshot_that_grows_keeps_its_parts(tmp_path: Path) -> None:
    specs = games(30)
    families = [
        replace(spec, provenance=Provenance(family=f"family{n % 3}"))
        for n, spec in enumerate([game(f"Family{n}", steps=100 + n) for n in range(9)])
    ]
    small = where(write(tmp_path / "small", [*specs[:15], *families[:6]]), tmp_path / "s")
    large = where(write(tmp_path / "large", [*specs, *families], "shards"), tmp_path / "l")
    assert len(large) == len(small) + 18
    assert {digest: large[digest] for digest in small} == small


def test_what_does_not_parse_is_like_nothing_else(tmp_path: Path) -> None:
    broken = [
        replace(spec, record=replace(spec.record, source=f"def ({spec.name}")) for spec in games(12)
    ]
    made = where(write(tmp_path / "whole", broken), tmp_path / "out")
    assert set(made.values()) == {"part0", "part1"}


SPLIT = """
import sys
from pathlib import Path
from synthgym.registry import Snapshot
from synthgym.registry.algebra import split
out = Path(sys.argv[2])
made = split(
    Snapshot.open(sys.argv[1]),
    {"train": (out / "train", 0.7), "test": (out / "test", 0.3)},
    seed=4,
    version="1.0.0",
)
print(*(part.digest for part in made.values()))
"""


def test_another_process_with_another_hash_seed_splits_the_same(tmp_path: Path) -> None:
    whole = write(tmp_path / "whole", games(12))
    printed = []
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", SPLIT, whole.path, tmp_path / seed],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"PYTHONHASHSEED": seed},
            timeout=100,
        )
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout)
    assert printed[0] == printed[1]
    assert printed[0].count("sha256:") == 2


@pytest.mark.parametrize(
    "shares",
    [(1.0,), (), (0.5, 0.4), (0.5, 0.6), (1.5, -0.5), (1.0, 0.0), (float("nan"), 0.5)],
)
def test_shares_must_be_positive_and_sum_up_to_1(tmp_path: Path, shares: tuple[float, ...]) -> None:
    whole = write(tmp_path / "whole", games(3))
    with pytest.raises(ConfigError, match="at least two shares above 0 that sum up to 1"):
        parts(whole, tmp_path / "out", shares)
    assert not (tmp_path / "out").exists()


def test_a_refused_split_writes_no_part_at_all(tmp_path: Path) -> None:
    whole = rich(tmp_path / "whole", "folder")
    out = tmp_path / "out"
    (out / "there").mkdir(parents=True)
    for targets, version, message in (
        ({"new": (out / "new", 0.5), "there": (out / "there", 0.5)}, "1", "exists already"),
        ({"new": (out / "new", 0.5), "../up": (out / "../up", 0.5)}, "1", "a snapshot's name"),
        ({"new": (out / "new", 0.5), "test": (out / "test", 0.5)}, "v1", "a snapshot's version"),
        # All three are of one structure.
        ({"new": (out / "new", 0.5), "test": (out / "test", 0.5)}, "1", "change seed or shares"),
    ):
        with pytest.raises(SnapshotError, match=message):
            split(whole, targets, seed=0, version=version)
        assert [path.name for path in out.iterdir()] == ["there"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "whole"]


SPECS = st.lists(
    st.builds(
        lambda name, text, steps, family: game(
            name, 0, text, steps, provenance=Provenance(family=family)
        ),
        name=st.from_regex(r"[A-Z][a-z]{3}", fullmatch=True),
        text=st.sampled_from("abc"),
        steps=st.integers(0, 5),
        family=st.sampled_from(["", "", "one", "two"]),
    ),
    min_size=2,
    max_size=8,
    unique_by=(lambda s: s.digest, lambda s: s.name.casefold()),
)


@settings(max_examples=25, deadline=None)
@given(SPECS, st.integers(0, 3), st.sampled_from(LAYOUTS))
def test_no_split_tears_a_family_or_a_structure_apart(
    specs: list[SynthEnvSpec], seed: int, kind: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        whole = write(Path(folder, "whole"), specs, kind)
        try:
            found = where(whole, Path(folder, "out"), seed)
        except SnapshotError:
            assert [path.name for path in Path(folder).iterdir()] == ["whole"]
            return
    assert found.keys() == {spec.digest for spec in specs}
    part_of: dict[str, str] = {}
    for spec in specs:
        for key in (spec.provenance.family, ast_hash(parse_source(spec.record.source))):
            assert not key or part_of.setdefault(key, found[spec.digest]) == found[spec.digest]
