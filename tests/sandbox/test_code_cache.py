"""Checked code that is kept: a source is compiled once, and never from what others may have written."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pool_sources import LIMITS, WALK, game, kinds, observe, plain, text, walk

from synthgym.errors import ConfigError
from synthgym.sandbox import EnvFault, FaultKind, Loaded, Pool, code_cache
from synthgym.sandbox.code_cache import CheckedCode, CodeCache, cache_key, default_folder
from synthgym.sandbox.protocol import MAX_CODE
from synthgym.spec import EnvRecord

pytestmark = pytest.mark.timeout(60)
CHECKED = CheckedCode(code=b"code", requires=("random",), docstring="Walks.")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "code"


@pytest.fixture
def puts(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each source that was compiled may be kept on disk."""
    seen: list[bool] = []
    put = CodeCache.put

    def spy(cache: CodeCache, *given: object, lasting: bool, **more: object) -> None:
        seen.append(lasting)
        put(cache, *given, lasting=lasting, **more)

    monkeypatch.setattr(CodeCache, "put", spy)
    return seen


def played(folder: Path | None, record: EnvRecord) -> list[str]:
    """The observations of an episode in a pool of its own."""
    with Pool(code_cache=folder) as pool, pool.open(record, LIMITS) as session:
        return observe(session, 1, ["a", "b"])


# --- the cache alone ---


def test_an_entry_is_read_by_another_cache_with_the_same_folder(folder: Path) -> None:
    CodeCache(folder).put("source", CHECKED, lasting=True)
    assert CodeCache(folder).get("source") == CHECKED
    assert CodeCache(folder).get("source ") is None
    assert CodeCache().get("source") is None


def test_an_entry_that_is_not_to_last_stays_in_memory(folder: Path) -> None:
    cache = CodeCache(folder)
    cache.put("source", CHECKED, lasting=False)
    assert cache.get("source") == CHECKED
    assert list(folder.iterdir()) == []
    assert CodeCache(folder).get("source") is None


def test_what_has_no_code_stays_in_memory(folder: Path) -> None:
    refused = CheckedCode(b"", (), "", ((1, "no"),))
    cache = CodeCache(folder)
    cache.put("source", refused, lasting=True)
    assert cache.get("source") == refused
    assert list(folder.iterdir()) == []


def test_memory_holds_a_bounded_number_of_entries_and_keeps_what_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(code_cache, "_MAX_HELD", 3)
    cache = CodeCache()
    for number in range(3):
        cache.put(str(number), CHECKED, lasting=True)
    assert cache.get("0") is not None
    cache.put("3", CHECKED, lasting=True)
    assert [cache.get(str(number)) is not None for number in range(4)] == [True, False, True, True]


def damages() -> dict[str, Callable[[bytes], bytes]]:
    return {
        "empty": lambda data: b"",
        "cut": lambda data: data[:-1],
        "half": lambda data: data[: len(data) // 2],
        "longer": lambda data: data + b"\0",
        "one bit": lambda data: data[:-3] + bytes([data[-3] ^ 1]) + data[-2:],
        "another file": lambda data: b"#!/bin/sh\n",
        "too large": lambda data: data + bytes(5 << 20),
        "deep": lambda data: b"\x91" * 100_000,
    }


@pytest.mark.parametrize("damage", damages())
def test_a_damaged_file_is_no_entry_and_is_replaced(folder: Path, damage: str) -> None:
    CodeCache(folder).put("source", CHECKED, lasting=True)
    (path,) = folder.iterdir()
    good = path.read_bytes()
    path.write_bytes(damages()[damage](good))
    cache = CodeCache(folder)
    assert cache.get("source") is None
    cache.put("source", CHECKED, lasting=True)
    assert path.read_bytes() == good
    assert CodeCache(folder).get("source") == CHECKED


def test_an_entry_under_the_name_of_another_source_is_none(folder: Path) -> None:
    CodeCache(folder).put("source", CHECKED, lasting=True)
    (path,) = folder.iterdir()
    path.rename(folder / cache_key("other"))
    assert CodeCache(folder).get("other") is None


def test_code_that_no_message_could_hold_is_no_entry(folder: Path) -> None:
    CodeCache(folder).put("source", CheckedCode(bytes(MAX_CODE + 1), (), ""), lasting=True)
    assert CodeCache(folder).get("source") is None


def test_the_key_depends_on_the_source_the_checker_and_the_interpreter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert cache_key("a") != cache_key("b")
    assert cache_key("\ud800") != cache_key("?")
    before = cache_key("a")
    for name, value in (("CHECKER_VERSION", "another"), ("_suffix", lambda: "other")):
        monkeypatch.setattr(code_cache, name, value)
        code_cache_suffix = getattr(code_cache._suffix, "cache_clear", None)
        if code_cache_suffix is not None:
            code_cache_suffix()
        assert cache_key("a") != before
        monkeypatch.undo()
        code_cache._suffix.cache_clear()
    assert cache_key("a") == before
    assert f"-{sys.implementation.cache_tag}-" not in before
    assert sys.implementation.cache_tag in before


# --- whose folder it is ---


def test_the_folder_is_made_for_this_user_alone(folder: Path) -> None:
    CodeCache(folder)
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o720, 0o702, 0o777, 0o1777])
def test_a_folder_that_others_may_write_to_is_refused(folder: Path, mode: int) -> None:
    folder.mkdir(parents=True)
    folder.chmod(mode)
    with pytest.raises(ConfigError, match="writable by nobody else"):
        Pool(code_cache=folder)


