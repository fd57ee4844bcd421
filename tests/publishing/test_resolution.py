from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthgym.errors import ConfigError, SnapshotError
from synthgym.publishing.index import Index, Release, Yank, with_release
from synthgym.publishing.resolution import resolve
from synthgym.spec import sha256_digest

AT = "2026-05-31T12:00:00Z"


def digest(version: str) -> str:
    return sha256_digest(version.encode())


def release(version: str, severity: str = "", min_reader: int = 1) -> Release:
    return Release(
        version=version,
        digest=digest(version),
        manifest_sha256=digest("manifest"),
        size=1,
        env_count=1,
        min_reader=min_reader,
        license="MIT",
        published=AT,
        yanked=Yank(at=AT, reason="a reason", severity=severity) if severity else None,
    )


def index_of(*releases: Release) -> Index:
    made = Index()
    for one in releases:
        made = with_release(made, "games", one)
    return made


INDEX = index_of(
    release("1.2"),
    release("1.9.1", "broken"),
    release("1.10"),
    release("2.0", "license"),
    release("2.1", "unsafe"),
    release("3.0", min_reader=2),
)


@pytest.mark.parametrize(
    ("wanted", "version"),
    [
        (None, "1.10"),
        ("", "1.10"),
        (">=1,<2", "1.10"),
        ("<1.10", "1.2"),
        (" >= 1.0 , < 1.9.1 ", "1.2"),
        ("~=1.2", "1.10"),
        ("!=1.10", "1.2"),
        ("==1.*", "1.10"),
        ("1.10", "1.10"),
        ("1.10.0", "1.10"),
        ("==1.2.0", "1.2"),
    ],
)
def test_the_highest_that_was_not_yanked(wanted: str | None, version: str) -> None:
    found = resolve(INDEX, "games", wanted)
    assert (found.name, found.release.version, found.warning) == ("games", version, "")


@pytest.mark.parametrize("version", ["1.9.1", "2.0"])
def test_what_was_yanked_is_there_for_who_names_exactly_it(version: str) -> None:
    asked = [(version, None), (f"=={version}", None), (None, digest(version))]
    asked.append((f"<={version}", digest(version)))
    for wanted, exact in asked:
        found = resolve(INDEX, "games", wanted, digest=exact)
        assert found.release.version == version
        assert found.warning.startswith(f"games {version} was yanked at {AT} as ")
        assert found.warning.endswith(": a reason")


@pytest.mark.parametrize("wanted", [("2.1", None), (None, digest("2.1"))])
def test_what_is_unsafe_needs_to_be_allowed(wanted: tuple[str | None, str | None]) -> None:
    with pytest.raises(
        SnapshotError, match=r"2.1 was yanked .* as unsafe: a reason. It is not load"
    ):
        resolve(INDEX, "games", wanted[0], digest=wanted[1])
    found = resolve(INDEX, "games", wanted[0], digest=wanted[1], allow_yanked=True)
    assert (found.release.version, "unsafe" in found.warning) == ("2.1", True)


def test_allowing_yanked_releases_does_not_put_them_into_ranges() -> None:
    assert resolve(INDEX, "games", allow_yanked=True).release.version == "1.10"
    with pytest.raises(SnapshotError, match="every release of games that is >=2,<3 was yanked"):
        resolve(INDEX, "games", ">=2,<3", allow_yanked=True)


def test_when_all_were_yanked_the_message_says_how_to_have_one() -> None:
    for wanted in (">=2,<3", "==2.*"):
        with pytest.raises(SnapshotError, match=r"was yanked: 2.0, 2.1.* version 2.1 or sha256:"):
            resolve(INDEX, "games", wanted)


@pytest.mark.parametrize("wanted", ["3.0", ">=3"])
def test_a_release_for_a_newer_reader_says_so(wanted: str) -> None:
    with pytest.raises(SnapshotError, match=r"newer synthgym|install a newer synthgym"):
        resolve(INDEX, "games", wanted)


@pytest.mark.parametrize(
    ("wanted", "exact", "message"),
    [
        ("4", None, "no release of games is 4; there is 1.2, 1.9.1, 1.10, 2.0, 2.1, 3.0"),
        ("<1", None, "no release of games is <1; there is"),
        (None, digest("other"), "no release of games is sha256:"),
        ("1.2", digest("1.10"), "no release of games is 1.2 and sha256:"),
    ],
)
def test_what_is_not_there_is_an_error_that_lists_what_is(
    wanted: str | None, exact: str | None, message: str
) -> None:
    with pytest.raises(SnapshotError, match=message):
        resolve(INDEX, "games", wanted, digest=exact)


def test_a_long_list_is_cut() -> None:
    many = index_of(*(release(str(number)) for number in range(30)))
    with pytest.raises(SnapshotError, match=r"there is 20, .*, 29 and 20 older ones$"):
        resolve(many, "games", "99")


def test_an_unknown_name_has_a_suggestion() -> None:
    with pytest.raises(SnapshotError, match="no snapshot 'gamse'; did you mean 'games'"):
        resolve(INDEX, "gamse")
    with pytest.raises(SnapshotError, match=r"knows no snapshot 'x'$"):
        resolve(INDEX, "x")


@pytest.mark.parametrize("wanted", ["newest", "=1", ">=x", "1.2.x", "1,2", "\u0661"])
def test_what_is_no_range_is_a_wrong_setting(wanted: str) -> None:
    with pytest.raises(ConfigError, match=r"expected a version such as 1.2.0 or a range"):
        resolve(INDEX, "games", wanted)


def test_what_is_no_digest_is_a_wrong_setting() -> None:
    with pytest.raises(ConfigError, match="expected a digest sha256"):
        resolve(INDEX, "games", digest="abc")


@given(wanted=st.text(alphabet="0123456789.<>=!~,* v", max_size=12), exact=st.none() | st.text())
def test_any_question_has_an_answer_or_an_error_of_ours(wanted: str, exact: str | None) -> None:
    try:
        found = resolve(INDEX, "games", wanted, digest=exact)
    except (SnapshotError, ConfigError):
        return
    assert found.release in INDEX.names["games"]
    assert bool(found.warning) == (found.release.yanked is not None)
