from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pages import table
from ssh import GENERATORS, keygen, needs_keygen, write_key

from synthgym.errors import ConfigError, MissingExtraError, SnapshotError, TrustError
from synthgym.publishing.ssh_keys import PrivateKey, load_private_key
from synthgym.publishing.sshsig import SNAPSHOT_NAMESPACE, sign
from synthgym.publishing.trust import (
    AllowedSigners,
    Status,
    Verdict,
    check_signatures,
    default_path,
)

MESSAGE = b"the bytes of a manifest"
NOW = datetime(2026, 5, 31, 12, tzinfo=UTC)
FILE = Path("allowed")
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFXgF0TKCzlSEaKGXTrO+xsHTbb8TPH1wXjZBSKlqyLl"
SECURITY_KEY = (
    "sk-ssh-ed25519@openssh.com AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAAIAAAAAAAAAAAAAAAAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAAAABHNzaDo="
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_key(tmp_path_factory.mktemp("keys") / "alice", GENERATORS["ed25519"]())


@pytest.fixture(scope="module")
def alice(path: Path) -> PrivateKey:
    return load_private_key(path)


@pytest.fixture(scope="module")
def bob(tmp_path_factory: pytest.TempPathFactory) -> PrivateKey:
    path = write_key(tmp_path_factory.mktemp("keys") / "bob", GENERATORS["ed25519"]())
    return load_private_key(path)


def trusting(*lines: str) -> AllowedSigners:
    return AllowedSigners.parse("\n".join(lines), FILE)


def check(armours: str, allowed: AllowedSigners, principal: str | None = None) -> Verdict:
    return check_signatures(MESSAGE, armours, allowed, at=NOW, principal=principal)


# --- the file ---


def test_a_file_is_read_as_ssh_keygen_says() -> None:
    text = (
        "# comment\n\n \t# another\r\n"
        f"alice@example.com {KEY} a comment\r\n"
        f'"bob@*,!x" NameSpaces="a,b*",valid-after="20260101Z",valid-before="203001011200Z" {KEY}\n'
        f"\tcarol \t{SECURITY_KEY}"
    )
    first, second, third = AllowedSigners.parse(text, FILE).signers
    assert (first.principals, first.key.text, first.namespaces) == (("alice@example.com",), KEY, ())
    assert first.valid_after is first.valid_before is None
    assert (second.principals, second.namespaces) == (("bob@*", "!x"), ("a", "b*"))
    assert second.valid_after == datetime(2026, 1, 1, tzinfo=UTC)
    assert second.valid_before == datetime(2030, 1, 1, 12, tzinfo=UTC)
    assert third.key.text == SECURITY_KEY


def test_a_time_without_z_is_that_of_this_machine() -> None:
    (signer,) = trusting(f'a valid-after="20260102030405" {KEY}').signers
    assert signer.valid_after == datetime(2026, 1, 2, 3, 4, 5).astimezone()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("alice", "expected a type of key and the key"),
        ("alice ssh-ed25519", "expected a type of key"),
        ("alice ssh-ed25519 AAAA", "expected a type of key"),
        (f"alice {KEY}A", "expected a type of key"),
        (f"alice {KEY.replace('ssh-ed25519', 'ssh-rsa')}", "expected a type of key"),
        (KEY, "expected a type of key"),
        (f"alice cert-authority {KEY}", "cert-authority is not supported"),
        (f'alice namespaces="a",cert-authority {KEY}', "cert-authority is not supported"),
        (f'alice no-pty="" {KEY}', "expected options of namespaces"),
        (f"alice namespaces=a {KEY}", "expected options of namespaces"),
        (f"alice namespaces {KEY}", "expected options of namespaces"),
        (f'alice namespaces="" {KEY}', "expected patterns"),
        (f'alice namespaces="a,,b" {KEY}', "expected patterns"),
        (f'alice namespaces="a"valid-after="20260101" {KEY}', "expected options of"),
        (f'alice namespaces="a",namespaces="b" {KEY}', "the option namespaces comes twice"),
        (f'alice namespaces="a", {KEY}', "end with a comma"),
        (f"alice, {KEY}", "expected patterns"),
        (f"a,! {KEY}", "expected patterns"),
        (f'alice valid-after="2026" {KEY}', r"expected a time YYYYMMDD\[Z\]"),
        (f'alice valid-after="20260230" {KEY}', r"expected a time YYYYMMDD\[Z\]"),
        (
            f'a valid-after="20260102Z",valid-before="20260101Z" {KEY}',
            "must be before valid-before",
        ),
        ('"alice', "expected principals, options"),
    ],
)
def test_a_wrong_line_is_named(line: str, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"allowed, line 2: .*{message}"):
        trusting("# first", line)


@given(st.text())
def test_arbitrary_text_is_a_file_or_an_error_of_ours(text: str) -> None:
    try:
        signers = trusting(text).signers
    except ConfigError:
        return
    assert signers == ()  # no arbitrary text has a key in it


WORDS = st.sampled_from(
    [
        *("a", "*", "!b", ",", " ", '"', "=", "namespaces", "valid-after", "valid-before"),
        *("20260101Z", "cert-authority", KEY, "ssh-ed25519", "\t", "\\", "#", "00010101"),
    ]
)


