"""SSH keys: their bytes, their fingerprints, and what they sign and verify.

The bytes are those of RFC 4253, 5656 and 8709. Elliptic curves, RSA and the reading of private keys
are the work of the package `cryptography`, which is imported here only and only when a key is used.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
import stat
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from synthgym.errors import ConfigError, MissingExtraError, SnapshotError, TrustError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.hashes import HashAlgorithm

    Handle: TypeAlias = Ed25519PrivateKey | EllipticCurvePrivateKey | RSAPrivateKey

MAX_KEY_BYTES: Final = 4096
"""Of a public key: RSA of 16384 bits, the most that OpenSSH takes, has some 2,100."""
MIN_RSA_BITS: Final = 2048
_MAX_KEY_FILE: Final = 64 * 1024
_RSA: Final = "ssh-rsa"
_ED25519: Final = "ssh-ed25519"
_HASH_BITS: Final = {
    "ecdsa-sha2-nistp256": 256,
    "ecdsa-sha2-nistp384": 384,
    "ecdsa-sha2-nistp521": 512,
    "rsa-sha2-256": 256,
    "rsa-sha2-512": 512,
}
"""Length of the SHA-2 hash inside a signature, by its algorithm; Ed25519 has its own."""
ALGORITHMS: Final = {
    _ED25519: (_ED25519,),
    _RSA: ("rsa-sha2-512", "rsa-sha2-256"),
    **{name: (name,) for name in _HASH_BITS if name.startswith("ecdsa-")},
}
"""The algorithms of signatures by type of key, the one that we sign with first. No SHA-1."""
_TYPE: Final = re.compile(r"[a-z0-9@.-]{1,64}", re.ASCII)


class WireReader:
    """SSH's encoding, read strictly: `SnapshotError` for lengths that point outside."""

    def __init__(self, data: bytes, what: str) -> None:
        self._data = data
        self._what = what
        self._at = 0

    def take(self, count: int) -> bytes:
        """Return the next `count` bytes."""
        end = self._at + count
        if end > len(self._data):
            raise SnapshotError(f"{self._what} ends too early: {count} bytes promised")
        piece = self._data[self._at : end]
        self._at = end
        return piece

    def uint32(self) -> int:
        """Return the next number of four bytes."""
        return int.from_bytes(self.take(4), "big")

    def string(self) -> bytes:
        """Return the next bytes that have their length in front."""
        return self.take(self.uint32())

    def natural(self) -> int:
        """Return the next number of any length; `SnapshotError` unless positive and minimal."""
        data = self.string()
        value = int.from_bytes(data, "big", signed=True)
        if value <= 0 or data != natural_bytes(value):
            raise SnapshotError(f"{self._what} has a number that is not positive and minimal")
        return value

    def rest(self) -> bytes:
        """Return everything that is left."""
        return self.take(len(self._data) - self._at)

    def end(self) -> None:
        """Raise `SnapshotError` when anything is left."""
        left = len(self._data) - self._at
        if left:
            raise SnapshotError(f"{self._what} has {left} bytes too many at its end")


def put_string(data: bytes) -> bytes:
    """Return `data` with its length in front."""
    return struct.pack(">I", len(data)) + data


