"""Registry: snapshots of environments, written atomically and read with every byte checked."""

from synthgym.registry.annotate import check_writable, write_metrics, write_vectors
from synthgym.registry.build import build_bundled
from synthgym.registry.core import Core, Parent, check_name
from synthgym.registry.layout import FileRef, bundled_root
from synthgym.registry.manifest import Entry, Manifest
from synthgym.registry.snapshot import Snapshot
from synthgym.registry.writing import write_snapshot

__all__ = [
    "Core",
    "Entry",
    "FileRef",
    "Manifest",
    "Parent",
    "Snapshot",
    "build_bundled",
    "bundled_root",
    "check_name",
    "check_writable",
    "write_metrics",
    "write_snapshot",
    "write_vectors",
]
