from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from games import http_server

from synthgym.errors import IntegrityError, MissingExtraError, SnapshotError
from synthgym.publishing import remotes
from synthgym.publishing.remotes import (
    FsspecRemote,
    LocalRemote,
    Remote,
    open_remote,
    remote_url,
    retrying,
)

DATA = b"0123456789"
DIGEST = "sha256:" + hashlib.sha256(DATA).hexdigest()


@pytest.fixture(params=["folder", "file", "memory", "backend"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Remote:
    """A remote that can be written, by each of our ways to one."""
    match request.param:
        case "folder":
            return open_remote(tmp_path / "remote")
        case "file":
            return open_remote(f"file://{tmp_path}/remote")
        case "memory":
            return open_remote("memory://remote")
        case _:
            return FsspecRemote(f"file://{tmp_path}/remote", {"auto_mkdir": True})


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remotes.retrying, "__defaults__", (0.001,))


def test_what_is_put_is_read(place: Remote) -> None:
    assert place.size("a/b.json") is None
    place.put("a/b.json", DATA)
    assert place.size("a/b.json") == 10
    assert place.size("a") is None or isinstance(place, LocalRemote)
    assert place.read("a/b.json", 10) == DATA
    assert b"".join(place.stream("a/b.json", 10)) == DATA
    place.put("a/b.json", b"new")
    assert place.read("a/b.json", 10) == b"new"


def test_one_is_the_first(place: Remote) -> None:
    assert place.put_if_absent("index/1.json", b"one")
    assert not place.put_if_absent("index/1.json", b"two")
    assert place.read("index/1.json", 10) == b"one"


def test_what_is_not_there_and_what_is_too_large(place: Remote) -> None:
    with pytest.raises(FileNotFoundError):
        place.read("a/b", 10)
    with pytest.raises(FileNotFoundError):
        list(place.stream("a/b", 10))
    place.put("a/b", DATA)
    with pytest.raises(IntegrityError, match="larger than the 9 bytes"):
        place.read("a/b", 9)


def test_an_object_is_put_when_its_bytes_are_right(
    place: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    for most in (1000, 4):  # in memory, and over the disk
        monkeypatch.setattr(remotes, "_MAX_IN_MEMORY", most)
        place.put_object(f"o/{most}", 10, DIGEST, (DATA[:5], DATA[5:]))
        assert place.read(f"o/{most}", 10) == DATA
        with pytest.raises(IntegrityError, match="promised"):
            place.put_object(f"o/x{most}", 10, DIGEST, (b"x" * 10,))
        assert place.size(f"o/x{most}") is None
    place.put("o/half", DATA[:5])
    place.put_object("o/half", 10, DIGEST, (DATA,))
    assert place.read("o/half", 10) == DATA


def test_a_folder_holds_nothing_but_what_was_put(tmp_path: Path) -> None:
    place = LocalRemote(tmp_path / "remote")
    place.put("a/b", DATA)
    place.put_if_absent("a/b", DATA)
    place.put_if_absent("a/c", DATA)
    found = sorted(path.name for path in (tmp_path / "remote").rglob("*"))
    assert found == ["a", "b", "c", "tmp"]
    assert place.collect_garbage() == 0


def test_a_file_system_without_links_is_not_published_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(SnapshotError, match="file system with hard links"):
        LocalRemote(tmp_path).put_if_absent("a", DATA)


def test_a_remote_has_one_url_however_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for location in ("remote", Path("remote"), f"file://{tmp_path}/remote", tmp_path / "remote"):
        assert remote_url(location) == open_remote(location).url == f"file://{tmp_path}/remote"
    assert remote_url("memory://a/b/") == open_remote("memory://a/b/").url == "memory://a/b"


def test_a_backend_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("s3fs", "gcsfs", "aiohttp"):
        monkeypatch.setitem(sys.modules, module, None)
    for url, package in (("s3://b/x", "s3fs"), ("gs://b/x", "gcsfs"), ("https://h/x", "aiohttp")):
        with pytest.raises(MissingExtraError, match=package):
            open_remote(url)


def test_http_is_read_without_listings_or_ranges_and_never_written(tmp_path: Path) -> None:
    LocalRemote(tmp_path).put("a/b.json", DATA * 1000)
    with http_server(tmp_path) as url:
        place = open_remote(url)
        assert place.size("a/b.json") == 10_000
        assert place.size("a/c.json") is None
        assert place.read("a/b.json", 10_000) == DATA * 1000
        with pytest.raises(FileNotFoundError):
            place.read("a/c.json", 10)
        with pytest.raises(IntegrityError, match="larger"):
            place.read("a/b.json", 9_999)
        for act in (place.put, place.put_if_absent):
            with pytest.raises(SnapshotError, match="read-only"):
                act("a/d", b"")


class _Moody(BaseHTTPRequestHandler):
    answers: list[int]

    def log_message(self, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        status = self.answers.pop(0)
        self.send_response(status)
        self.send_header("Content-Length", str(len(DATA)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(DATA)


@pytest.fixture
def moody() -> Iterator[tuple[Remote, list[int]]]:
    """A server that answers with the statuses in a list, and a remote there."""
    handler = type("Handler", (_Moody,), {"answers": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield open_remote(f"http://127.0.0.1:{server.server_address[1]}"), handler.answers
        server.shutdown()


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("trouble", [[503], [500, 429, 502]])
def test_trouble_that_passes_is_waited_for(
    moody: tuple[Remote, list[int]], trouble: list[int]
) -> None:
    place, answers = moody
    answers += [*trouble, 200]
    assert place.read("a", 10) == DATA
    assert answers == []


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("status", "requests"), [(503, 4), (401, 1)])
def test_trouble_that_stays_is_told(
    moody: tuple[Remote, list[int]], status: int, requests: int
) -> None:
    place, answers = moody
    answers += [status] * 10
    with pytest.raises(SnapshotError, match=str(status)):
        place.read("a", 10)
    assert len(answers) == 10 - requests


@pytest.mark.usefixtures("quick")
def test_a_store_that_hides_what_is_absent_is_understood(moody: tuple[Remote, list[int]]) -> None:
    place, answers = moody
    answers += [403] * 10
    assert place.size("index/00000002.json") is None
    with pytest.raises(FileNotFoundError):
        place.read("a.sig", 10)


@pytest.mark.usefixtures("quick")
def test_nobody_listens() -> None:
    with pytest.raises(SnapshotError, match=r"127\.0\.0\.1:9"):
        open_remote("http://127.0.0.1:9").read("a", 10)


def test_what_cannot_change_is_not_tried_again() -> None:
    calls = []

    def absent() -> None:
        calls.append(1)
        raise FileNotFoundError("a")

    with pytest.raises(FileNotFoundError):
        retrying(absent)
    assert len(calls) == 1
