from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from synthgym.errors import IntegrityError, SnapshotError
from synthgym.publishing import chain
from synthgym.publishing.chain import (
    LATEST,
    Link,
    append,
    index_path,
    newest,
    read_link,
    signature_path,
)
from synthgym.publishing.index import Index, Release, with_release
from synthgym.publishing.remotes import LocalRemote, open_remote
from synthgym.spec import sha256_digest


def release(version: str) -> Release:
    return Release(
        version=version,
        digest=sha256_digest(version.encode()),
        manifest_sha256=sha256_digest(b"m" + version.encode()),
        size=1,
        env_count=1,
        min_reader=1,
        license="MIT",
        published="2026-01-01T00:00:00Z",
    )


def adding(version: str, name: str = "games") -> Callable[[Index], Index]:
    return lambda index: with_release(index, name, release(version))


def versions(link: Link | None, name: str = "games") -> list[str]:
    return [] if link is None else [each.version for each in link.index.names.get(name, ())]


def test_each_index_names_the_one_before(remote: Path) -> None:
    place = open_remote(remote)
    assert newest(place) is None
    first = append(place, adding("1.0"))
    second = append(place, adding("1.1"))
    assert (first.index.serial, second.index.serial) == (1, 2)
    assert second.index.previous == sha256_digest(first.data)
    assert newest(place) == read_link(place, 2) == second
    assert versions(newest(place)) == ["1.0", "1.1"]
    assert json.loads((remote / LATEST).read_bytes()) == {"serial": 2}


def test_what_changes_nothing_writes_nothing(remote: Path) -> None:
    place = open_remote(remote)
    link = append(place, adding("1.0"))
    before = sorted(remote.rglob("*"))
    assert append(place, adding("1.0")) == link
    assert sorted(remote.rglob("*")) == before


def test_who_comes_second_builds_on_the_first(remote: Path) -> None:
    place = open_remote(remote)
    append(place, adding("1.0"))
    raced = []

    def change(index: Index) -> Index:
        if not raced:
            raced.append(append(place, adding("1.1")))
        return with_release(index, "games", release("1.2"))

    link = append(place, change)
    assert link.index.serial == 3
    assert versions(link) == ["1.0", "1.1", "1.2"]


def test_the_same_index_of_two_is_one(remote: Path) -> None:
    place = open_remote(remote)

    def change(index: Index) -> Index:
        new = with_release(index, "games", release("1.0"))
        if index.serial == 0:
            place.put_if_absent(index_path(1), new.to_bytes())
        return new

    assert append(place, change).index.serial == 1
    assert newest(place, 0) is not None


def test_many_threads_lose_nothing(remote: Path) -> None:
    def publish(number: int) -> None:
        append(open_remote(remote), adding(f"{number}.0"))

    threads = [threading.Thread(target=publish, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    link = newest(open_remote(remote))
    assert versions(link) == [f"{number}.0" for number in range(8)]
    assert link is not None
    assert link.index.serial == 8


def test_an_endless_race_ends(remote: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "_MAX_RACES", 3)
    place = open_remote(remote)
    count = iter(range(100))

    def once(index: Index) -> Index:
        monkeypatch.setattr(chain, "_MAX_RACES", 1000)
        other = append(place, adding(f"{next(count)}.0", "others"))
        monkeypatch.setattr(chain, "_MAX_RACES", 3)
        assert other.index.serial > index.serial
        return with_release(index, "games", release("100.0"))

    with pytest.raises(SnapshotError, match="try again later"):
        append(place, once)
    assert versions(newest(place)) == []


@pytest.mark.parametrize("last", range(0, 40, 3))
def test_the_last_serial_is_found_from_any_before_it(last: int) -> None:
    for start in range(last + 1):
        place = _Numbered(last)
        assert chain._last(place, start) == last
        assert place.asked <= 2 * (last - start + 2).bit_length() + 1, "not one after the other"


class _Numbered(LocalRemote):
    """Has indexes up to a number."""

    def __init__(self, last: int) -> None:
        super().__init__(Path("/nowhere"))
        self.last = last
        self.asked = 0

    def size(self, path: str) -> int | None:
        self.asked += 1
        return 1 if 1 <= int(path[6:14]) <= self.last else None


@pytest.mark.parametrize(
    "hint",
    [b"", b"[]", b'{"serial": "2"}', b'{"serial": true}', b'{"serial": 99}', b"x" * 2000, None],
)
def test_the_hint_is_not_relied_on(remote: Path, hint: bytes | None) -> None:
    place = open_remote(remote)
    for version in ("1.0", "1.1", "1.2"):
        append(place, adding(version))
    if hint is None:
        (remote / LATEST).unlink()
    else:
        place.put(LATEST, hint)
    for seen in (0, 2, 3, 50):
        assert versions(newest(place, seen)) == ["1.0", "1.1", "1.2"]


def test_an_index_under_another_serial_is_refused(remote: Path) -> None:
    place = open_remote(remote)
    append(place, adding("1.0"))
    (remote / index_path(2)).write_bytes((remote / index_path(1)).read_bytes())
    with pytest.raises(IntegrityError, match="serial 1"):
        newest(place)


def test_signatures_are_there_before_the_index_and_belong_to_its_bytes(remote: Path) -> None:
    place = open_remote(remote)
    seen: list[bool] = []

    def sign(data: bytes) -> str:
        seen.append((remote / index_path(1)).exists())
        return f"signed {len(data)}"

    link = append(place, adding("1.0"), sign=sign)
    assert seen == [False]
    assert link.signatures == f"signed {len(link.data)}"
    assert newest(place) == link
    path = remote / signature_path(1, link.data)
    assert path.read_text() == link.signatures
    path.unlink()
    assert read_link(place, 1).signatures == ""


def test_what_is_built_upon_is_shown_first(remote: Path) -> None:
    place = open_remote(remote)
    append(place, adding("1.0"))

    def refuse(link: Link) -> None:
        raise SnapshotError(f"not upon {link.index.serial}")

    with pytest.raises(SnapshotError, match="not upon 1"):
        append(place, adding("1.1"), check=refuse)
    assert versions(newest(place)) == ["1.0"]