def natural_bytes(value: int) -> bytes:
    """Return a positive number in two's complement, as short as it goes."""
    return value.to_bytes(value.bit_length() // 8 + 1, "big")


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key as SSH writes it, of a type that we know or not; equal keys have equal bytes."""

    blob: bytes = field(repr=False)
    type: str = field(init=False)
    """For example `ssh-ed25519`."""

    def __post_init__(self) -> None:
        if len(self.blob) > MAX_KEY_BYTES:
            raise SnapshotError(f"a public key of {len(self.blob)} bytes; at most {MAX_KEY_BYTES}")
        kind = WireReader(self.blob, "a public key").string().decode("latin-1")
        if _TYPE.fullmatch(kind) is None:
            raise SnapshotError(f"a public key has type {kind[:80]!r}")
        object.__setattr__(self, "type", kind)

    @classmethod
    def from_text(cls, kind: str, encoded: str) -> PublicKey:
        """Read the two words of a `.pub` file; `SnapshotError` when they are no key."""
        key = cls(decode_base64(encoded, "a public key"))
        if key.type != kind:
            raise SnapshotError(f"a public key says that it is {kind!r}, its bytes say {key.type}")
        return key

    @property
    def text(self) -> str:
        """The two words of a `.pub` file: type and base64."""
        return f"{self.type} {base64.b64encode(self.blob).decode()}"

    @property
    def fingerprint(self) -> str:
        """`SHA256:<base64>`, as `ssh-keygen -l` prints it."""
        digest = base64.b64encode(hashlib.sha256(self.blob).digest()).decode()
        return "SHA256:" + digest.rstrip("=")

    @property
    def is_supported(self) -> bool:
        """Whether signatures of such keys can be verified here."""
        return self.type in ALGORITHMS


@dataclass(frozen=True, slots=True)
class PrivateKey:
    """A private key that was loaded; what it is made of stays out of its `repr`."""

    public: PublicKey
    handle: Handle = field(repr=False, compare=False)
    """The key of the package `cryptography`."""

    def sign(self, data: bytes) -> tuple[str, bytes]:
        """Return (algorithm, signature), the latter as SSH encodes it."""
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, utils

        algorithm = ALGORITHMS[self.public.type][0]
        if isinstance(self.handle, ed25519.Ed25519PrivateKey):
            return algorithm, self.handle.sign(data)
        hashed = _hash(algorithm)
        if isinstance(self.handle, ec.EllipticCurvePrivateKey):
            pair = utils.decode_dss_signature(self.handle.sign(data, ec.ECDSA(hashed)))
            return algorithm, b"".join(put_string(natural_bytes(value)) for value in pair)
        return algorithm, self.handle.sign(data, padding.PKCS1v15(), hashed)


def verify_bytes(key: PublicKey, algorithm: str, value: bytes, data: bytes) -> None:
    """Return when `value` is the signature of `data` by `key`; `TrustError` says why it is not."""
    if algorithm not in ALGORITHMS.get(key.type, ()):
        raise TrustError(
            f"a signature {algorithm!r} by a key {key.type!r} cannot be verified here; expected a "
            f"key of type {', '.join(ALGORITHMS)} (RSA with SHA-2)"
        )
    _need_cryptography()
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils
    from cryptography.hazmat.primitives.serialization import load_ssh_public_key

    try:
        public = load_ssh_public_key(key.text.encode())
        if isinstance(public, ed25519.Ed25519PublicKey):
            public.verify(value, data)
        elif isinstance(public, ec.EllipticCurvePublicKey):
            reader = WireReader(value, "a signature")
            pair = utils.encode_dss_signature(reader.natural(), reader.natural())
            reader.end()
            public.verify(pair, data, ec.ECDSA(_hash(algorithm)))
        elif isinstance(public, rsa.RSAPublicKey):
            if public.key_size < MIN_RSA_BITS:
                raise TrustError(
                    f"an RSA key of {public.key_size} bits is too short: {MIN_RSA_BITS} at least"
                )
            public.verify(value, data, padding.PKCS1v15(), _hash(algorithm))
    except InvalidSignature as error:
        raise TrustError(
            f"the signature by {key.fingerprint} does not belong to these bytes: they were changed "
            "after they were signed, or the signature is of something else"
        ) from error
    # A point of a curve in its short form is NotImplementedError, an empty one was IndexError once.
    except (
        ValueError,
        IndexError,
        NotImplementedError,
        UnsupportedAlgorithm,
        SnapshotError,
    ) as error:
        raise TrustError(f"the signature by {key.fingerprint} cannot be read: {error}") from error


def load_private_key(
    path: Path, passphrase: bytes | Callable[[], bytes] | None = None
) -> PrivateKey:
    """Return the private key of an OpenSSH file, as `ssh-keygen` makes it.

    A passphrase that is a function is called only if the key is encrypted; one that is not needed is
    ignored. As with `ssh`, a file of ours that others may read is refused. `ConfigError` says what is
    wrong and what to do, `MissingExtraError` that the extra `sign` is not installed.
    """
    _need_cryptography()
    data = _read_private(path)
    try:
        return _decoded(data, None)
    except TypeError:  # how `cryptography` says that there is a passphrase
        secret = passphrase() if callable(passphrase) else passphrase
    except ValueError as error:
        raise ConfigError(f"{path} is no OpenSSH private key that we can use: {error}") from error
    if not secret:
        raise ConfigError(f"{path} is encrypted: give its passphrase")
    from cryptography.exceptions import InvalidTag

    try:
        return _decoded(data, secret)
    except (ValueError, TypeError, InvalidTag) as error:
        raise ConfigError(
            f"{path} cannot be decrypted: the passphrase is wrong, or the file is damaged"
        ) from error


def _decoded(data: bytes, passphrase: bytes | None) -> PrivateKey:
    """Return the key; `TypeError` when a passphrase is missing, `ValueError` for what is no key."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        PublicFormat,
        load_ssh_private_key,
    )

    try:
        handle = load_ssh_private_key(data, passphrase)
    except UnsupportedAlgorithm as error:
        if "bcrypt" in str(error):
            raise MissingExtraError(
                "an encrypted key needs the package bcrypt: pip install 'synthgym[sign]'"
            ) from error
        raise ValueError(str(error)) from error
    if not isinstance(
        handle, ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
    ):
        raise ValueError(f"keys of type {type(handle).__name__} are not supported")  # noqa: TRY004
    if isinstance(handle, rsa.RSAPrivateKey) and handle.key_size < MIN_RSA_BITS:
        raise ValueError(f"RSA of {handle.key_size} bits is too short, {MIN_RSA_BITS} at least")
    line = handle.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    return PrivateKey(PublicKey.from_text(*line.split(" ")[:2]), handle)