def test_a_folder_of_somebody_else_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    CodeCache(folder)
    own = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: own + 1)
    with pytest.raises(ConfigError, match="must belong to this user"):
        CodeCache(folder)


def test_what_is_no_folder_is_refused(folder: Path) -> None:
    folder.parent.mkdir(parents=True)
    folder.write_text("a file")
    with pytest.raises(ConfigError, match="cannot be used"):
        CodeCache(folder)
    with pytest.raises(ConfigError, match="cannot be used"):
        CodeCache(folder / "below")


def test_the_default_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYNTHGYM_CODE_CACHE", "/some/where")
    assert default_folder() == Path("/some/where")
    monkeypatch.setenv("SYNTHGYM_CODE_CACHE", "")
    assert default_folder() is None
    monkeypatch.delenv("SYNTHGYM_CODE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert default_folder() == Path("/caches/synthgym/code")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/homes/me")
    assert default_folder() == Path("/homes/me/.cache/synthgym/code")


# --- in a pool ---


def test_a_second_pool_with_the_same_folder_does_not_compile(
    folder: Path, puts: list[bool]
) -> None:
    first = played(folder, walk())
    assert puts == [True]
    (path,) = folder.iterdir()
    written = path.stat().st_mtime_ns
    assert played(folder, walk()) == first
    assert puts == [True]
    assert path.stat().st_mtime_ns == written
    assert played(folder, walk(variant=1))
    assert puts == [True, True]
    assert len(list(folder.iterdir())) == 2


def test_a_load_from_the_cache_tells_what_the_first_one_told(folder: Path) -> None:
    found = []
    for _ in range(2):
        with Pool(code_cache=folder) as pool, pool.open(walk(), LIMITS) as session:
            found.append(session.load())
    assert isinstance(found[0], Loaded)
    assert found[0] == found[1]
    assert (found[0].requires, found[0].docstring[:6]) == (("random",), "A walk")


def test_a_source_is_compiled_once_whatever_happens_to_its_workers(puts: list[bool]) -> None:
    with Pool(max_workers=1) as pool:
        sessions = [pool.open(walk(variant=variant), LIMITS) for variant in (0, 1, 0)]
        for _ in range(3):
            for session in sessions:
                session.reset(1)
        sessions[0].step("loop")
        text(sessions[0].step("a"))
        for session in sessions:
            session.close()
        with pool.open(walk(), LIMITS) as again:
            again.reset(1)
        assert len(puts) == 2


@pytest.mark.parametrize("damage", ["empty", "half", "one bit", "another file"])
def test_a_pool_with_a_damaged_file_compiles_anew_and_replaces_it(
    folder: Path, puts: list[bool], damage: str
) -> None:
    first = played(folder, walk())
    (path,) = folder.iterdir()
    good = path.read_bytes()
    path.write_bytes(damages()[damage](good))
    assert played(folder, walk()) == first
    assert puts == [True, True]
    assert path.read_bytes() == good


def test_code_under_the_name_of_another_source_does_not_run_for_it(
    folder: Path, puts: list[bool]
) -> None:
    expected = played(None, game())
    played(folder, walk())
    (path,) = folder.iterdir()
    path.rename(folder / cache_key(game().source))
    assert played(folder, game()) == expected


@pytest.mark.parametrize("code", [b"garbage", b"i\x05\x00\x00\x00", b"N"])
def test_an_entry_that_is_no_code_is_a_fault_of_the_load_and_nothing_worse(
    folder: Path, code: bytes
) -> None:
    """Whoever may write there may break a load, and what runs is locked down like any source."""
    CodeCache(folder).put(walk().source, CheckedCode(code, (), ""), lasting=True)
    with Pool(code_cache=folder) as pool, pool.open(walk(), LIMITS) as session:
        fault = session.reset(1)
        assert isinstance(fault, EnvFault)
        assert fault.call == "load"
        with pool.open(walk(variant=1), LIMITS) as other:
            assert observe(other, 1, ["a"])


