from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from synthgym.errors import IntegrityError, InvalidIdError, SnapshotError
from synthgym.publishing.cache import Cache, cache_root

OTHER = "sha256:" + "00" * 32


def digest_of(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def install(cache: Cache, data: bytes) -> Path:
    return cache.install(digest_of(data), len(data), (data,), "somewhere")


def files(cache: Cache) -> list[str]:
    return sorted(p.relative_to(cache.root).parts[0] for p in cache.root.rglob("*") if p.is_file())


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"SYNTHGYM_CACHE": "/a/b", "XDG_CACHE_HOME": "/c"}, "/a/b"),
        ({"XDG_CACHE_HOME": "/c"}, "/c/synthgym"),
        ({"SYNTHGYM_CACHE": "", "XDG_CACHE_HOME": ""}, str(Path.home() / ".cache/synthgym")),
        ({}, str(Path.home() / ".cache/synthgym")),
    ],
)
def test_the_root_is_where_the_environment_says(
    environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert str(cache_root(environment)) in (expected, expected.replace("/root", os.environ["HOME"]))


def test_a_file_is_installed_by_content_and_cannot_be_written(cache: Cache) -> None:
    path = install(cache, b"abc")
    assert path == cache.object_path(digest_of(b"abc"))
    assert path.read_bytes() == b"abc"
    assert path.stat().st_mode & 0o777 == 0o444
    assert install(cache, b"abc") == path
    assert files(cache) == ["objects"]


@pytest.mark.parametrize(
    ("chunks", "what"),
    [([b"ab"], "2 came"), ([b"abc", b"d"], "more came"), ([b"abd"], "got sha256:"), ([], "0 came")],
)
def test_a_wrong_file_is_never_installed(cache: Cache, chunks: list[bytes], what: str) -> None:
    with pytest.raises(IntegrityError, match=f"somewhere: promised.*{what}"):
        cache.install(digest_of(b"abc"), 3, chunks, "somewhere")
    assert files(cache) == []


def test_no_more_is_taken_than_was_promised(cache: Cache) -> None:
    def endless() -> Iterator[bytes]:
        for taken in range(1000):
            assert taken < 4
            yield b"x"

    with pytest.raises(IntegrityError, match="more came"):
        cache.install(OTHER, 3, endless(), "somewhere")


def test_a_source_that_fails_leaves_nothing(cache: Cache) -> None:
    def broken() -> Iterator[bytes]:
        yield b"a"
        raise SnapshotError("the line went dead")

    with pytest.raises(SnapshotError, match="went dead"):
        cache.install(digest_of(b"abc"), 3, broken(), "somewhere")
    assert files(cache) == []


def test_damage_shows_when_it_is_looked_for(cache: Cache) -> None:
    path = install(cache, b"abc")
    assert cache.holds(digest_of(b"abc"), 3, recheck=True)
    assert cache.read(digest_of(b"abc"), 10) == b"abc"
    path.chmod(0o644)
    path.write_bytes(b"abx")
    assert cache.holds(digest_of(b"abc"), 3)
    assert not cache.holds(digest_of(b"abc"), 3, recheck=True)
    assert cache.read(digest_of(b"abc"), 10) is None
    path.write_bytes(b"ab")
    assert not cache.holds(digest_of(b"abc"), 3)
    assert cache.read(OTHER, 10) is None


@pytest.mark.parametrize("digest", ["../../etc/passwd", "sha256:../x", "", "sha256:" + "A" * 64])
def test_nothing_but_a_digest_becomes_a_path(cache: Cache, digest: str) -> None:
    with pytest.raises(InvalidIdError):
        cache.object_path(digest)
    with pytest.raises(InvalidIdError):
        cache.view(OTHER, digest)


def make_view(cache: Cache, manifest: bytes = b"{}", content: bytes = b"abc") -> Path:
    install(cache, manifest)
    install(cache, content)
    view = cache.view(OTHER, digest_of(manifest))
    cache.link_file(view, "envs/a.txt", digest_of(content))
    assert view not in cache.views(OTHER)
    cache.finish_view(view, digest_of(manifest), b"signed")
    return view


def test_a_view_exists_once_its_manifest_does(cache: Cache) -> None:
    view = make_view(cache)
    assert cache.views(OTHER) == [view]
    assert (view / "envs/a.txt").samefile(cache.object_path(digest_of(b"abc")))
    assert (view / "manifest.json").read_bytes() == b"{}"
    assert (view / "manifest.json.sig").read_bytes() == b"signed"
    cache.link_file(view, "envs/a.txt", digest_of(b"abc"))
    cache.finish_view(view, digest_of(b"{}"), b"")
    assert sorted(p.name for p in view.rglob("*")) == [
        "a.txt",
        "envs",
        "manifest.json",
        "manifest.json.sig",
    ]
    assert not list((cache.root / "tmp").iterdir())


def test_equal_content_in_other_files_has_a_view_of_its_own(cache: Cache) -> None:
    first, second = make_view(cache, b"{}"), make_view(cache, b"{ }")
    assert first != second
    assert set(cache.views(OTHER)) == {first, second}


def test_a_file_system_without_links_gets_copies(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    view = make_view(cache)
    copy = view / "envs/a.txt"
    assert copy.read_bytes() == b"abc"
    assert copy.stat().st_nlink == 1
    assert copy.stat().st_mode & 0o777 == 0o444
    before = copy.stat().st_ino
    cache.link_file(view, "envs/a.txt", digest_of(b"abc"))
    assert copy.stat().st_ino == before, "an equal copy stays"


def test_a_replaced_object_replaces_the_name_in_the_view(cache: Cache) -> None:
    view = make_view(cache)
    damaged = cache.object_path(digest_of(b"abc"))
    damaged.chmod(0o644)
    damaged.write_bytes(b"abx")
    install(cache, b"abc")
    assert (view / "envs/a.txt").read_bytes() == b"abx"
    cache.link_file(view, "envs/a.txt", digest_of(b"abc"))
    assert (view / "envs/a.txt").read_bytes() == b"abc"


def test_what_was_verified_is_remembered(cache: Cache) -> None:
    assert not cache.is_verified(OTHER)
    cache.mark_verified(OTHER)
    assert cache.is_verified(OTHER)


def test_garbage_is_what_is_old_and_under_way(cache: Cache) -> None:
    install(cache, b"abc")
    folder = cache.root / "tmp"
    for name in ("old", "new"):
        (folder / name).touch()
    for name in ("packed-old", "packed-live"):  # a download of hours changes the file in it alone
        (folder / name).mkdir()
        (folder / name / "x").touch()
    ago = time.time() - 4000
    for name in ("old", "packed-old/x", "packed-old", "packed-live"):
        os.utime(folder / name, (ago, ago))
    assert cache.collect_garbage() == 2
    assert {path.name for path in folder.iterdir()} == {"new", "packed-live"}
    assert cache.holds(digest_of(b"abc"), 3)
    assert Cache(cache.root / "nowhere").collect_garbage() == 0


def test_a_cache_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SnapshotError, match="cannot write to"):
        install(Cache(tmp_path / "file"), b"abc")


RACE = """
import sys
from synthgym.publishing.cache import Cache
cache = Cache(sys.argv[1])
import hashlib
for number in range(20):
    data = b"x" * 5000 + b"%d" % number
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    cache.install(digest, len(data), (data[:100], data[100:]), "here")
    view = cache.view(digest, digest)
    cache.link_file(view, "a/b", digest)
    cache.finish_view(view, digest, b"")
    assert (view / "a/b").read_bytes() == (view / "manifest.json").read_bytes() == data
"""


def test_processes_share_a_cache_without_a_lock(cache: Cache) -> None:
    command = [sys.executable, "-c", RACE, str(cache.root)]
    racers = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(3)]
    for racer in racers:
        _, errors = racer.communicate(timeout=60)
        assert racer.returncode == 0, errors.decode()
    assert len(list((cache.root / "objects").glob("*/*"))) == 20
    assert not list((cache.root / "tmp").iterdir())
