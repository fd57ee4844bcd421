"""Rows of a benchmark: from a file of the user's, or from the Hugging Face Hub. `datasets` is imported here only."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from spade_loop.errors import ConfigError, MissingExtraError, ModelError

Row = Mapping[str, Any]
PROBE_SECONDS: Final = 10.0
"""How long to wait for the Hub's first answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HubData:
    """Where a benchmark lies on the Hub."""

    repository: str
    config: str | None = None
    split: str = "train"
    access: str = ""
    """What has to be done before it may be fetched; empty for what is free."""

    @property
    def page(self) -> str:
        """Its address."""
        return f"https://huggingface.co/datasets/{self.repository}"


def rows_of(data: Path | None, hub: HubData) -> list[Row]:
    """The rows of a file (JSON lines or CSV), or those of the Hub without one.

    `ConfigError` names the file and line that cannot be read. `ModelError` says what to fetch, and from where, when
    the Hub cannot be reached or does not give it; `MissingExtraError` comes without the package.
    """
    rows = list(_file_rows(data)) if data is not None else _hub_rows(hub)
    if not rows:
        raise ConfigError(f"{data or hub.page} has no rows")
    return rows


def field_of(row: Row, number: int, *names: str) -> str:
    """The text of a row under the first of these names that it has; `ConfigError` says which were expected."""
    for name in names:
        value = row.get(name)
        if isinstance(value, str | int) and str(value).strip():
            return str(value).strip()
    raise ConfigError(
        f"row {number} of the data: expected a text under {' or '.join(map(repr, names))}, it has {', '.join(row)}"
    )


def digest_of(parts: object) -> str:
    """Eight hexadecimal digits that stand for the texts of a benchmark: other data make another version of a suite."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:8]


def _file_rows(path: Path) -> Iterator[Row]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--data {path} cannot be read: {error}") from error
    if path.suffix.lower() == ".csv":
        yield from csv.DictReader(text.splitlines(keepends=True))
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ConfigError(f"--data {path}, line {number}: not JSON: {error}") from error
        if not isinstance(row, dict):
            raise ConfigError(
                f"--data {path}, line {number}: expected a JSON object, got {line[:60]!r}"
            )
        yield row


def _hub_rows(hub: HubData) -> list[Row]:
    try:
        import datasets
    except ImportError as error:
        raise MissingExtraError(
            "data from the Hub need the package datasets: pip install 'synthgym[eval]', or give --data FILE"
        ) from error
    try:
        with _cache_alone_where_unreachable(hub):
            loaded = datasets.load_dataset(hub.repository, hub.config, split=hub.split)
    except (OSError, ValueError, RuntimeError) as error:
        first = hub.access or "check the network and the login (`hf auth login`)"
        said = " ".join(str(error).split())[:300]
        raise ModelError(
            f"{hub.page} cannot be fetched: {first}; or fetch it elsewhere and give --data FILE (JSON lines or CSV). "
            f"What came: {said}"
        ) from error
    return [dict(row) for row in loaded]


@contextmanager
def _cache_alone_where_unreachable(hub: HubData) -> Iterator[None]:
    """Without a network the cache alone is asked, instead of half a minute of retries that print."""
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    constants = huggingface_hub.constants
    before = constants.HF_HUB_OFFLINE
    # The Hub's HTTP library is not always the same one; its root exception is what the Hub's own derives from.
    unreachable: tuple[type[BaseException], ...] = (OSError, *HfHubHTTPError.__bases__)
    try:
        huggingface_hub.HfApi().dataset_info(hub.repository, timeout=PROBE_SECONDS)
    except (HfHubHTTPError, OfflineModeIsEnabled, ValueError):
        pass  # it answered, or is not to be asked: loading will say what is wrong
    except unreachable:
        constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