def test_a_folder_that_cannot_be_written_costs_nothing_but_speed(
    folder: Path, puts: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(code_cache, "write_file", full)
    with Pool(code_cache=folder) as pool:
        for variant in range(2):
            with pool.open(walk(variant=variant), LIMITS) as session:
                assert observe(session, 1, ["a"])
    assert puts == [True, True]
    assert list(folder.iterdir()) == []


def test_a_folder_that_is_gone_costs_nothing_but_speed(folder: Path) -> None:
    with Pool(code_cache=folder) as pool, pool.open(walk(), LIMITS) as session:
        folder.rmdir()
        assert observe(session, 1, ["a"])


def test_sources_that_share_a_worker_are_not_kept_on_disk(folder: Path, puts: list[bool]) -> None:
    with Pool(code_cache=folder, sources_per_worker=4) as pool:
        sessions = [pool.open(walk(variant=variant), LIMITS) for variant in range(4)]
        pool.reset_many([(session, 1) for session in sessions])
        assert len({session.source.link for session in sessions}) == 1
    assert puts == [False] * 4
    assert list(folder.iterdir()) == []


def test_a_refused_source_is_refused_again_and_leaves_no_file(folder: Path) -> None:
    record = EnvRecord(source="import os", entry="AEnv", max_turns=5)
    faults = []
    for _ in range(2):
        with Pool(code_cache=folder) as pool:
            for _ in range(2):
                with pool.open(record, LIMITS) as session:
                    faults.append(session.load())
    assert kinds(*faults) == [FaultKind.REFUSED] * 4
    assert len(set(faults)) == 1
    assert list(folder.iterdir()) == []


def test_a_source_that_was_checked_is_not_compiled_again(folder: Path, puts: list[bool]) -> None:
    with Pool(code_cache=folder) as pool:
        assert pool.check(walk().source) == ()
        assert pool.check(walk().source) == ()
        assert puts == [True]
        with pool.open(walk(), LIMITS) as session:
            assert observe(session, 1, ["a"])
        assert puts == [True]
        first = pool.check("import os")
        assert isinstance(first, tuple)
        assert [item.line for item in first] == [1]
        assert pool.check("import os") == first
        assert len(puts) == 2


def test_code_too_large_to_be_kept_is_compiled_by_every_worker(puts: list[bool]) -> None:
    texts = ", ".join(f"'{number:04x}' * 1000" for number in range(MAX_CODE // 4000 + 10))
    record = plain(module=f"TEXTS = [{texts}]")
    with Pool(max_workers=1) as pool:
        with pool.open(record, LIMITS) as large, pool.open(walk(), LIMITS) as small:
            for _ in range(3):
                large.reset(1)
                assert text(large.step("a")) == "x"
                small.reset(1)
                assert text(large.step("b")) == "x"
        assert len(puts) > 2


PROCESS = """
import sys
from pathlib import Path
from synthgym.sandbox import Pool
from synthgym.spec import EnvRecord
folder, *variants = sys.argv[1:]
source = sys.stdin.read()
with Pool(code_cache=Path(folder)) as pool:
    for variant in variants:
        record = EnvRecord(source=f"{source}\\nV = {variant}\\n", entry="WalkEnv", max_turns=50)
        with pool.open(record) as session:
            print(session.reset(1), session.step("a"))
"""


def test_two_processes_at_once_share_a_folder(folder: Path) -> None:
    variants = [str(number) for number in range(8)]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(folder), *order],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for order in (variants, variants)
    ]
    outputs = []
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(WALK)
        process.stdin.close()
    for process in processes:
        assert process.stdout is not None
        with process.stdout:
            outputs.append(process.stdout.read())
        assert process.wait() == 0
    assert outputs[0] == outputs[1]
    assert outputs[0].count("\n") == 8
    names = sorted(path.name for path in folder.iterdir())
    assert names == sorted(cache_key(f"{WALK}\nV = {variant}\n") for variant in variants)
    cache = CodeCache(folder)
    assert all(cache.get(f"{WALK}\nV = {variant}\n") is not None for variant in variants)


def test_a_folder_forgets_its_oldest_entries_and_nothing_else(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code_cache, "_MAX_FILES", 2)
    cache = CodeCache(folder)
    for age, source in enumerate(("three", "two", "one", "none")):
        cache.put(source, CHECKED, lasting=True)
        os.utime(folder / cache_key(source), (age, age))
    (folder / "notes.txt").write_text("not ours")
    again = CodeCache(folder)
    found = [again.get(source) for source in ("three", "two", "one", "none")]
    assert found == [None, None, CHECKED, CHECKED]
    assert (folder / "notes.txt").exists()
