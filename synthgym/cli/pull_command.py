"""`synthgym pull`: bring a snapshot to this machine."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TransferSpeedColumn

from synthgym.cli.output import print_json
from synthgym.envs.rendering import printable
from synthgym.errors import ConfigError
from synthgym.publishing import (
    AllowedSigners,
    Pulled,
    Wanted,
    find_lock,
    make_settings,
    parse_reference,
    pull_release,
    read_lock,
    write_lock,
)
from synthgym.publishing.lock import LOCK
from synthgym.publishing.references import PathReference


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The options of `pull`."""

    only: Sequence[str] = ()
    env_ids: Sequence[str] = ()
    remotes: Sequence[str] = ()
    allowed_signers: Path | None = None
    require_signature: bool = False
    offline: bool = False
    allow_yanked: bool = False
    recheck: bool = False
    use_lock: bool = True
    """Take references that a lock of this folder knows as it has them."""
    write_lock: bool = False
    """Look references up anew, and note in the lock what they come to."""


def run(references: Sequence[str], settings: Settings, *, as_json: bool) -> None:
    """Pull snapshots, one after the other; print their folders."""
    if settings.write_lock and not settings.use_lock:
        raise ConfigError("--lock writes the lock that --no-lock leaves alone: give one of them")
    done = [_pull(reference, settings) for reference in references]
    for pulled in done:
        for warning in pulled.warnings:
            typer.echo(f"warning: {printable(warning)}", err=True)
    if settings.write_lock:
        path = find_lock() or Path.cwd() / LOCK
        write_lock(path, [pulled.locked() for pulled in done])
        typer.echo(f"noted in {path}", err=True)
    if as_json:
        print_json([_as_json(pulled) for pulled in done])
        return
    for pulled in done:
        typer.echo(
            f"{pulled.name} {pulled.version} of {printable(pulled.remote)}: {pulled.digest}, "
            f"{_signed(pulled)}",
            err=True,
        )
        typer.echo(str(pulled.path))


def _pull(reference: str, settings: Settings) -> Pulled:
    if settings.remotes and isinstance(parse_reference(reference), PathReference):
        raise ConfigError(
            f"{reference!r} is here, and --remote asks a registry: write a version too, as "
            "games@1.2.0 or 'games>=0', or leave --remote out"
        )
    path = find_lock() if settings.use_lock and not settings.write_lock else None
    signers = settings.allowed_signers
    with _Bar() as bar:
        return pull_release(
            reference,
            make_settings(
                remotes=settings.remotes or None,
                wanted=Wanted(
                    only=settings.only or None,
                    env_ids=settings.env_ids or None,
                    recheck=settings.recheck,
                ),
                allowed_signers=None if signers is None else AllowedSigners.read(signers),
                require_signature=settings.require_signature,
                offline=True if settings.offline else None,
                allow_yanked=settings.allow_yanked,
                lock=None if path is None else read_lock(path),
                progress=bar.show,
            ),
        )


class _Bar:
    """A progress bar on a terminal, and nothing elsewhere."""

    def __init__(self) -> None:
        self._progress = Progress(
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            console=Console(stderr=True),
            transient=True,
            disable=not sys.stderr.isatty(),
        )
        self._task: TaskID | None = None

    def __enter__(self) -> _Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, done: int, total: int) -> None:
        """Draw how far it is."""
        if self._task is None:
            self._task = self._progress.add_task("")
        self._progress.update(self._task, completed=done, total=total)


def _signed(pulled: Pulled) -> str:
    verdict = pulled.verdict
    if verdict.is_good:
        return f"signed by {printable(verdict.principal)} ({verdict.fingerprint})"
    return f"signature: {verdict.status}"


def _as_json(pulled: Pulled) -> dict[str, object]:
    return {
        "path": str(pulled.path),
        "reference": pulled.reference,
        "name": pulled.name,
        "version": pulled.version,
        "digest": pulled.digest,
        "manifest_sha256": pulled.manifest_sha256,
        "remote": pulled.remote,
        "signature": str(pulled.verdict.status),
        "signer": pulled.verdict.fingerprint,
        "warnings": list(pulled.warnings),
    }
