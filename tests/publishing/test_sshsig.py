from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ssh import GENERATORS, KINDS, keygen, needs_keygen, write_key

from synthgym.errors import ConfigError, SnapshotError, TrustError
from synthgym.publishing.ssh_keys import PrivateKey, load_private_key, put_string
from synthgym.publishing.sshsig import (
    MAX_ARMOURS,
    MAX_SIGNATURES,
    SNAPSHOT_NAMESPACE,
    Signature,
    parse,
    sign,
    verify,
)

MESSAGE = b'{"format":"synthgym.snapshot/1"}'
BEGIN, END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A private key of each kind, as a file."""
    folder = tmp_path_factory.mktemp("keys")
    return {kind: write_key(folder / kind, GENERATORS[kind]()) for kind in KINDS}


@pytest.fixture(scope="module")
def keys(paths: dict[str, Path]) -> dict[str, PrivateKey]:
    return {kind: load_private_key(path) for kind, path in paths.items()}


@pytest.fixture(scope="module")
def bodies(keys: dict[str, PrivateKey]) -> dict[str, bytes]:
    """What is inside a signature of `MESSAGE` by each key."""
    return {kind: body(sign(MESSAGE, key)) for kind, key in keys.items()}


def body(armour: str) -> bytes:
    return base64.b64decode("".join(armour.split("\n")[1:-2]))


def armour(data: bytes) -> str:
    return f"{BEGIN}\n{base64.b64encode(data).decode()}\n{END}\n"


def verify_all(text: str) -> None:
    """Return when there are signatures of `MESSAGE`, and all are true."""
    found = parse(text)
    assert found
    for signature in found:
        verify(MESSAGE, signature)


def verdict_of_ssh_keygen(
    folder: Path,
    text: str,
    public: str,
    message: bytes = MESSAGE,
    namespace: str = "synthgym-snapshot",
) -> bool:
    (folder / "sig").write_text(text)
    (folder / "allowed").write_text(f"alice@example.com {public}\n")
    done = keygen(
        *("-Y", "verify", "-f", folder / "allowed", "-I", "alice@example.com"),
        *("-n", namespace, "-s", folder / "sig"),
        stdin=message,
    )
    return done.returncode == 0


# --- both ways with the real ssh-keygen ---


@needs_keygen
@pytest.mark.parametrize("kind", KINDS)
def test_ssh_keygen_verifies_what_we_sign(
    kind: str, keys: dict[str, PrivateKey], tmp_path: Path
) -> None:
    key = keys[kind]
    text = sign(MESSAGE, key)
    assert verdict_of_ssh_keygen(tmp_path, text, key.public.text)
    assert not verdict_of_ssh_keygen(tmp_path, text, key.public.text, MESSAGE + b" ")
    assert not verdict_of_ssh_keygen(tmp_path, text, key.public.text, namespace="file")


@needs_keygen
@pytest.mark.parametrize("hashed", ["sha512", "sha256"])
@pytest.mark.parametrize("kind", KINDS)
def test_we_verify_what_ssh_keygen_signs(
    kind: str, hashed: str, paths: dict[str, Path], keys: dict[str, PrivateKey]
) -> None:
    done = keygen(
        *("-Y", "sign", "-f", paths[kind], "-n", SNAPSHOT_NAMESPACE, "-O", f"hashalg={hashed}"),
        stdin=MESSAGE,
    )
    assert done.returncode == 0, done.stderr
    (signature,) = parse(done.stdout.decode())
    assert (signature.key, signature.hash) == (keys[kind].public, hashed)
    verify(MESSAGE, signature)
    with pytest.raises(TrustError, match="were changed after they were signed"):
        verify(MESSAGE + b" ", signature)
    with pytest.raises(TrustError, match="was made for 'synthgym-snapshot', expected one for 'f'"):
        verify(MESSAGE, signature, "f")


@needs_keygen
def test_the_armour_is_that_of_ssh_keygen(
    paths: dict[str, Path], keys: dict[str, PrivateKey]
) -> None:
    words = ("-Y", "sign", "-f", paths["ed25519"], "-n", SNAPSHOT_NAMESPACE)
    theirs = keygen(*words, stdin=MESSAGE).stdout.decode()
    assert sign(MESSAGE, keys["ed25519"]) == theirs  # Ed25519 has no chance in it


# --- files of several signatures ---


def test_a_file_may_hold_none_or_several(keys: dict[str, PrivateKey]) -> None:
    texts = [sign(MESSAGE, keys[kind]) for kind in KINDS]
    assert parse("") == parse("\n\r\n") == []
    found = parse("\n".join(texts).replace("\n", "\r\n"))
    assert [signature.key for signature in found] == [keys[kind].public for kind in KINDS]
    for signature in found:
        verify(MESSAGE, signature)


def test_there_are_not_more_than_some(keys: dict[str, PrivateKey]) -> None:
    text = sign(MESSAGE, keys["ed25519"])
    assert len(parse(text * MAX_SIGNATURES)) == MAX_SIGNATURES
    with pytest.raises(SnapshotError, match="more than 16 signatures"):
        parse(text * (MAX_SIGNATURES + 1))
    with pytest.raises(SnapshotError, match="at most 262144"):
        parse("\n" * (MAX_ARMOURS + 1))
    with pytest.raises(SnapshotError, match="a signature of 20000 characters"):
        parse(f"{BEGIN}\n{'A' * 20_000}\n{END}\n")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: "signed by me\n" + text, "line 1 of the signatures: expected .*'signed by"),
        (lambda text: text + "\x0b\n", "got '.x0b'"),
        (lambda text: text.replace(END, ""), "does not end with"),
        (lambda text: text.replace(END + "\n", ""), "does not end with"),
        (lambda text: text.replace(BEGIN, BEGIN + " "), "expected '-----BEGIN"),
        (lambda text: text.replace(BEGIN, BEGIN + "\n" + BEGIN), "base64"),
        (lambda text: f"{BEGIN}\n{END}\n", "ends too early"),
        (lambda text: text.replace("U1NIU0lH", "U1NI\tU0lH"), "base64"),
    ],
)
def test_text_that_is_no_armour_is_refused(
    change: object, message: str, keys: dict[str, PrivateKey]
) -> None:
    with pytest.raises(SnapshotError, match=message):
        parse(change(sign(MESSAGE, keys["ed25519"])))  # type: ignore[operator]


# --- the bytes inside ---


def fields(signer: PrivateKey, **changes: bytes) -> bytes:
    """The body of a signature over `MESSAGE`, with fields of one's own."""
    hashed = put_string(b"n") + put_string(b"") + put_string(b"sha512")
    hashed += put_string(hashlib.sha512(MESSAGE).digest())
    algorithm, value = signer.sign(b"SSHSIG" + hashed)
    parts = {
        "magic": b"SSHSIG",
        "version": b"\0\0\0\1",
        "key": put_string(signer.public.blob),
        "namespace": put_string(b"n"),
        "reserved": put_string(b""),
        "hash": put_string(b"sha512"),
        "signature": put_string(put_string(algorithm.encode()) + put_string(value)),
        "end": b"",
    }
    return b"".join((parts | changes).values())


