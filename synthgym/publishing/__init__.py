"""Publishing: snapshots on their way to a registry and back, signed, pinned and checked on arrival."""

from synthgym.publishing.cache import Cache, check_own
from synthgym.publishing.fetching import Wanted
from synthgym.publishing.hub import OnHub, publish_to_hub
from synthgym.publishing.index import Index, Release, Yank
from synthgym.publishing.locating import locate
from synthgym.publishing.lock import Lock, Locked, find_lock, read_lock, write_lock
from synthgym.publishing.publish import Published, Publishing, publish, yank
from synthgym.publishing.pull import Pulled, Settings, make_settings, pull, pull_release
from synthgym.publishing.references import Reference, parse_reference
from synthgym.publishing.trust import AllowedSigners

__all__ = [
    "AllowedSigners",
    "Cache",
    "Index",
    "Lock",
    "Locked",
    "OnHub",
    "Published",
    "Publishing",
    "Pulled",
    "Reference",
    "Release",
    "Settings",
    "Wanted",
    "Yank",
    "check_own",
    "find_lock",
    "locate",
    "make_settings",
    "parse_reference",
    "publish",
    "publish_to_hub",
    "pull",
    "pull_release",
    "read_lock",
    "write_lock",
    "yank",
]
