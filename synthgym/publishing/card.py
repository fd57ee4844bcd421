"""The card of a data set: README.md with the metadata that the Hugging Face Hub reads.

Titles and licenses are strangers' text. In the metadata every value is a JSON string, which is YAML too;
in the page every character that Markdown or HTML could read as anything is escaped.
"""

from __future__ import annotations

import json
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

from synthgym.registry.layout import SHARDS
from synthgym.registry.manifest import Entry, Manifest
from synthgym.registry.snapshot import Snapshot

SHOWN: Final = 20
"""Environments that the page lists."""
_TITLE_CHARACTERS: Final = 120
_TAGS: Final = ("synthgym", "gymnasium", "reinforcement-learning", "synthetic")
_HUB_LICENSES: Final = frozenset(
    {"apache-2.0", "mit", "bsd-2-clause", "bsd-3-clause", "cc0-1.0", "cc-by-4.0", "cc-by-sa-4.0"}
    | {"cc-by-nc-4.0", "isc", "mpl-2.0", "gpl-2.0", "gpl-3.0", "lgpl-3.0", "agpl-3.0", "unlicense"}
)
_SIZES: Final = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
    (100_000_000, "10M<n<100M"),
)
_CONFIGS: Final = {"index": "index.parquet", "envs": "envs/*.parquet", "notes": "notes/*.parquet"}
_ESCAPED: Final = {
    **{ord(mark): f"\\{mark}" for mark in string.punctuation if mark not in ",-"},
    ord("<"): "&lt;",
    ord(">"): "&gt;",
    ord("&"): "&amp;",
}
_AND: Final = re.compile(r"\s+AND\s+")


def dataset_card(snapshot: Snapshot, reference: str) -> str:
    """Return the text of README.md. `reference` is what a reader pulls, for example hf://org/games."""
    manifest = snapshot.manifest
    lines = [
        "---",
        *(f"{key}: {json.dumps(value)}" for key, value in _metadata(manifest).items()),
        "---",
    ]
    return "\n".join([*lines, "", *_page(snapshot, reference), ""])


def harmless(text: str, limit: int = _TITLE_CHARACTERS) -> str:
    """One line that reads as the text and that Markdown and HTML make nothing of."""
    plain = "".join(
        " " if character.isspace() else character
        for character in text
        if character.isspace() or not unicodedata.category(character).startswith("C")
    )
    short = " ".join(plain.split())
    short = short if len(short) <= limit else f"{short[: limit - 1]}…"
    return short.translate(_ESCAPED)


def size_category(environments: int) -> str:
    """The Hub's name for a number of rows."""
    return next((name for most, name in _SIZES if environments < most), "100M<n<1B")


def _metadata(manifest: Manifest) -> dict[str, Any]:
    found: dict[str, Any] = {
        **_license(manifest.license),
        "pretty_name": f"{manifest.name} {manifest.version}",
        "tags": list(_TAGS),
        "task_categories": ["reinforcement-learning"],
        "size_categories": [size_category(manifest.env_count)],
    }
    if manifest.layout != SHARDS:
        return found | {"viewer": False}  # files of people, not tables
    kinds = {ref.kind for ref in manifest.files}
    configs = [
        {"config_name": name, "data_files": [{"split": "train", "path": path}]}
        | ({"default": True} if name == "index" else {})
        for name, path in _CONFIGS.items()
        if name in kinds
    ]
    return found | {"configs": configs}


def _license(expression: str) -> dict[str, Any]:
    """What the Hub knows a license as; any other keeps its own name."""
    parts = [part.strip("() ").lower() for part in _AND.split(expression)]
    parts = [re.sub(r"-(?:only|or-later)$", "", part) for part in parts]
    if all(part in _HUB_LICENSES for part in parts):
        return {"license": parts[0] if len(parts) == 1 else sorted(set(parts))}
    name = re.sub(r"[^a-z0-9.]+", "-", expression.lower()).strip("-") or "unknown"
    return {"license": "other", "license_name": name[:96]}


def _page(snapshot: Snapshot, reference: str) -> Sequence[str]:
    manifest = snapshot.manifest
    entries = list(islice(snapshot, SHOWN))
    skills = Counter(skill for entry in entries for skill in entry.skills)
    more = manifest.env_count - len(entries)
    return [
        f"# {harmless(manifest.name)} {manifest.version}",
        "",
        f"{manifest.env_count} text environments for reinforcement learning, each a real Gymnasium "
        "environment. They are source code that a language model wrote: synthgym runs it in a sandbox, and "
        "nothing else should run it.",
        "",
        "```bash",
        f"synthgym pull {reference}@{manifest.version}",
        "```",
        "",
        f"- Digest: `{manifest.digest}`",
        f"- License: {harmless(manifest.license, 400)}",
        f"- Skills of the first {len(entries)}: {', '.join(harmless(name) for name, _ in skills.most_common(12))}",
        "",
        "| environment | turns | title |",
        "|---|---|---|",
        *(_row(entry) for entry in entries),
        *([f"\nand {more} more."] if more > 0 else []),
    ]


def _row(entry: Entry) -> str:
    return f"| `{entry.env_id}` | {entry.max_turns} | {harmless(entry.title)} |"
