"""SSH keys for tests, and the `ssh-keygen` of this machine."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

KEYGEN = shutil.which("ssh-keygen")
needs_keygen = pytest.mark.skipif(KEYGEN is None, reason="needs ssh-keygen")

GENERATORS: dict[str, Callable[[], Any]] = {
    "ed25519": ed25519.Ed25519PrivateKey.generate,
    "ecdsa-256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "ecdsa-384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "ecdsa-521": lambda: ec.generate_private_key(ec.SECP521R1()),
    "rsa-2048": lambda: rsa.generate_private_key(65537, 2048),
}
KINDS = sorted(GENERATORS)


def write_key(path: Path, handle: Any) -> Path:
    """Write a private key as OpenSSH does, for its owner alone."""
    path.touch(mode=0o600)
    path.write_bytes(handle.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    return path


def keygen(*words: object, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run `ssh-keygen`; whether it succeeded is for the caller to say."""
    assert KEYGEN is not None
    command = [KEYGEN, *map(str, words)]
    return subprocess.run(command, input=stdin, capture_output=True, check=False, timeout=60)
