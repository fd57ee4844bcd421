"""What a suite is made of, and how suites are found by name and set up."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pages import table

from spade_loop.completers import Reply
from spade_loop.errors import ConfigError
from spade_loop.evaluation.plugins import (
    BUILT_IN,
    check_owners,
    factory_of,
    open_suite,
    options_for,
    settings_of,
    suite_names,
)
from spade_loop.evaluation.suite import Attempt, Failure, Item, spread, unread
from spade_loop.speaking import Decoding


class Sums:
    """A suite without items, for its options."""

    name = "sums"
    version = "1"
    decoding = Decoding(max_tokens=8)
    samples = 1

    def __init__(
        self,
        *,
        needed: int,
        share: float = 0.5,
        fast: bool = False,
        kind: Literal["easy", "hard"] = "easy",
        names: tuple[str, ...] = (),
        sizes: tuple[int, ...] = (1, 2),
        file: Path | None = None,
        most: int | None = None,
        seed: int = 0,
    ) -> None:
        self.got = (needed, share, fast, kind, names, sizes, file, most, seed)

    def items(self, limit):
        return spread([], limit)

    def play(self, item, say, seed):
        raise AssertionError

    def close(self) -> None:
        pass


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of other people's that offers suites, found as an installed one is."""
    folder = tmp_path / "acme_suites-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-suites\nVersion: 1.0\n")
    lines = ["sums = acme_suites:Sums", "broken = acme_suites:Nothing", "text = acme_suites:TEXT"]
    lines.append("snapshot = acme_suites:Sums")  # the name of a built-in one
    (folder / "entry_points.txt").write_text("[spade_loop.suites]\n" + "\n".join(lines) + "\n")
    module = type(sys)("acme_suites")
    module.Sums, module.TEXT = Sums, "no factory"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "acme_suites", module)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


ITEMS = st.lists(st.sampled_from("abc"), max_size=30).map(
    lambda categories: [Item(id=str(n), category=c) for n, c in enumerate(categories)]
)


@given(ITEMS, st.integers(1, 40))
def test_a_limit_takes_evenly_and_keeps_the_order(items: list[Item], limit: int) -> None:
    kept = spread(items, limit)
    assert len(kept) == min(limit, len(items))
    assert list(kept) == [item for item in items if item in kept]
    counts = {c: sum(i.category == c for i in kept) for c in "abc"}
    whole = {c: sum(i.category == c for i in items) for c in "abc"}
    most = max(counts.values())
    assert all(counts[c] >= min(whole[c], most - 1) for c in "abc")
    assert set(kept) <= set(spread(items, limit + 1))


def test_a_limit_below_the_number_of_groups_takes_from_all_categories() -> None:
    groups = [("math", "m0"), ("math", "m1"), ("math", "m2"), ("logic", "l0"), ("words", "w0")]
    items = [Item(id=f"{name}/{n}", category=c) for c, name in groups for n in range(3)]

    def kept(limit: int) -> list[str]:
        return [i.id for i in spread(items, limit, by=lambda item: item.id.partition("/")[0])]

    assert kept(3) == ["m0/0", "l0/0", "w0/0"]
    assert kept(5) == ["m0/0", "m1/0", "m2/0", "l0/0", "w0/0"]
    assert kept(8) == ["m0/0", "m0/1", "m1/0", "m2/0", "l0/0", "l0/1", "w0/0", "w0/1"]


def test_a_limit_below_one_is_refused_and_none_takes_all() -> None:
    items = [Item(id="1", category="a")]
    assert spread(items, None) == tuple(items)
    with pytest.raises(ConfigError, match="at least 1, got 0"):
        spread(items, 0)


