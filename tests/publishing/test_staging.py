from __future__ import annotations

import hashlib
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from synthgym.errors import IntegrityError
from synthgym.publishing.staging import Staging, checked, make_folder


def test_a_new_file_is_there_within_the_block_only(tmp_path: Path) -> None:
    staging = Staging(tmp_path / "a" / "tmp")
    with staging.new_file((b"ab", b"c"), mode=0o600) as path:
        assert path.read_bytes() == b"abc"
        assert path.stat().st_mode & 0o777 == 0o600
    assert not path.exists()
    with staging.new_file((b"abc",)) as path:
        path.rename(tmp_path / "kept")
    assert (tmp_path / "kept").read_bytes() == b"abc"


@settings(deadline=None)
@given(st.lists(st.binary(max_size=8), max_size=8), st.lists(st.binary(max_size=8), max_size=8))
def test_only_what_was_promised_passes(promised: list[bytes], sent: list[bytes]) -> None:
    whole = b"".join(promised)
    digest = "sha256:" + hashlib.sha256(whole).hexdigest()
    passed = b""
    try:
        for chunk in checked(sent, len(whole), digest, "here"):
            passed += chunk
    except IntegrityError:
        assert b"".join(sent) != whole
        assert len(passed) <= len(whole)
    else:
        assert passed == b"".join(sent) == whole


def test_folders_are_made_as_deep_as_needed(tmp_path: Path) -> None:
    make_folder(tmp_path / "a" / "b" / "c")
    make_folder(tmp_path / "a" / "b" / "c")
    assert (tmp_path / "a" / "b" / "c").is_dir()