@given(st.lists(WORDS).map("".join))
def test_pieces_of_lines_are_a_file_or_an_error_of_ours(text: str) -> None:
    try:
        signers = trusting(text).signers
    except ConfigError:
        return
    for signer in signers:
        assert signer.key.text == KEY
        assert all(signer.principals)


# --- where the file is ---


def test_the_default_file_is_in_the_configuration_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SYNTHGYM_ALLOWED_SIGNERS", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_path() == tmp_path / ".config" / "synthgym" / "allowed_signers"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    named = tmp_path / "xdg" / "synthgym" / "allowed_signers"
    assert AllowedSigners.read() == AllowedSigners((), named)
    named.parent.mkdir(parents=True)
    named.write_text(f"alice {KEY}\n")
    assert [signer.principals for signer in AllowedSigners.read().signers] == [("alice",)]
    monkeypatch.setenv("SYNTHGYM_ALLOWED_SIGNERS", str(tmp_path / "mine"))
    with pytest.raises(ConfigError, match=r"no file of allowed signers at .*mine"):
        AllowedSigners.read()
    (tmp_path / "mine").write_text("")
    assert AllowedSigners.read() == AllowedSigners((), tmp_path / "mine")


def test_a_file_that_cannot_be_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no file of allowed signers"):
        AllowedSigners.read(tmp_path / "nothing")
    with pytest.raises(ConfigError, match="cannot read"):
        AllowedSigners.read(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="not UTF-8"):
        AllowedSigners.read(tmp_path / "binary")
    (tmp_path / "large").write_bytes(b"#" * (1024 * 1024 + 1))
    with pytest.raises(ConfigError, match="larger than"):
        AllowedSigners.read(tmp_path / "large")


# --- verdicts ---


def test_a_signature_of_a_trusted_key_is_good(alice: PrivateKey) -> None:
    allowed = trusting(f"alice@example.com {alice.public.text}")
    verdict = check(sign(MESSAGE, alice), allowed)
    assert verdict == Verdict(
        status=Status.GOOD, principal="alice@example.com", fingerprint=alice.public.fingerprint
    )
    assert verdict.require("games 1.0") is verdict


def test_nothing_is_unsigned() -> None:
    verdict = check("\n", trusting())
    assert verdict.status is Status.UNSIGNED
    with pytest.raises(TrustError, match=r"games 1.0: it is not signed"):
        verdict.require("games 1.0")


def test_the_line_that_is_offered_for_an_unknown_key_makes_it_known(alice: PrivateKey) -> None:
    armour = sign(MESSAGE, alice)
    verdict = check(armour, trusting(f"bob {KEY}"))
    assert (verdict.status, verdict.principal) == (Status.UNKNOWN_KEY, "")
    with pytest.raises(TrustError) as caught:
        verdict.require("games 1.0")
    text = str(caught.value)
    assert alice.public.fingerprint in text
    assert str(FILE) in text
    again = check(armour, trusting(text.rpartition("to that file: ")[2]))
    assert (again.status, again.principal) == (Status.GOOD, "AUTHOR")


def test_a_bad_signature_of_an_unknown_key_offers_no_line(alice: PrivateKey) -> None:
    verdict = check(sign(MESSAGE + b"!", alice), trusting())
    assert verdict.status is Status.BAD
    assert alice.public.text not in verdict.detail


@pytest.mark.parametrize(
    ("message", "namespace", "detail"),
    [
        (MESSAGE + b"!", SNAPSHOT_NAMESPACE, "they were changed after they were signed"),
        (MESSAGE, "file", "was made for 'file', expected one for 'synthgym-snapshot'"),
    ],
)
def test_a_signature_of_something_else_is_bad(
    message: bytes, namespace: str, detail: str, alice: PrivateKey
) -> None:
    verdict = check(sign(message, alice, namespace), trusting(f"alice {alice.public.text}"))
    assert (verdict.status, verdict.fingerprint) == (Status.BAD, alice.public.fingerprint)
    assert detail in verdict.detail


def test_what_is_no_signature_is_bad(alice: PrivateKey) -> None:
    verdict = check("signed, alice", trusting(f"alice {alice.public.text}"))
    assert verdict.status is Status.BAD
    assert "cannot be read" in verdict.detail


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ('valid-before="20260531115959Z"', Status.EXPIRED),
        ('valid-before="20260531120000Z"', Status.GOOD),
        ('valid-after="20260531120000Z"', Status.GOOD),
        ('valid-after="20260531120001Z"', Status.NOT_YET_VALID),
        ('namespaces="synthgym-*"', Status.GOOD),
        ('namespaces="git,file"', Status.UNKNOWN_KEY),
        ('namespaces="*,!synthgym-snapshot"', Status.UNKNOWN_KEY),
        ('namespaces="git",valid-before="20260101Z"', Status.UNKNOWN_KEY),
    ],
)
def test_options_decide_when_and_what_for(options: str, status: Status, alice: PrivateKey) -> None:
    verdict = check(sign(MESSAGE, alice), trusting(f"alice {options} {alice.public.text}"))
    assert (verdict.status, verdict.principal) == (status, "alice")
    assert bool(verdict.detail) != verdict.is_good
    if not verdict.is_good:
        assert "; see allowed" in verdict.detail