@pytest.mark.parametrize(
    ("attempt", "told"),
    [
        ({"score": 1.5, "correct": True}, "0..1"),
        ({"score": 0.0, "correct": False, "failure": "Not Spelt So"}, "written like"),
        ({"score": 1.0, "correct": True, "failure": "cut"}, "cannot be correct"),
    ],
)
def test_an_attempt_that_contradicts_itself_is_refused(attempt: dict, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Attempt(**attempt)


def test_only_a_fault_of_the_environment_is_left_out_of_the_rates() -> None:
    assert [kind for kind in Failure if not Attempt.failed(kind).counted] == [Failure.FAULT]


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply("so far", 8, stopped=False), Failure.CUT),
        (Reply("", 8, stopped=False), Failure.CUT),
        (Reply(" \n", 1, stopped=True), Failure.EMPTY),
        (Reply("no answer", 2, stopped=True), Failure.UNPARSED),
    ],
)
def test_a_reply_without_an_answer_is_cut_empty_or_unparsed(reply: Reply, kind: Failure) -> None:
    assert unread(reply, ()).failure == kind


# --- by name ---


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_every_built_in_suite_has_a_factory_with_typed_settings(name: str) -> None:
    settings = settings_of(factory_of(name))
    assert all(not isinstance(p.annotation, str) for p in settings.values())


def test_an_unknown_suite_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match=r"did you mean 'aime-2025'.*gpqa-diamond"):
        factory_of("aime2025")


def test_other_packages_offer_suites_but_not_under_a_built_in_name(installed: Path) -> None:
    assert {"sums", "broken", "text"} <= set(suite_names())
    assert factory_of("sums") is Sums
    assert factory_of("snapshot") is not Sums
    with pytest.raises(ConfigError, match=r"'broken'.*package acme-suites.*Nothing"):
        factory_of("broken")
    with pytest.raises(ConfigError, match="no factory"):
        factory_of("text")


def test_options_are_typed_by_the_factory(installed: Path) -> None:
    suite = open_suite(
        "sums:3",
        {
            "share": "0.25",
            "fast": "true",
            "kind": "hard",
            "names": "a, b",
            "sizes": "4,5",
            "file": "/tmp/x",
            "most": "9",
        },
        seed=7,
    )
    assert suite.got == (3, 0.25, True, "hard", ("a", "b"), (4, 5), Path("/tmp/x"), 9, 7)
    assert open_suite("sums", {"needed": "1", "seed": "2"}, seed=7).got[-1] == 2


@pytest.mark.parametrize(
    ("asked", "options", "told"),
    [
        ("sums", {}, "needs the option 'needed'"),
        ("sums", {"need": "1"}, "no option 'need'; did you mean 'needed'"),
        ("sums:x", {}, "sums: needed: .*int.*got 'x'"),
        ("sums:1", {"fast": "perhaps"}, "sums: fast: .*got 'perhaps'"),
        ("sums:1", {"kind": "soft"}, "sums: kind: .*got 'soft'"),
        ("sums:1", {"sizes": "1,b"}, "sums: sizes: .*got '1,b'"),
    ],
)
def test_an_option_that_is_wrong_is_named(
    installed: Path, asked: str, options: dict, told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        open_suite(asked, options, seed=0)


def test_options_belong_to_a_suite() -> None:
    given = ["a.x=1", "b.x=2", "a.y=k=v"]
    assert options_for("a:main", given, alone=False) == {"x": "1", "y": "k=v"}
    assert options_for("a", ["x=1"], alone=True) == {"x": "1"}
    with pytest.raises(ConfigError, match=r"say which: SUITE\.x=1"):
        options_for("a", ["x=1"], alone=False)
    with pytest.raises(ConfigError, match="KEY=VALUE"):
        options_for("a", ["x"], alone=True)
    with pytest.raises(ConfigError, match="'c' was not asked for"):
        check_owners(["a", "b:main"], ["b.x=1", "c.x=1"])


# --- the page ---


def test_the_page_has_every_failure_and_every_suite() -> None:
    documented = table("docs/evaluation.md", "failures")
    assert set(documented) == {str(kind) for kind in Failure}
    suites = {name.partition(":")[0] for name in table("docs/evaluation.md", "suites")}
    assert suites == set(BUILT_IN)
