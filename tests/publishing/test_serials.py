from __future__ import annotations

import errno
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from synthgym.errors import ConfigError, TrustError
from synthgym.publishing.index import Index, with_expiry
from synthgym.publishing.serials import Seen, Serials, state_folder

REMOTE = "https://example.com/registry"


def chain(length: int) -> list[Index]:
    """Indexes that follow on each other, serials from 1."""
    made = [with_expiry(Index(), None)]
    while len(made) < length:
        made.append(with_expiry(made[-1], f"{2000 + len(made)}-01-01T00:00:00Z"))
    return made


@pytest.fixture
def serials(tmp_path: Path) -> Serials:
    return Serials(tmp_path / "serials")


def test_the_newest_is_remembered(serials: Serials) -> None:
    assert serials.seen(REMOTE) is None
    for index in chain(3):
        serials.note(REMOTE, index)
        serials.note(REMOTE, index)
        assert serials.seen(REMOTE) == Seen(index.serial, index.digest)


def test_what_came_in_between_may_have_been_missed(serials: Serials) -> None:
    indexes = chain(9)
    serials.note(REMOTE, indexes[0])
    serials.note(REMOTE, indexes[8])
    assert serials.seen(REMOTE) == Seen(9, indexes[8].digest)


def test_an_older_index_is_a_rollback(serials: Serials) -> None:
    indexes = chain(3)
    serials.note(REMOTE, indexes[2])
    for call in (serials.check, serials.note):
        with pytest.raises(TrustError, match=r"rollback: .* has serial 2, but 3 was seen before"):
            call(REMOTE, indexes[1])
    assert serials.seen(REMOTE) == Seen(3, indexes[2].digest)


def test_the_same_serial_with_other_content_is_a_rollback(serials: Serials) -> None:
    second = chain(2)[1]
    serials.note(REMOTE, second)
    other = replace(second, expires="2030-01-01T00:00:00Z")
    with pytest.raises(TrustError, match="has serial 2 with other content than before"):
        serials.note(REMOTE, other)
    assert serials.seen(REMOTE) == Seen(2, second.digest)


def test_the_next_index_must_follow_on_the_one_that_was_seen(serials: Serials) -> None:
    _, second, third = chain(3)
    serials.note(REMOTE, second)
    other = with_expiry(replace(second, expires="2030-01-01T00:00:00Z"), None)
    with pytest.raises(TrustError, match="does not follow on the one of serial 2"):
        serials.note(REMOTE, other)
    serials.note(REMOTE, third)


def test_remotes_do_not_know_of_each_other(serials: Serials) -> None:
    first, second = chain(2)
    serials.note(REMOTE, second)
    serials.note(REMOTE + "/other", first)
    with pytest.raises(TrustError, match="rollback"):
        serials.check(REMOTE + "/", first)


def test_the_message_says_how_to_begin_anew(serials: Serials) -> None:
    first, second = chain(2)
    serials.note(REMOTE, second)
    with pytest.raises(TrustError) as caught:
        serials.note(REMOTE, first)
    folder = Path(str(caught.value).rpartition("remove ")[2])
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    serials.note(REMOTE, first)


def test_an_index_that_was_never_published_is_refused(serials: Serials) -> None:
    with pytest.raises(ConfigError, match="serial 1 at least, got 0"):
        serials.note(REMOTE, Index())


def test_nothing_that_a_url_may_hold_is_on_the_disk(serials: Serials, tmp_path: Path) -> None:
    serials.note("https://user:password@example.com", chain(1)[0])
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) == 1
    assert written[0].read_bytes() == b""
    assert "password" not in "".join(map(str, tmp_path.rglob("*")))


def test_other_files_in_the_folder_do_not_matter(serials: Serials, tmp_path: Path) -> None:
    index = chain(1)[0]
    serials.note(REMOTE, index)
    (folder,) = (tmp_path / "serials").iterdir()
    for name in ("9-abc", ".nfs0001", "0000000000000009-" + "g" * 64):
        (folder / name).touch()
    assert serials.seen(REMOTE) == Seen(1, index.digest)


# --- many at once ---

