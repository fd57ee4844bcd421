from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthgym.errors import SnapshotError
from synthgym.publishing.index import (
    FORMAT,
    MAX_INDEX_BYTES,
    MAX_NAMES,
    Index,
    Release,
    Yank,
    check_time,
    with_expiry,
    with_release,
    with_yank,
    without_yank,
)
from synthgym.spec import canonical_json, sha256_digest

YANK = Yank(at="2026-05-31T12:00:00Z", reason="a hint names the answer", severity="broken")


def digest(text: str) -> str:
    return sha256_digest(text.encode())


def release(version: str, **changes: Any) -> Release:
    fields: dict[str, Any] = {
        "version": version,
        "digest": digest(version),
        "manifest_sha256": digest("manifest " + version),
        "size": 1000,
        "env_count": 3,
        "min_reader": 1,
        "license": "Apache-2.0",
        "published": "2026-01-31T12:00:00Z",
    }
    return Release(**fields | changes)


@pytest.fixture
def index() -> Index:
    made = with_release(Index(), "games", release("1.10.0"))
    made = with_release(made, "games", release("1.9"))
    return with_release(made, "tools", release("0.1"))


# --- changes ---


def test_releases_go_by_version_and_names_by_name(index: Index) -> None:
    assert [one.version for one in index.names["games"]] == ["1.9", "1.10.0"]
    assert list(json.loads(index.to_bytes())["names"]) == ["games", "tools"]


def test_every_change_is_one_step_that_names_the_step_before() -> None:
    first = with_release(Index(), "games", release("1"))
    assert (first.serial, first.previous) == (1, "")
    for change in (
        lambda one: with_release(one, "games", release("2")),
        lambda one: with_yank(one, "games", "1", YANK),
        lambda one: with_expiry(one, "2027-01-01T00:00:00Z"),
    ):
        second = change(first)
        assert (second.serial, second.previous) == (2, sha256_digest(first.to_bytes()))
        assert Index.from_bytes(second.to_bytes()) == second


def test_an_index_is_not_changed_in_place(index: Index) -> None:
    before = index.to_bytes()
    with_release(index, "games", release("2"))
    with_yank(index, "games", "1.9", YANK)
    names = dict(index.names)
    copy = Index(serial=1, names=names)
    names.clear()
    assert copy.names
    assert index.to_bytes() == before


def test_a_version_stands_for_one_digest_for_ever(index: Index) -> None:
    assert with_release(index, "games", release("1.9")) is index
    again = release("1.9", manifest_sha256=digest("packed by another library"))
    assert with_release(index, "games", again) is index
    with pytest.raises(
        SnapshotError, match=r"games 1.9 cannot be published: 1.9 stands for sha256"
    ):
        with_release(index, "games", release("1.9", digest=digest("other")))
    yanked = with_yank(index, "games", "1.9", YANK)
    assert with_release(yanked, "games", release("1.9")) is yanked
    with pytest.raises(SnapshotError, match="Give it the next version"):
        with_release(yanked, "games", release("1.9", digest=digest("other")))


@pytest.mark.parametrize("version", ["1.9.0", "1.10"])
def test_another_spelling_of_a_version_is_that_version(version: str, index: Index) -> None:
    with pytest.raises(SnapshotError, match=r"stands for sha256:.* for ever"):
        with_release(index, "games", release(version))


def test_names_differ_in_more_than_case(index: Index) -> None:
    with pytest.raises(SnapshotError, match="differs from another name in case only"):
        with_release(index, "Games", release("1"))


def test_a_yank_comes_and_goes(index: Index) -> None:
    yanked = with_yank(index, "games", "1.9", YANK)
    assert [one.yanked for one in yanked.names["games"]] == [YANK, None]
    assert with_yank(yanked, "games", "1.9", YANK) is yanked
    worse = with_yank(yanked, "games", "1.9", replace(YANK, severity="unsafe"))
    assert worse.serial == yanked.serial + 1
    back = without_yank(worse, "games", "1.9")
    assert back.names == index.names
    assert without_yank(back, "games", "1.9") is back


