"""Registry: snapshots of environments, written atomically and read with every byte checked."""

from synthgym.registry.annotate import write_metrics
from synthgym.registry.build import build_bundled
from synthgym.registry.layout import bundled_root
from synthgym.registry.manifest import Entry, Manifest
from synthgym.registry.store import Snapshot, write_snapshot

__all__ = [
    "Entry",
    "Manifest",
    "Snapshot",
    "build_bundled",
    "bundled_root",
    "write_metrics",
    "write_snapshot",
]