def test_a_body_made_by_hand_is_accepted(keys: dict[str, PrivateKey]) -> None:
    (signature,) = parse(armour(fields(keys["ed25519"])))
    verify(MESSAGE, signature, "n")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"magic": b"SSHSIH"}, "must begin with SSHSIG"),
        ({"version": b"\0\0\0\2"}, "version 2; this synthgym reads 1"),
        ({"version": b"\0\0\0\0"}, "version 0; this synthgym reads 1"),
        ({"key": put_string(b"")}, "a public key ends too early"),
        ({"key": b"\xff\xff\xff\xff"}, "ends too early"),
        ({"namespace": put_string(b"")}, "has namespace ''"),
        ({"namespace": put_string(b"a b")}, "has namespace 'a b'"),
        ({"namespace": put_string(b"a\0")}, "has namespace"),
        ({"reserved": put_string(b"x")}, "reserved field"),
        ({"hash": put_string(b"sha1")}, "has hash 'sha1', not sha512 or sha256"),
        ({"hash": put_string(b"\xff")}, "has hash"),
        ({"end": b"\0"}, "1 bytes too many at its end"),
        ({"signature": put_string(b"")}, "ends too early"),
        ({"signature": put_string(put_string(b"") + put_string(b""))}, "has algorithm ''"),
        (
            {"signature": put_string(put_string(b"ssh-ed25519") + put_string(bytes(64)) + b"\0")},
            "1 bytes too many at its end",
        ),
    ],
)
def test_a_body_that_is_not_strictly_one_is_refused(
    changes: dict[str, bytes], message: str, keys: dict[str, PrivateKey]
) -> None:
    with pytest.raises(SnapshotError, match=message):
        parse(armour(fields(keys["ed25519"], **changes)))


