"""OpenSSH's signatures of files (SSHSIG), as `ssh-keygen -Y sign` writes them.

    "SSHSIG"  version  public key  namespace  reserved  hash  signature

in base64 between two lines of dashes. What is signed is not the message but

    "SSHSIG"  namespace  reserved  hash  hash of the message

so a signature made for another purpose, that is in another namespace, is of no use here.
"""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass, field
from typing import Final

from synthgym.errors import ConfigError, SnapshotError, TrustError
from synthgym.publishing.ssh_keys import (
    ALGORITHMS,
    PrivateKey,
    PublicKey,
    WireReader,
    decode_base64,
    put_string,
    verify_bytes,
)

SNAPSHOT_NAMESPACE: Final = "synthgym-snapshot"
MAX_SIGNATURES: Final = 16
"""In one file."""
MAX_ARMOUR: Final = 16 * 1024
"""Characters of one signature; RSA of 16384 bits has some 5,900."""
MAX_ARMOURS: Final = MAX_SIGNATURES * MAX_ARMOUR

_MAGIC: Final = b"SSHSIG"
_VERSION: Final = 1
_HASH: Final = "sha512"
_HASHES: Final = ("sha512", "sha256")
_BEGIN: Final = "-----BEGIN SSH SIGNATURE-----"
_END: Final = "-----END SSH SIGNATURE-----"
_WIDTH: Final = 70
_NAMESPACE: Final = re.compile(r"[!-~]{1,128}", re.ASCII)
_ALGORITHM: Final = re.compile(r"[a-z0-9@.-]{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """A signature whose form is right; whether it is true only `verify` says."""

    key: PublicKey
    namespace: str
    hash: str
    """`sha512` or `sha256`: what the message was hashed with."""
    algorithm: str
    value: bytes = field(repr=False)
    """As SSH encodes it."""


def sign(message: bytes, key: PrivateKey, namespace: str = SNAPSHOT_NAMESPACE) -> str:
    """Return the armoured signature of a message, hashed with SHA-512."""
    if _NAMESPACE.fullmatch(namespace) is None:
        raise ConfigError(
            f"a namespace must be 1 to 128 printable ASCII characters without spaces, "
            f"got {namespace!r}"
        )
    algorithm, value = key.sign(_signed_bytes(message, namespace, _HASH))
    signature = put_string(algorithm.encode()) + put_string(value)
    fields = (key.public.blob, namespace.encode(), b"", _HASH.encode(), signature)
    body = _MAGIC + _VERSION.to_bytes(4, "big") + b"".join(map(put_string, fields))
    text = base64.b64encode(body).decode()
    lines = [text[at : at + _WIDTH] for at in range(0, len(text), _WIDTH)]
    return "\n".join((_BEGIN, *lines, _END, ""))


def parse(armours: str) -> list[Signature]:
    """Return the signatures of a file, in its order; none for a file that is empty.

    `SnapshotError` for anything else between them, and for more than may be. Keys of types that we
    do not know are read, too: only `verify` refuses them.
    """
    if len(armours) > MAX_ARMOURS:
        raise SnapshotError(f"signatures of {len(armours)} characters; at most {MAX_ARMOURS}")
    found: list[Signature] = []
    lines: list[str] | None = None
    for number, line in enumerate(armours.split("\n"), 1):
        text = line.removesuffix("\r")
        if lines is not None and text == _END:
            found.append(_signature("".join(lines)))
            lines = None
        elif lines is not None:
            lines.append(text)
        elif text == _BEGIN:
            lines = []
        elif text:
            raise SnapshotError(
                f"line {number} of the signatures: expected {_BEGIN!r}, got {text[:80]!r}"
            )
        if len(found) > MAX_SIGNATURES:
            raise SnapshotError(f"more than {MAX_SIGNATURES} signatures")
    if lines is not None:
        raise SnapshotError(f"the last signature does not end with {_END!r}")
    return found


def verify(message: bytes, signature: Signature, namespace: str = SNAPSHOT_NAMESPACE) -> None:
    """Return when the signature is of this message for this purpose; `TrustError` says why not.

    It says nothing of who holds the key: that is `check_signatures`.
    """
    if signature.namespace != namespace:
        raise TrustError(
            f"the signature by {signature.key.fingerprint} was made for {signature.namespace!r}, "
            f"expected one for {namespace!r}"
        )
    data = _signed_bytes(message, namespace, signature.hash)
    verify_bytes(signature.key, signature.algorithm, signature.value, data)


def _signed_bytes(message: bytes, namespace: str, hash_name: str) -> bytes:
    hashed = hashlib.new(hash_name, message).digest()
    parts = (namespace.encode(), b"", hash_name.encode(), hashed)
    return _MAGIC + b"".join(map(put_string, parts))


def _signature(encoded: str) -> Signature:
    if len(encoded) > MAX_ARMOUR:
        raise SnapshotError(f"a signature of {len(encoded)} characters; at most {MAX_ARMOUR}")
    reader = WireReader(decode_base64(encoded, "a signature"), "a signature")
    if reader.take(len(_MAGIC)) != _MAGIC:
        raise SnapshotError(f"a signature must begin with {_MAGIC.decode()}")
    version = reader.uint32()
    if version != _VERSION:
        raise SnapshotError(f"a signature of version {version}; this synthgym reads {_VERSION}")
    key = PublicKey(reader.string())
    namespace = _text(reader.string(), _NAMESPACE, "namespace")
    if reader.string():
        # ssh-keygen skips the field and signs it as empty: whatever stands there is not vouched for.
        raise SnapshotError("a signature has bytes in its reserved field")
    hash_name = reader.string().decode("latin-1")
    if hash_name not in _HASHES:
        raise SnapshotError(f"a signature has hash {hash_name[:80]!r}, not {' or '.join(_HASHES)}")
    inner = WireReader(reader.string(), "a signature")
    reader.end()
    algorithm = _text(inner.string(), _ALGORITHM, "algorithm")
    value = inner.string()
    if key.type in ALGORITHMS:  # others, like those of security keys, may have more fields
        inner.end()
    return Signature(key=key, namespace=namespace, hash=hash_name, algorithm=algorithm, value=value)


def _text(data: bytes, pattern: re.Pattern[str], what: str) -> str:
    text = data.decode("latin-1")
    if pattern.fullmatch(text) is None:
        raise SnapshotError(f"a signature has {what} {text[:80]!r}")
    return text