NOTE_ALL = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_serials import REMOTE, chain
from synthgym.errors import TrustError
from synthgym.publishing.serials import Serials
serials = Serials(Path({folder!r}))
own = "https://example.com/" + sys.argv[1]
for index in chain(120)[int(sys.argv[1]) :: 3]:
    serials.note(own, index)
    try:
        serials.note(REMOTE, index)
    except TrustError:  # another process has noted a later one
        assert serials.seen(REMOTE).serial > index.serial
    assert serials.seen(REMOTE).serial >= index.serial
"""


def test_processes_never_lose_the_highest_of_any_remote(serials: Serials, tmp_path: Path) -> None:
    tests = str(Path(__file__).parent)
    program = NOTE_ALL.format(tests=tests, folder=str(tmp_path / "serials"))
    started = [
        subprocess.Popen([sys.executable, "-c", program, str(number)], stderr=subprocess.PIPE)
        for number in range(3)
    ]
    for process in started:
        _, errors = process.communicate(timeout=100)
        assert process.returncode == 0, errors.decode()
    indexes = chain(120)
    assert serials.seen(REMOTE) == Seen(120, indexes[119].digest)
    for number in range(3):
        assert serials.seen(f"https://example.com/{number}") == Seen(
            118 + number, indexes[117 + number].digest
        )


def test_a_later_one_that_another_process_notes_meanwhile_stays(
    serials: Serials, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, second, third, _, fifth = chain(5)
    serials.note(REMOTE, second)

    def meanwhile(folder: Path) -> None:
        monkeypatch.undo()
        Serials(tmp_path / "serials").note(REMOTE, fifth)

    monkeypatch.setattr("synthgym.publishing.serials.sync_folder", meanwhile)
    serials.note(REMOTE, third)
    assert serials.seen(REMOTE) == Seen(5, fifth.digest)


def test_two_contents_noted_at_the_same_time_are_found(
    serials: Serials, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = chain(2)[1]
    other = replace(second, expires="2030-01-01T00:00:00Z")
    monkeypatch.setattr(serials, "check", lambda remote, index: None)  # both looked before either
    serials.note(REMOTE, second)
    with pytest.raises(TrustError, match="has serial 2 with two contents"):
        serials.note(REMOTE, other)
    monkeypatch.undo()
    for index in (second, other):
        with pytest.raises(TrustError, match="has serial 2 with other content than before"):
            serials.check(REMOTE, index)


def test_a_crash_before_the_old_file_went_is_harmless(
    serials: Serials, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = chain(3)
    serials.note(REMOTE, first)

    def crash(self: Path, missing_ok: bool = False) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "unlink", crash)
    with pytest.raises(KeyboardInterrupt):
        serials.note(REMOTE, second)
    monkeypatch.undo()
    assert serials.seen(REMOTE) == Seen(2, second.digest)
    with pytest.raises(TrustError, match="has serial 1, but 2 was seen"):
        serials.check(REMOTE, first)
    serials.note(REMOTE, third)


# --- where it is ---


def test_the_state_is_in_the_folder_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SYNTHGYM_STATE", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_folder() == tmp_path / ".local" / "state" / "synthgym"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert state_folder() == tmp_path / "xdg" / "synthgym"
    monkeypatch.setenv("SYNTHGYM_STATE", str(tmp_path / "mine"))
    Serials().note(REMOTE, chain(1)[0])
    assert len(list((tmp_path / "mine" / "serials").iterdir())) == 1


def test_a_folder_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "serials").write_text("a file")
    with pytest.raises(ConfigError, match=r"cannot read .*serials"):
        Serials(tmp_path / "serials").note(REMOTE, chain(1)[0])


def test_a_folder_that_cannot_be_written_names_the_setting(
    serials: Serials, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, mode: int = 0o666) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "touch", full)
    with pytest.raises(ConfigError, match=r"No space left on device; name .* in SYNTHGYM_STATE"):
        serials.note(REMOTE, chain(1)[0])


def test_without_a_home_the_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("SYNTHGYM_STATE", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(ConfigError, match="no home folder: name one in SYNTHGYM_STATE"):
        state_folder()
