"""Environment ids and digests: the only place that knows their spelling.

synthgym/LedgerAudit-v0                    for people: (name, version) stands for one digest for ever
synthgym/ledger-audit.3f9a1c2b7d10-v0      pinned to content: slug and the first 12 hex digits of the digest
sha256:<64 hex digits>                     the digest itself
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from synthgym.errors import InvalidIdError
from synthgym.errors import did_you_mean as did_you_mean

NAMESPACE = "synthgym"
_NAME = r"[A-Z][A-Za-z0-9]{0,63}"
_SLUG = r"[a-z0-9]+(?:-[a-z0-9]+)*"
_ENV_ID = re.compile(rf"(?:{NAMESPACE}/)?(?P<name>{_NAME})-v(?P<version>\d{{1,6}})", re.ASCII)
_PINNED_ID = re.compile(
    rf"(?:{NAMESPACE}/)?(?P<slug>{_SLUG})\.(?P<prefix>[0-9a-f]{{12}})-v0", re.ASCII
)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_NAME_ONLY = re.compile(_NAME, re.ASCII)


@dataclass(frozen=True, slots=True)
class EnvId:
    """A human environment id, taken apart."""

    name: str
    version: int

    def __str__(self) -> str:
        return env_id(self.name, self.version)


def env_id(name: str, version: int) -> str:
    """`synthgym/<name>-v<version>`."""
    return f"{NAMESPACE}/{name}-v{version}"


def parse_env_id(text: str) -> EnvId:
    """Take `synthgym/Name-v0` (or `Name-v0`) apart; `InvalidIdError` says what was expected."""
    match = _ENV_ID.fullmatch(text)
    if match is None:
        raise InvalidIdError(
            f"environment id {text!r} is not of the form {NAMESPACE}/<Name>-v<N>, "
            f"for example {NAMESPACE}/LedgerAudit-v0"
        )
    return EnvId(match["name"], int(match["version"]))


def is_name(text: str) -> bool:
    """Whether `text` can be the name part of an id: CamelCase ASCII, at most 64 characters."""
    return _NAME_ONLY.fullmatch(text) is not None


def is_digest(text: str) -> bool:
    """Whether `text` is `sha256:` and 64 lower-case hex digits."""
    return _DIGEST.fullmatch(text) is not None


def check_digest(text: str) -> str:
    """`text` itself when it is a digest; `InvalidIdError` otherwise."""
    if not is_digest(text):
        raise InvalidIdError(f"expected a digest of the form sha256:<64 hex digits>, got {text!r}")
    return text


def slug(name: str) -> str:
    """`LedgerAudit` becomes `ledger-audit`."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name)
    return words.lower()


def pinned_id(name: str, digest: str) -> str:
    """The content-pinned Gymnasium id of an environment."""
    return f"{NAMESPACE}/{slug(name)}.{check_digest(digest).removeprefix('sha256:')[:12]}-v0"


def parse_pinned_id(text: str) -> tuple[str, str] | None:
    """(slug, 12 hex digits) of a pinned id, or None when `text` is not one."""
    match = _PINNED_ID.fullmatch(text)
    return None if match is None else (match["slug"], match["prefix"])
