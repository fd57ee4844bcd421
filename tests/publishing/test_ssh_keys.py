from __future__ import annotations

import sys
from pathlib import Path

import pytest
import ssh
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import given
from hypothesis import strategies as st
from ssh import KINDS, keygen, needs_keygen, write_key

from synthgym.errors import ConfigError, MissingExtraError, SnapshotError, TrustError
from synthgym.publishing.ssh_keys import (
    MAX_KEY_BYTES,
    PublicKey,
    WireReader,
    decode_base64,
    load_private_key,
    natural_bytes,
    put_string,
    verify_bytes,
)

NEW = {
    "ed25519": ("-t", "ed25519"),
    "ecdsa-256": ("-t", "ecdsa", "-b", "256"),
    "ecdsa-384": ("-t", "ecdsa", "-b", "384"),
    "ecdsa-521": ("-t", "ecdsa", "-b", "521"),
    "rsa-2048": ("-t", "rsa", "-b", "2048"),
}


def new_key(path: Path, kind: str, passphrase: str = "", *options: str) -> Path:
    done = keygen("-q", *NEW[kind], "-N", passphrase, "-C", "a comment", "-f", path, *options)
    assert done.returncode == 0, done.stderr
    return path


@needs_keygen
@pytest.mark.parametrize("kind", KINDS)
def test_a_key_of_ssh_keygen_is_read_and_has_its_fingerprint(tmp_path: Path, kind: str) -> None:
    path = new_key(tmp_path / "key", kind)
    key = load_private_key(path)
    printed = keygen("-l", "-f", path).stdout.decode().split()
    assert key.public.fingerprint == printed[1]
    assert key.public.text == " ".join((tmp_path / "key.pub").read_text().split()[:2])
    assert PublicKey.from_text(*key.public.text.split()) == key.public
    algorithm, value = key.sign(b"message")
    verify_bytes(key.public, algorithm, value, b"message")
    with pytest.raises(TrustError, match="does not belong to these bytes"):
        verify_bytes(key.public, algorithm, value, b"messagf")


@needs_keygen
@pytest.mark.parametrize("cipher", ["aes256-ctr", "aes256-gcm@openssh.com"])
def test_an_encrypted_key_needs_its_passphrase(tmp_path: Path, cipher: str) -> None:
    pytest.importorskip("bcrypt")
    path = new_key(tmp_path / "key", "ed25519", "a secret", "-Z", cipher)
    asked: list[int] = []

    def ask() -> bytes:
        asked.append(1)
        return b"a secret"

    assert load_private_key(path, b"a secret") == load_private_key(path, ask)
    assert asked == [1]
    with pytest.raises(ConfigError, match="is encrypted: give its passphrase"):
        load_private_key(path)
    with pytest.raises(ConfigError, match="is encrypted: give its passphrase"):
        load_private_key(path, b"")
    with pytest.raises(ConfigError, match="the passphrase is wrong"):
        load_private_key(path, b"another")


@needs_keygen
def test_an_encrypted_key_without_bcrypt_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "cryptography.hazmat.primitives.serialization.ssh._bcrypt_supported", False, raising=True
    )

    def no_bcrypt(*_: object) -> bytes:
        from cryptography.exceptions import UnsupportedAlgorithm

        raise UnsupportedAlgorithm("Need bcrypt module")

    monkeypatch.setattr("cryptography.hazmat.primitives.serialization.ssh._bcrypt_kdf", no_bcrypt)
    path = new_key(tmp_path / "key", "ed25519", "a secret")
    with pytest.raises(MissingExtraError, match=r"pip install 'synthgym\[sign\]'"):
        load_private_key(path, b"a secret")


def test_a_passphrase_that_is_not_needed_is_ignored_and_not_asked_for(tmp_path: Path) -> None:
    path = write_key(tmp_path / "key", ssh.GENERATORS["ed25519"]())

    def ask() -> bytes:
        raise AssertionError

    assert load_private_key(path, b"a secret").public == load_private_key(path, ask).public


def test_without_cryptography_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_key(tmp_path / "key", ssh.GENERATORS["ed25519"]())
    public = load_private_key(path).public
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'synthgym\[sign\]'"):
        load_private_key(path)
    with pytest.raises(MissingExtraError, match=r"pip install 'synthgym\[sign\]'"):
        verify_bytes(public, "ssh-ed25519", bytes(64), b"")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601])