def test_one_line_that_fits_is_enough(alice: PrivateKey) -> None:
    allowed = trusting(
        f'old valid-before="20200101Z" {alice.public.text}',
        f'file namespaces="file" {alice.public.text}',
        f"alice {alice.public.text}",
    )
    assert check(sign(MESSAGE, alice), allowed).principal == "alice"


def test_one_good_signature_is_enough_and_a_bad_one_is_said_before_an_unknown_one(
    alice: PrivateKey, bob: PrivateKey
) -> None:
    good, unknown, bad = sign(MESSAGE, alice), sign(MESSAGE, bob), sign(b"", alice)
    allowed = trusting(f"alice {alice.public.text}")
    assert check(bad + unknown + good, allowed).status is Status.GOOD
    assert check(unknown + bad, allowed).status is Status.BAD
    assert check(unknown + unknown, allowed).status is Status.UNKNOWN_KEY


def test_the_zone_of_the_time_does_not_matter_but_must_be_there(alice: PrivateKey) -> None:
    allowed = trusting(f'alice valid-before="20260531120000Z" {alice.public.text}')
    armour = sign(MESSAGE, alice)
    east = NOW.astimezone(timezone(timedelta(hours=9)))
    assert check_signatures(MESSAGE, armour, allowed, at=east).is_good
    with pytest.raises(ConfigError, match="needs a time zone"):
        check_signatures(MESSAGE, armour, allowed, at=NOW.replace(tzinfo=None))


def test_a_key_on_a_security_key_cannot_be_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    import base64

    from synthgym.publishing.ssh_keys import put_string

    blob = base64.b64decode(SECURITY_KEY.split()[1])
    inner = put_string(b"sk-ssh-ed25519@openssh.com") + put_string(bytes(64)) + bytes(5)
    fields = (blob, b"synthgym-snapshot", b"", b"sha512", inner)
    data = b"SSHSIG\0\0\0\1" + b"".join(map(put_string, fields))
    text = base64.b64encode(data).decode()
    armour = f"-----BEGIN SSH SIGNATURE-----\n{text}\n-----END SSH SIGNATURE-----\n"
    verdict = check(armour, trusting(f"carol {SECURITY_KEY}"))
    assert verdict.status is Status.UNSUPPORTED
    assert "ssh-ed25519 key" in verdict.detail


def test_without_the_extra_only_what_is_signed_is_an_error(
    alice: PrivateKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    armour = sign(MESSAGE, alice)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    assert check("", trusting(f"alice {KEY}")).status is Status.UNSIGNED
    with pytest.raises(MissingExtraError, match=r"synthgym\[sign\]"):
        check(armour, trusting(f"alice {KEY}"))


def test_a_trust_error_is_a_snapshot_error() -> None:
    assert issubclass(TrustError, SnapshotError)


# --- the same answers as ssh-keygen ---


@needs_keygen
@pytest.mark.parametrize(
    "principal", ["alice@example.com", "bob@example.com", "Alice@example.com", "[a]"]
)
@pytest.mark.parametrize(
    "start",
    [
        "alice@example.com",
        "*@example.com",
        "!bob@*,*@example.com",
        "*@example.com,!bob@*",
        "!bob@example.com",
        "????e@example.com,[a]",
        "?????@example.com",
        "[a-z]*",
        '"alice@example.com,bob@example.com"',
        "*",
        'alice@example.com namespaces="synthgym-snapshot"',
        'alice@example.com NAMESPACES="file,synthgym-*"',
        'alice@example.com namespaces="*,!synthgym-*"',
        '* valid-after="20260531120000Z"',
        '* valid-after="20260531120001Z"',
        '* valid-before="202605311200Z"',
        '* valid-before="20260531Z"',
        '* valid-after="20260531",valid-before="20260601"',
        "* cert-authority",
        "* unknown-option",
        '* namespaces="a',
        "* namespaces=synthgym-snapshot",
    ],
)
def test_ssh_keygen_and_we_agree(
    start: str, principal: str, alice: PrivateKey, path: Path, tmp_path: Path
) -> None:
    armour = sign(MESSAGE, alice)
    (tmp_path / "sig").write_text(armour)
    line = f"{start} {alice.public.text}"
    (tmp_path / "allowed").write_text(line + "\n")
    done = keygen(
        *("-Y", "verify", "-f", tmp_path / "allowed", "-I", principal, "-n", SNAPSHOT_NAMESPACE),
        *("-s", tmp_path / "sig", "-O", "verify-time=20260531120000Z"),
        stdin=MESSAGE,
    )
    try:
        ours = check(armour, trusting(line), principal).is_good
    except ConfigError:
        ours = False
    assert ours == (done.returncode == 0), done.stderr


def test_the_docs_name_every_verdict() -> None:
    assert set(table("docs/signing.md", "verdicts")) == {status.value for status in Status}
