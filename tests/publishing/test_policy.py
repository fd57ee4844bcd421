from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from ssh import GENERATORS, write_key

from synthgym.errors import TrustError
from synthgym.publishing.policy import TrustPolicy
from synthgym.publishing.ssh_keys import load_private_key
from synthgym.publishing.sshsig import parse, sign
from synthgym.publishing.trust import AllowedSigner, AllowedSigners, Status

PATH = Path("allowed_signers")


@pytest.fixture
def armour(tmp_path: Path) -> str:
    key = load_private_key(write_key(tmp_path / "key", GENERATORS["ed25519"]()))
    return sign(b"data", key)


def trusting(armour: str) -> AllowedSigners:
    return AllowedSigners((AllowedSigner(principals=("kim",), key=parse(armour)[0].key),), PATH)


def test_a_good_signature_is_good(armour: str) -> None:
    for required in (True, False):
        policy = TrustPolicy(allowed=trusting(armour), required=required)
        assert policy.check("it", b"data", armour).is_good


def test_what_is_not_required_may_be_missing_or_unknown(armour: str) -> None:
    policy = TrustPolicy(allowed=AllowedSigners((), PATH))
    assert policy.check("it", b"data", "").status is Status.UNSIGNED
    assert policy.check("it", b"data", armour).status is Status.UNKNOWN_KEY


def test_what_is_required_must_be_good(armour: str) -> None:
    policy = TrustPolicy(
        allowed=AllowedSigners((), PATH), required=True, at=datetime(2026, 1, 1, tzinfo=UTC)
    )
    for armours in ("", armour):
        with pytest.raises(TrustError, match=r"^it: "):
            policy.check("it", b"data", armours)


@pytest.mark.parametrize("required", [True, False])
def test_a_bad_signature_is_never_ignored(armour: str, required: bool) -> None:
    policy = TrustPolicy(allowed=trusting(armour), required=required)
    for data, armours in ((b"other", armour), (b"data", "rubbish")):
        with pytest.raises(TrustError, match=r"^it: "):
            policy.check("it", data, armours)
