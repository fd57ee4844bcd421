"""`synthgym publish` and `synthgym yank`: what a registry says of snapshots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import typer

from synthgym.cli.output import print_json, print_text
from synthgym.errors import ConfigError
from synthgym.ids import did_you_mean
from synthgym.publishing import (
    AllowedSigners,
    Publishing,
    Yank,
    parse_reference,
    publish,
    publish_to_hub,
    yank,
)
from synthgym.publishing.leaks import LeakKind
from synthgym.publishing.publish import UNCLEAR_LICENSES
from synthgym.publishing.references import HubReference
from synthgym.publishing.ssh_keys import load_private_key
from synthgym.publishing.sshsig import sign

_HUB = "hf://"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the options of `publish` and `yank` have in common."""

    sign_key: Path | None = None
    allowed_signers: Path | None = None
    adopt: bool = False
    valid_days: int | None = None
    allow_leaks: Sequence[str] = ()
    allow_licenses: Sequence[str] = ()

    def publishing(self) -> Publishing:
        """The settings as the library has them; `ConfigError` for a name that is not known."""
        licenses = [text.lower() for text in self.allow_licenses]
        _check_known("kind of leak", self.allow_leaks, [str(kind) for kind in LeakKind])
        _check_known("unclear license", licenses, sorted(UNCLEAR_LICENSES - {""}))
        signers = None
        if self.allowed_signers is not None:
            signers = AllowedSigners.read(self.allowed_signers)
        return Publishing(
            sign=None if self.sign_key is None else _signer(self.sign_key),
            allowed_signers=signers,
            adopt=self.adopt,
            allow_leaks=tuple(self.allow_leaks),
            allow_licenses=(*licenses, *([""] if "none" in licenses else [])),
            valid_for=None if self.valid_days is None else timedelta(days=self.valid_days),
        )


def run(place: Path, remote: str, settings: Settings, *, private: bool, as_json: bool) -> None:
    """Publish a snapshot to a registry, or to the Hugging Face Hub."""
    publishing = settings.publishing()
    if remote.startswith(_HUB):
        hub = parse_reference(remote)
        if not isinstance(hub, HubReference) or hub.revision or hub.selection:
            raise ConfigError(f"a repository to publish to is hf://org/name, got {remote!r}")
        there = publish_to_hub(place, hub.repository, publishing, private=private)
        if as_json:
            print_json(asdict(there))
        else:
            print_text(f"hf://{there.repository}@{there.tag} at commit {there.commit}")
            print_text(f"{there.uploaded} files were new there")
        return
    done = publish(place, remote, publishing)
    if as_json:
        print_json(asdict(done))
        return
    what = "" if done.is_new else ", which was there already"
    print_text(f"{done.name} {done.version} in {done.remote}{what}")
    print_text(
        f"{done.digest}, index {done.serial}, {done.uploaded} of {done.files} files were new"
    )


def run_yank(
    remote: str, release: tuple[str, str], reason: str, severity: str, settings: Settings
) -> None:
    """Yank a release, (name, version), for a reason; without a reason the yank is taken back."""
    name, version = release
    yanked = None
    if reason:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        yanked = Yank(at=now, reason=reason, severity=severity)
    serial = yank(remote, name, version, yanked, settings.publishing())
    print_text(f"{name} {version} {'yanked' if yanked else 'not yanked any more'}, index {serial}")


def _signer(path: Path) -> Callable[[bytes], str]:
    def ask() -> bytes:
        return str(typer.prompt(f"Passphrase of {path}", hide_input=True, err=True)).encode()

    key = load_private_key(path, ask)
    return lambda data: sign(data, key)


def _check_known(what: str, given: Sequence[str], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            raise ConfigError(
                f"no {what} is called {name!r}{did_you_mean(name, known)} "
                f"(there are {', '.join(known)})"
            )