@pytest.mark.parametrize(
    ("kind", "algorithm", "value"),
    [
        ("ed25519", b"ssh-ed25519", b""),
        ("ed25519", b"ssh-ed25519", bytes(63)),
        ("ed25519", b"rsa-sha2-512", bytes(64)),
        ("rsa-2048", b"ssh-rsa", bytes(256)),
        ("rsa-2048", b"rsa-sha2-512", bytes(255)),
        ("ecdsa-256", b"ecdsa-sha2-nistp384", put_string(b"\1") * 2),
        ("ecdsa-256", b"ecdsa-sha2-nistp256", put_string(b"\1")),
        ("ecdsa-256", b"ecdsa-sha2-nistp256", put_string(b"\1") * 3),
        ("ecdsa-256", b"ecdsa-sha2-nistp256", put_string(b"\0") * 2),
        ("ecdsa-256", b"ecdsa-sha2-nistp256", put_string(b"\0\1") * 2),
        ("ecdsa-256", b"ecdsa-sha2-nistp256", put_string(b"\x7f" * 900) * 2),
    ],
)
def test_a_signature_of_another_form_verifies_nothing(
    kind: str, algorithm: bytes, value: bytes, keys: dict[str, PrivateKey]
) -> None:
    inner = put_string(put_string(algorithm) + put_string(value))
    (signature,) = parse(armour(fields(keys[kind], signature=inner)))
    with pytest.raises(TrustError):
        verify(MESSAGE, signature, "n")


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_may_follow_on_a_true_signature(kind: str, keys: dict[str, PrivateKey]) -> None:
    (true,) = parse(armour(fields(keys[kind])))
    verify(MESSAGE, true, "n")
    for more in (b"\0", put_string(b"\1")):
        inner = put_string(put_string(true.algorithm.encode()) + put_string(true.value + more))
        (signature,) = parse(armour(fields(keys[kind], signature=inner)))
        with pytest.raises(TrustError):
            verify(MESSAGE, signature, "n")


def test_a_key_on_a_security_key_is_read_but_not_verified(keys: dict[str, PrivateKey]) -> None:
    kind = b"sk-ssh-ed25519@openssh.com"
    key = put_string(put_string(kind) + put_string(bytes(32)) + put_string(b"ssh:"))
    inner = put_string(put_string(kind) + put_string(bytes(64)) + b"\1\0\0\0\7")
    (signature,) = parse(armour(fields(keys["ed25519"], key=key, signature=inner)))
    assert not signature.key.is_supported
    with pytest.raises(TrustError, match=r"'sk-ssh-ed25519@openssh.com' cannot be verified here"):
        verify(MESSAGE, signature, "n")


@pytest.mark.parametrize("point", [b"", b"\2" + bytes(32), b"\4" + bytes(64), b"\4" + bytes(63)])
def test_a_key_that_is_no_point_of_its_curve_verifies_nothing(
    point: bytes, keys: dict[str, PrivateKey]
) -> None:
    parts = (b"ecdsa-sha2-nistp256", b"nistp256", point)
    key = put_string(b"".join(map(put_string, parts)))
    inner = put_string(put_string(parts[0]) + put_string(put_string(b"\1") * 2))
    (signature,) = parse(armour(fields(keys["ed25519"], key=key, signature=inner)))
    with pytest.raises(TrustError, match="cannot be read"):
        verify(MESSAGE, signature, "n")


@pytest.mark.parametrize("namespace", ["", "a b", "\u00e9", "a\n", "x" * 129])
def test_a_namespace_is_one_word(namespace: str, keys: dict[str, PrivateKey]) -> None:
    with pytest.raises(ConfigError, match="a namespace must be 1 to 128"):
        sign(MESSAGE, keys["ed25519"], namespace)


def test_the_secret_signature_bytes_are_not_printed(keys: dict[str, PrivateKey]) -> None:
    (signature,) = parse(sign(MESSAGE, keys["ed25519"]))
    assert isinstance(signature, Signature)
    assert "value" not in repr(signature)


# --- whatever may come ---


@given(st.text())
def test_arbitrary_text_is_no_signature(text: str) -> None:
    try:
        assert parse(text) == []
    except SnapshotError:
        return
    assert not text.strip("\r\n")


@given(st.binary(max_size=300), st.booleans())
def test_an_armour_around_arbitrary_bytes_is_refused(data: bytes, prefixed: bool) -> None:
    with pytest.raises(SnapshotError):
        parse(armour(b"SSHSIG\0\0\0\1" * prefixed + data))


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_a_changed_byte_is_an_error_of_ours(
    kind: str, data: st.DataObject, bodies: dict[str, bytes]
) -> None:
    original = bodies[kind]
    at = data.draw(st.integers(0, len(original) - 1))
    flipped = bytes([original[at] ^ data.draw(st.integers(1, 255))])
    with pytest.raises(SnapshotError):  # TrustError is one
        verify_all(armour(original[:at] + flipped + original[at + 1 :]))


@given(data=st.data())
def test_a_piece_cut_out_or_put_in_is_an_error_of_ours(
    data: st.DataObject, bodies: dict[str, bytes]
) -> None:
    original = bodies["rsa-2048"]
    start = data.draw(st.integers(0, len(original)))
    stop = data.draw(st.integers(start, len(original)))
    changed = original[:start] + data.draw(st.binary(max_size=40)) + original[stop:]
    if changed == original:
        return
    with pytest.raises(SnapshotError):
        verify_all(armour(changed))