def _read_private(path: Path) -> bytes:
    """Return the bytes of a key file that nobody else can read."""
    try:
        with path.open("rb") as file:
            about = os.fstat(file.fileno())
            data = file.read(_MAX_KEY_FILE + 1)
    except OSError as error:
        raise ConfigError(f"cannot read the private key {path}: {error.strerror}") from error
    if data.split(b" ")[0].decode("latin-1") in ALGORITHMS:
        private = str(path).removesuffix(".pub")
        raise ConfigError(f"{path} is a public key; expected the private one, as in {private}")
    if about.st_uid == os.getuid() and stat.S_IMODE(about.st_mode) & 0o077:
        raise ConfigError(
            f"others can read the private key {path} (mode {stat.S_IMODE(about.st_mode):04o}), so "
            f"it is not used: chmod 600 {path}"
        )
    if len(data) > _MAX_KEY_FILE:
        raise ConfigError(f"{path} is no private key: it is larger than {_MAX_KEY_FILE} bytes")
    if b"-----BEGIN OPENSSH PRIVATE KEY-----" not in data:
        raise ConfigError(
            f"{path} is not in the format of OpenSSH: `ssh-keygen -p -f {path}` writes a key anew "
            "in it, `ssh-keygen -t ed25519` makes one"
        )
    return data


def decode_base64(text: str, what: str) -> bytes:
    """Decode base64 of one spelling; `SnapshotError` for any other, however lenient decoders are."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise SnapshotError(f"{what} is not base64: {error}") from error
    if base64.b64encode(data).decode() != text:
        raise SnapshotError(f"{what} is not base64 as it should be spelled")
    return data


def _hash(algorithm: str) -> HashAlgorithm:
    from cryptography.hazmat.primitives import hashes

    return {256: hashes.SHA256(), 384: hashes.SHA384(), 512: hashes.SHA512()}[_HASH_BITS[algorithm]]


def _need_cryptography() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            "signatures need the package cryptography: pip install 'synthgym[sign]'"
        ) from error
