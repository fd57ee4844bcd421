"""`synthgym snapshot sign`, and what `verify` says of signatures."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import typer

from synthgym.atomic import write_file
from synthgym.cli.entries import check_own
from synthgym.envs.rendering import printable
from synthgym.errors import ConfigError, SnapshotError, TrustError
from synthgym.publishing import AllowedSigners
from synthgym.publishing.ssh_keys import load_private_key
from synthgym.publishing.sshsig import MAX_ARMOURS, parse, sign
from synthgym.publishing.trust import check_signatures
from synthgym.registry import Snapshot
from synthgym.registry.files import read_file
from synthgym.registry.layout import SIGNATURES

UNTRUSTED: Final = 4
"""Exit code of a signature that is missing, unknown or wrong."""


def run(folder: Path, key_file: Path) -> None:
    """Add a signature to the snapshot of a folder. `ConfigError` for a second one by the same key."""
    snapshot = Snapshot.open(folder)
    check_own(folder)
    if not folder.is_dir():
        raise SnapshotError(f"{folder} is packed: unpack it, sign the folder, and pack that")
    if problems := snapshot.verify():
        raise SnapshotError(f"not signed, for it is not what it promises: {problems[0]}")
    key = load_private_key(key_file, lambda: _passphrase(key_file))
    manifest = snapshot.manifest.to_bytes()  # what was checked, whatever lies there by now
    old = signatures(snapshot)
    if any(signature.key == key.public for signature in parse(old)):
        raise ConfigError(
            f"{folder / SIGNATURES} holds a signature by {key.public.fingerprint} already; "
            "remove it first when the manifest has changed since"
        )
    write_file(folder / SIGNATURES, (old + sign(manifest, key)).encode())
    typer.echo(f"{snapshot.name} {snapshot.version} signed: {folder / SIGNATURES}")
    typer.echo(key.public.fingerprint)


def check(snapshot: Snapshot, allowed_signers: Path | None, *, require: bool) -> None:
    """Say what the signatures come to; exit code 4 when one is wrong, or required and not good."""
    allowed = AllowedSigners.read(allowed_signers)
    verdict = check_signatures(
        snapshot.manifest.to_bytes(),
        signatures(snapshot),
        allowed,
        at=datetime.now(UTC),
    )
    if verdict.is_good:
        typer.echo(f"signed by {printable(verdict.principal)} ({verdict.fingerprint})")
        return
    if require or verdict.status == "bad":
        try:
            verdict.require(f"{snapshot.name} {snapshot.version}")
        except TrustError as error:
            typer.echo(printable(f"error: {error}"), err=True)
            raise typer.Exit(UNTRUSTED) from error
    typer.echo(f"signature: {verdict.status}")


def signatures(snapshot: Snapshot) -> str:
    """The signatures beside the manifest; empty when there are none."""
    if SIGNATURES not in set(snapshot.files.paths()):
        return ""
    return read_file(snapshot.files, SIGNATURES, MAX_ARMOURS).decode("ascii", "replace")


def _passphrase(path: Path) -> bytes:
    return str(typer.prompt(f"Passphrase of {path}", hide_input=True, err=True)).encode()
