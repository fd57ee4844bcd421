"""What the user has set: remotes, and whether the network may be used.

SYNTHGYM_REMOTES    URLs with spaces between them; instead of `remotes` of the file
SYNTHGYM_OFFLINE    1: what is in the cache, and nothing else
~/.config/synthgym/config.toml      remotes = ["https://host/registry", "s3://bucket/registry"]
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from synthgym.errors import ConfigError
from synthgym.ids import did_you_mean

_KEYS: Final = ("remotes",)
_YES: Final = ("1", "true", "yes", "on")
_NO: Final = ("", "0", "false", "no", "off")


def config_path(environment: Mapping[str, str] | None = None) -> Path:
    """`$XDG_CONFIG_HOME/synthgym/config.toml`, or the one under `~/.config`."""
    environment = os.environ if environment is None else environment
    base = environment.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "synthgym" / "config.toml"


def configured_remotes(environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """URLs or folders of the remotes, in the order in which they are asked.

    `ConfigError` names the file and the key that is wrong.
    """
    environment = os.environ if environment is None else environment
    named = environment.get("SYNTHGYM_REMOTES")
    if named is not None:
        return tuple(named.split())
    path = config_path(environment)
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ()
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    for key in raw:
        if key not in _KEYS:
            raise ConfigError(f"{path}: unknown key {key!r}{did_you_mean(key, _KEYS)}")
    remotes = raw.get("remotes", [])
    if not isinstance(remotes, list) or not all(isinstance(url, str) for url in remotes):
        raise ConfigError(f"{path}: remotes must be a list of URLs, got {remotes!r}")
    return tuple(remotes)


def is_offline(environment: Mapping[str, str] | None = None) -> bool:
    """Whether SYNTHGYM_OFFLINE forbids the network; `ConfigError` for a value that says neither."""
    environment = os.environ if environment is None else environment
    value = environment.get("SYNTHGYM_OFFLINE", "").strip().lower()
    if value not in (*_YES, *_NO):
        raise ConfigError(f"SYNTHGYM_OFFLINE must be 1 or 0, got {value!r}")
    return value in _YES