def test_a_key_that_others_can_reach_is_refused_as_ssh_does(tmp_path: Path, mode: int) -> None:
    path = write_key(tmp_path / "key", ssh.GENERATORS["ed25519"]())
    path.chmod(mode)
    with pytest.raises(ConfigError, match=rf"others can read .* \(mode 0{mode:o}\).*chmod 600"):
        load_private_key(path)
    path.chmod(0o400)
    load_private_key(path)


def test_the_secret_is_not_shown(tmp_path: Path) -> None:
    key = load_private_key(write_key(tmp_path / "key", ssh.GENERATORS["ed25519"]()))
    assert repr(key) == "PrivateKey(public=PublicKey(type='ssh-ed25519'))"


def pem(handle: rsa.RSAPrivateKey) -> bytes:
    return handle.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())


def public(handle: rsa.RSAPrivateKey) -> bytes:
    return handle.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)


def short(handle: rsa.RSAPrivateKey) -> bytes:
    return handle.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (pem, "not in the format of OpenSSH: `ssh-keygen -p -f"),
        (public, "is a public key; expected the private one"),
        (short, "RSA of 1024 bits is too short, 2048 at least"),
        (lambda handle: short(handle)[:300], "no OpenSSH private key"),
        (lambda handle: short(handle).replace(b"AAAA", b"AAAB", 1), "no OpenSSH private key"),
        (lambda handle: short(handle) + bytes(70_000), "larger than 65536 bytes"),
        (lambda handle: b"", "not in the format of OpenSSH"),
    ],
)
def test_another_file_is_no_private_key(tmp_path: Path, make: object, message: str) -> None:
    path = tmp_path / "key"
    path.touch(mode=0o600)
    path.write_bytes(make(rsa.generate_private_key(65537, 1024)))  # type: ignore[operator]
    with pytest.raises(ConfigError, match=message):
        load_private_key(path)


def test_a_missing_file_is_a_setting_that_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read the private key .*No such file"):
        load_private_key(tmp_path / "nothing")


def test_a_short_rsa_key_and_sha1_verify_nothing() -> None:
    words = public(rsa.generate_private_key(65537, 1024)).decode().split()
    key = PublicKey.from_text(*words[:2])
    with pytest.raises(TrustError, match="1024 bits is too short: 2048 at least"):
        verify_bytes(key, "rsa-sha2-512", bytes(128), b"")
    with pytest.raises(TrustError, match="'ssh-rsa' by a key 'ssh-rsa' cannot be verified here"):
        verify_bytes(key, "ssh-rsa", bytes(128), b"")


@pytest.mark.parametrize(
    "blob",
    [
        b"",
        b"\0\0\0",
        put_string(b""),
        put_string(b"ssh ed25519"),
        put_string(b"ssh-\xe9"),
        b"\0\0\0\xffssh-ed25519",
        put_string(b"ssh-ed25519") + bytes(MAX_KEY_BYTES),
    ],
)
def test_bytes_that_are_no_key_are_refused(blob: bytes) -> None:
    with pytest.raises(SnapshotError, match="public key"):
        PublicKey(blob)


def test_the_two_words_must_agree() -> None:
    blob = "AAAAC3NzaC1lZDI1NTE5AAAAIFXgF0TKCzlSEaKGXTrO+xsHTbb8TPH1wXjZBSKlqyLl"
    assert PublicKey.from_text("ssh-ed25519", blob).text == f"ssh-ed25519 {blob}"
    with pytest.raises(SnapshotError, match="says that it is 'ssh-rsa', its bytes say ssh-ed25519"):
        PublicKey.from_text("ssh-rsa", blob)


@pytest.mark.parametrize(
    "text", ["QQ", "QQ=", "QR==", "QQ==\n", "Q Q==", "QQ===", "Q\u00e9", "-_8="]
)
def test_base64_has_one_spelling(text: str) -> None:
    with pytest.raises(SnapshotError, match="base64"):
        decode_base64(text, "it")


@given(st.integers(1, 2**600))
def test_a_number_survives_its_encoding(value: int) -> None:
    reader = WireReader(put_string(natural_bytes(value)), "it")
    assert reader.natural() == value
    reader.end()


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff", b"\0\x7f", b"\x80"])
def test_a_number_that_is_not_positive_and_minimal_is_refused(data: bytes) -> None:
    with pytest.raises(SnapshotError, match="positive and minimal"):
        WireReader(put_string(data), "it").natural()


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_a_key_or_an_error_of_ours(data: bytes) -> None:
    try:
        key = PublicKey(data)
    except SnapshotError:
        return
    assert PublicKey.from_text(*key.text.split(" ")) == key
    with pytest.raises(TrustError):
        verify_bytes(key, "ssh-ed25519", bytes(64), b"")