@pytest.mark.parametrize(
    ("name", "version", "there"),
    [("games", "2", "1.9, 1.10.0"), ("game", "1.9", "no release at all")],
)
def test_only_a_release_that_is_there_is_yanked(
    name: str, version: str, there: str, index: Index
) -> None:
    with pytest.raises(SnapshotError, match=rf"no release {version} of {name}; there is {there}"):
        with_yank(index, name, version, YANK)
    with pytest.raises(SnapshotError, match="there is no release"):
        without_yank(index, name, version)


def test_an_index_expires_at_its_time() -> None:
    at = datetime(2026, 5, 31, 12, tzinfo=UTC)
    assert not Index().is_expired(at)
    assert not with_expiry(Index(), "2026-05-31T12:00:00Z").is_expired(at)
    assert with_expiry(Index(), "2026-05-31T13:59:59+02:00").is_expired(at)


# --- the file ---

TEXT = st.text(max_size=30).filter(str.isprintable)
TIMES = st.datetimes(timezones=st.just(UTC)).map(
    lambda time: time.isoformat().replace("+00:00", "Z")
)
YANKS = st.builds(
    Yank,
    at=TIMES,
    reason=TEXT.filter(bool),
    severity=st.sampled_from(["broken", "license", "unsafe"]),
)
NUMBERS = st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20))


@st.composite
def indexes(draw: st.DrawFn) -> Index:
    made = Index()
    for name in draw(st.lists(st.sampled_from(["games", "tools", "a", "B.c_d-9"]), min_size=1)):
        version = ".".join(map(str, draw(NUMBERS)))
        new = release(
            version,
            size=draw(st.integers(0, 2**53 - 1)),
            license=draw(TEXT),
            published=draw(TIMES),
            yanked=draw(st.none() | YANKS),
        )
        made = with_release(made, name, new)
    return with_expiry(made, draw(TIMES)) if draw(st.booleans()) else made


@given(indexes())
def test_an_index_survives_its_file(index: Index) -> None:
    data = index.to_bytes()
    again = Index.from_bytes(data)
    assert again == index
    assert again.to_bytes() == data
    assert index.digest == sha256_digest(data)


@given(st.binary())
def test_arbitrary_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(SnapshotError):
        Index.from_bytes(data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
PLACES = [
    *((key,) for key in ("format", "min_reader", "serial", "previous", "expires", "names", "more")),
    ("names", "games"),
    ("names", "games", 0),
    *(
        ("names", "games", 0, key)
        for key in ("version", "digest", "manifest_sha256", "size", "more")
    ),
    *(("names", "games", 0, key) for key in ("env_count", "min_reader", "license", "published")),
    ("names", "games", 0, "yanked"),
    *(("names", "games", 0, "yanked", key) for key in ("at", "reason", "severity", "more")),
]


@given(place=st.sampled_from(PLACES), value=JSON)
def test_any_other_value_anywhere_is_refused_or_read_as_it_stands(
    place: tuple[str | int, ...], value: object
) -> None:
    made = with_release(Index(), "games", release("1", yanked=YANK))
    raw: Any = json.loads(made.to_bytes())
    target = raw
    for step in place[:-1]:
        target = target[step]
    target[place[-1]] = value
    data = json.dumps(raw, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    encoded = data.encode("utf-8", "surrogatepass")
    try:
        read = Index.from_bytes(encoded)
    except SnapshotError:
        return
    assert read.to_bytes() == encoded


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'"serial":3', b'"serial": 3', "not canonical"),
        (b'"serial":3', b'"serial":3,"serial":3', "duplicate key 'serial'"),
        (b'"serial":3', b'"serial":3.0', "serial is 3.0, not a count"),
        (b'"serial":3', b'"serial":true', "serial is True, not a count"),
        (b'"serial":3', b'"serial":9007199254740992', "not a count"),
        (b'"serial":3', b'"serial":1', "the first one has no previous and serial 1"),
        (b'"serial":3', b'"serial":0', "the first one has no previous and serial 1"),
        (b'"serial":3', b'"serial":3,"x":1', "unknown keys .'x'."),
        (b'"size":1000', b'"size":-1', "size is -1, not a count"),
        (b'"size":1000', b'"size":null', "size is None, not a count"),
        (FORMAT.encode(), b"synthgym.index/2", "expected an index of format synthgym.index/1, got"),
        (b'"min_reader":1,"names"', b'"min_reader":2,"names"', "install a newer synthgym"),
        (b'"min_reader":1,"names"', b'"min_reader":"1","names"', "install a newer synthgym"),
        (b'"expires":null', b'"expires":"tomorrow"', "expires must be a time as in 2026"),
        (b'"version":"1.9"', b'"version":"1.10"', "must go by version, each once"),
        (b'"version":"1.9"', b'"version":"2"', "must go by version, each once"),
        (b'"version":"1.9"', b'"version":"01.9"', "version must be for example 1.2.0"),
        (b'"version":"1.9"', b'"version":"1.9a1"', "version must be for example 1.2.0"),
        (b'"tools":[{', b'"tools":[],"uools":[{', "tools has no release"),
        (b'"tools":', b'"../tools":', "a snapshot's name must be letters"),
        (b'"Apache-2.0"', b'"A\\u001b[2J"', "one line of printable text"),
        (b'"Apache-2.0"', '"\u202e0.2-ehcapA"'.encode(), "one line of printable text"),
        (b"2026-01-31T", b"2026-02-31T", "published must be a time as in"),
        (b"2026-01-31T", b"2026-01-31 ", "published must be a time as in"),
    ],
)
def test_a_changed_file_says_what_is_wrong(
    old: bytes, new: bytes, message: str, index: Index
) -> None:
    data = index.to_bytes()
    assert old in data
    with pytest.raises(SnapshotError, match=message):
        Index.from_bytes(data.replace(old, new, 1))


