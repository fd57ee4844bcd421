"""Whom the user trusts: OpenSSH's `allowed_signers` file, and what it makes of signatures.

A line is `principals [options] type base64 [comment]`, as ssh-keygen(1) says under ALLOWED SIGNERS:

    alice@example.com,!bob@*.org,*.org namespaces="synthgym-*",valid-before="20300101Z" ssh-ed25519 AAAA…

A signature does not say when it was made, so `valid-after` and `valid-before` are held against the
time at which it is checked. Certificates are not supported.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, Self

from synthgym.errors import ConfigError, SnapshotError, TrustError
from synthgym.publishing.ssh_keys import PublicKey
from synthgym.publishing.sshsig import SNAPSHOT_NAMESPACE, Signature, parse, verify

_MAX_FILE: Final = 1024 * 1024
_KEY: Final = re.compile(r"([a-z0-9@.-]+)[ \t]+([A-Za-z0-9+/]+={0,2})(?:[ \t].*)?", re.ASCII)
_WORD: Final = re.compile(r'(?:"[^"]*"|[^\s"])+')
_OPTION: Final = re.compile(r'([A-Za-z-]+)(?:="([^"]*)")?(?:,|\Z)', re.ASCII)
_TIME: Final = re.compile(r"(\d{8}|\d{12}|\d{14})(Z?)", re.ASCII)
_TIME_FORMS: Final = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
_OPTIONS: Final = ("namespaces", "valid-after", "valid-before")


class Status(StrEnum):
    """What is to be said of the signatures of a message."""

    UNSIGNED = "unsigned"
    GOOD = "good"
    BAD = "bad"
    """Not of these bytes, not for this purpose, or not readable."""
    EXPIRED = "expired"
    NOT_YET_VALID = "not-yet-valid"
    UNKNOWN_KEY = "unknown-key"
    """A true signature by a key that the user does not trust for this."""
    UNSUPPORTED = "unsupported"
    """By a type of key that cannot be verified here, for example one on a security key."""


_WEIGHT: Final = (
    Status.GOOD,
    Status.BAD,
    Status.EXPIRED,
    Status.NOT_YET_VALID,
    Status.UNKNOWN_KEY,
    Status.UNSUPPORTED,
    Status.UNSIGNED,
)
"""Of many signatures the first of these counts: one good one is enough, and a bad one is said first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the signatures of a message come to."""

    status: Status
    principal: str = ""
    """Who signed: the principals of the line that trusts the key, or the one that was asked for."""
    fingerprint: str = ""
    """Of the key, as `ssh-keygen -l` prints it."""
    detail: str = ""
    """What is wrong and what to do about it, as a sentence; empty when good."""

    @property
    def is_good(self) -> bool:
        """Whether somebody whom the user trusts has signed."""
        return self.status is Status.GOOD

    def require(self, what: str) -> Self:
        """Return the verdict when it is good; `TrustError` otherwise, naming `what` was signed."""
        if not self.is_good:
            raise TrustError(f"{what}: {self.detail}")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedSigner:
    """One line of the file."""

    principals: tuple[str, ...]
    """Patterns with `*` and `?`; those that begin with `!` exclude."""
    key: PublicKey
    namespaces: tuple[str, ...] = ()
    """Patterns as well; empty for every namespace."""
    valid_after: datetime | None = None
    valid_before: datetime | None = None
    """Both inclusive, with a time zone."""

    @classmethod
    def from_line(cls, line: str) -> AllowedSigner:
        """Read a line that is no comment; `ConfigError` says what is wrong with it."""
        word = _WORD.match(line)
        if word is None:
            raise ConfigError("expected principals, options, a type of key and the key in base64")
        rest = line[word.end() :].lstrip(" \t")
        found = _KEY.fullmatch(rest)
        # Options may look like the type of a key, and a key like them: only the bytes decide.
        if found is None or _key(found) is None:
            options = _WORD.match(rest)
            found = _KEY.fullmatch(rest[options.end() :].lstrip(" \t")) if options else None
            given = _options(options[0]) if options and found else {}
        else:
            given = {}
        key = _key(found) if found else None
        if key is None:
            raise ConfigError(
                "expected a type of key and the key in base64, as in the .pub file of the signer"
            )
        signer = cls(
            principals=_patterns(word[0].replace('"', "")),
            key=key,
            namespaces=_patterns(given["namespaces"]) if "namespaces" in given else (),
            valid_after=_time(given.get("valid-after")),
            valid_before=_time(given.get("valid-before")),
        )
        after, before = signer.valid_after, signer.valid_before
        if after and before and after >= before:
            raise ConfigError("valid-after must be before valid-before")
        return signer

    def judge(self, namespace: str, principal: str | None, at: datetime) -> tuple[Status, str]:
        """Return what this line says of a true signature by its key, and the reason."""
        if not _names(self.principals, principal):
            asked = "" if principal is None else f", not of {principal!r}"
            return Status.UNKNOWN_KEY, f"is the key of {','.join(self.principals)}{asked}"
        if self.namespaces and not _matches(self.namespaces, namespace):
            allowed = ",".join(self.namespaces)
            return Status.UNKNOWN_KEY, f"is trusted for {allowed} only, not for {namespace!r}"
        if self.valid_before and at > self.valid_before:
            return Status.EXPIRED, f"is trusted until {_shown(self.valid_before)} only"
        if self.valid_after and at < self.valid_after:
            return Status.NOT_YET_VALID, f"is trusted from {_shown(self.valid_after)} on only"
        return Status.GOOD, ""


@dataclass(frozen=True, slots=True)
class AllowedSigners:
    """Whom the user trusts, and the file that says so."""

    signers: tuple[AllowedSigner, ...]
    path: Path

    @classmethod
    def read(cls, path: Path | None = None) -> AllowedSigners:
        """Read a file, the default one unless given; trust nobody when the default one is missing.

        `ConfigError` names the line that is wrong: a file is taken as a whole or not at all.
        """
        named = path if path is not None else default_path()
        try:
            with named.open("rb") as file:
                data = file.read(_MAX_FILE + 1)
        except FileNotFoundError:
            if path is None and not os.environ.get("SYNTHGYM_ALLOWED_SIGNERS"):
                return cls((), named)
            raise ConfigError(f"there is no file of allowed signers at {named}") from None
        except OSError as error:
            raise ConfigError(f"cannot read {named}: {error.strerror}") from error
        if len(data) > _MAX_FILE:
            raise ConfigError(f"{named} is larger than {_MAX_FILE} bytes")
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise ConfigError(f"{named} is not UTF-8: {error}") from error
        return cls.parse(text, named)

    @classmethod
    def parse(cls, text: str, path: Path) -> AllowedSigners:
        """Read the text of a file; `path` is where it came from, for messages."""
        signers = []
        for number, line in enumerate(text.split("\n"), 1):
            bare = line.strip(" \t\r")
            if not bare or bare.startswith("#"):
                continue
            try:
                signers.append(AllowedSigner.from_line(bare))
            except ConfigError as error:
                raise ConfigError(f"{path}, line {number}: {error}") from error
        return cls(tuple(signers), path)


def default_path() -> Path:
    """Return `~/.config/synthgym/allowed_signers`, or what the environment names instead.

    `SYNTHGYM_ALLOWED_SIGNERS` names the file, `XDG_CONFIG_HOME` the folder above `synthgym`.
    """
    named = os.environ.get("SYNTHGYM_ALLOWED_SIGNERS")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CONFIG_HOME")
    try:
        home = Path(base) if base else Path.home() / ".config"
    except RuntimeError as error:
        raise ConfigError(
            "there is no home folder: name the file of allowed signers in SYNTHGYM_ALLOWED_SIGNERS"
        ) from error
    return home / "synthgym" / "allowed_signers"


def check_signatures(
    message: bytes,
    armours: str,
    allowed: AllowedSigners,
    *,
    at: datetime,
    namespace: str = SNAPSHOT_NAMESPACE,
    principal: str | None = None,
) -> Verdict:
    """Return what the signatures in `armours` say of a message, at the time `at` (with a time zone).

    One good signature is enough. With `principal` it must be that one's. Of several that are not good
    the verdict is on the worst. `MissingExtraError` when there are signatures and the extra `sign` is
    not installed; whatever else is wrong with them is a verdict.
    """
    if at.tzinfo is None:
        raise ConfigError(f"the time of a check needs a time zone, got {at.isoformat()}")
    try:
        signatures = parse(armours)
    except SnapshotError as error:
        return Verdict(status=Status.BAD, detail=f"its signatures cannot be read: {error}")
    if not signatures:
        return Verdict(
            status=Status.UNSIGNED,
            detail="it is not signed: ask its author for signatures, or do not require them",
        )
    verdicts = [
        _verdict(message, signature, allowed, at=at, namespace=namespace, principal=principal)
        for signature in signatures
    ]
    return min(verdicts, key=lambda verdict: _WEIGHT.index(verdict.status))


def _verdict(
    message: bytes,
    signature: Signature,
    allowed: AllowedSigners,
    *,
    at: datetime,
    namespace: str,
    principal: str | None,
) -> Verdict:
    fingerprint = signature.key.fingerprint
    if not signature.key.is_supported:
        return Verdict(
            status=Status.UNSUPPORTED,
            fingerprint=fingerprint,
            detail=f"it is signed by a key of type {signature.key.type}, which cannot be verified "
            "here: ask its author for a signature by an ssh-ed25519 key",
        )
    try:
        verify(message, signature, namespace)
    except TrustError as error:
        return Verdict(status=Status.BAD, fingerprint=fingerprint, detail=str(error))
    lines = [signer for signer in allowed.signers if signer.key == signature.key]
    judged = [(*signer.judge(namespace, principal, at), signer) for signer in lines]
    if not judged:
        return Verdict(
            status=Status.UNKNOWN_KEY,
            fingerprint=fingerprint,
            detail=_how_to_trust(signature, allowed.path, principal),
        )
    status, reason, signer = min(judged, key=lambda item: _WEIGHT.index(item[0]))
    return Verdict(
        status=status,
        principal=principal or ",".join(signer.principals),
        fingerprint=fingerprint,
        detail=reason and f"its signer's key {fingerprint} {reason}; see {allowed.path}",
    )


def _how_to_trust(signature: Signature, path: Path, principal: str | None) -> str:
    who = principal or "AUTHOR"
    line = f'{who} namespaces="{signature.namespace}" {signature.key.text}'
    return (
        f"it is signed by {signature.key.fingerprint}, a key that {path} does not name. If its "
        f"author has told you this fingerprint another way, add this line to that file: {line}"
    )


def _key(found: re.Match[str]) -> PublicKey | None:
    try:
        return PublicKey.from_text(found[1], found[2])
    except SnapshotError:
        return None


def _options(text: str) -> dict[str, str]:
    given: dict[str, str] = {}
    at = 0
    while at < len(text):
        found = _OPTION.match(text, at)
        name = found[1].lower() if found else ""
        if name == "cert-authority":
            raise ConfigError("cert-authority is not supported: name the keys of the signers")
        if found is None or name not in _OPTIONS or found[2] is None:
            expected = ", ".join(f'{option}="…"' for option in _OPTIONS)
            raise ConfigError(f"expected options of {expected}, got {text[at : at + 80]!r}")
        if name in given:
            raise ConfigError(f"the option {name} comes twice")
        given[name] = found[2]
        at = found.end()
    if text.endswith(","):
        raise ConfigError("the options end with a comma")
    return given


def _patterns(text: str) -> tuple[str, ...]:
    patterns = tuple(text.split(","))
    if any(not pattern.removeprefix("!") for pattern in patterns):
        raise ConfigError(f"expected patterns with commas between them, got {text[:80]!r}")
    return patterns


def _names(principals: Iterable[str], principal: str | None) -> bool:
    """Whether principals name the one asked for, or anybody when nobody was asked for."""
    if principal is None:
        return any(not pattern.startswith("!") for pattern in principals)
    return _matches(principals, principal)


def _matches(patterns: Iterable[str], text: str) -> bool:
    """Whether a pattern list of ssh_config(5) matches: some pattern does, and no negated one."""
    hit = False
    for pattern in patterns:
        bare = pattern.removeprefix("!").replace("[", "[[]")  # only * and ? are special
        if fnmatchcase(text, bare):
            if pattern.startswith("!"):
                return False
            hit = True
    return hit


def _time(text: str | None) -> datetime | None:
    """Return a time of the file: in UTC with `Z`, in the zone of this machine without."""
    if text is None:
        return None
    found = _TIME.fullmatch(text)
    try:
        if found:
            time = datetime.strptime(found[1], _TIME_FORMS[len(found[1])])  # noqa: DTZ007
            return time.replace(tzinfo=UTC) if found[2] else time.astimezone()
    except (ValueError, OverflowError, OSError):  # no such day, or before this machine's calendar
        pass
    raise ConfigError(f"expected a time YYYYMMDD[Z] or YYYYMMDDHHMM[SS][Z], got {text[:80]!r}")


def _shown(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