def test_an_index_that_was_never_published_is_no_file() -> None:
    with pytest.raises(SnapshotError, match="not canonical"):
        Index.from_bytes(Index().to_bytes())


def test_one_digest_is_one_release(index: Index) -> None:
    doubled = (release("1"), release("2", digest=digest("1")))
    with pytest.raises(SnapshotError, match="two releases of games have one digest"):
        Index(serial=1, names={"games": doubled})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"severity": "bad"}, "must be one of broken, license, unsafe, got 'bad'"),
        ({"reason": ""}, "yanked for a reason"),
        ({"reason": "a\nb"}, "one line of printable text"),
        ({"reason": "x" * 5000}, "at most 4096 characters"),
        ({"at": "yesterday"}, "yanked.at must be a time"),
    ],
)
def test_a_yank_has_a_reason_and_a_time(changes: dict[str, str], message: str) -> None:
    with pytest.raises(SnapshotError, match=message):
        replace(YANK, **changes)


def test_an_index_has_its_limits() -> None:
    with pytest.raises(SnapshotError, match=f"an index of {MAX_INDEX_BYTES + 1} bytes; at most"):
        Index.from_bytes(b" " * (MAX_INDEX_BYTES + 1))
    many = {f"n{number}": (release("1"),) for number in range(MAX_NAMES + 1)}
    with pytest.raises(SnapshotError, match="at most 10000 names"):
        Index(serial=1, names=many)
    wordy = release("1", license="x" * 4096)
    large = {f"n{number}": (wordy,) for number in range(4000)}
    with pytest.raises(SnapshotError, match="bytes; at most 16777216"):
        Index(serial=1, names=large).to_bytes()


@pytest.mark.parametrize(
    "text",
    [
        *("2026-05-31", "2026-05-31T12:00Z", "2026-05-31T12:00:00", "2026-05-31t12:00:00z"),
        *("2026-05-31T12:00:60Z", "2026-05-31T12:00:00+99:00", "\u0662026-05-31T12:00:00Z"),
        *(None, 3),
    ],
)
def test_a_time_is_one_of_rfc_3339(text: object) -> None:
    with pytest.raises(SnapshotError, match="it must be a time as in 2026-05-31T12:00:00Z"):
        check_time(text, "it")
    assert check_time("2026-05-31T14:00:00.5+02:00", "it") == datetime(
        2026, 5, 31, 12, 0, 0, 500_000, tzinfo=UTC
    )


def test_the_file_is_canonical_json(index: Index) -> None:
    assert index.to_bytes() == canonical_json(json.loads(index.to_bytes()))
