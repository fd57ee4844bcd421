"""Kill builders, mergers, publishers and pullers at any moment, and look at what they leave.

    python benchmarks/crashes.py --kills 200

Each trial forks a process that builds (merges, publishes, pulls) and ends it with SIGKILL after a part of
the time that it takes undisturbed; the moments are spread evenly and drawn within their share. After every
kill the folder or registry must hold the old state or the new one, whole; a view in the cache must hold
every file; and the next attempt must finish. `--writers` publishers, and writers of figures, at once must
lose nothing. Exit code 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from synthgym.publishing.cache import Cache
from synthgym.publishing.chain import newest
from synthgym.publishing.publish import publish
from synthgym.publishing.pull import make_settings, pull_release
from synthgym.publishing.remotes import open_remote
from synthgym.registry import (
    Snapshot,
    build_bundled,
    bundled_root,
    write_metrics,
    write_snapshot,
)
from synthgym.registry.algebra import merge
from synthgym.sandbox import Pool
from synthgym.spec import EnvRecord, SynthEnvSpec


def write_games(folder: Path, version: str, environments: int, layout: str) -> Path:
    """A snapshot whose files differ from version to version."""
    specs = []
    for number in range(environments):
        name = f"Env{number}"
        source = f'"""Rules {number} of {version}."""\n\n\nclass {name}Env:\n    max_turns = 9\n'
        record = EnvRecord(source=source, entry=f"{name}Env", max_turns=9)
        told = {"title": name, "skills": ("logical-deduction",), "license": "MIT"}
        specs.append(SynthEnvSpec(record=record, name=name, version=0, **told))
    write_snapshot(folder, specs, name="games", version=version, layout=layout)
    return folder


def forked(work: Callable[[], object]) -> int:
    """Start a process that does some work; its id. It exits with 1 when the work raises."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    except BaseException:  # noqa: BLE001 -- the child must not go on as a copy of its parent
        traceback.print_exc()
    finally:
        os._exit(code)


def finish(pid: int) -> float:
    """Wait for a process that must succeed; how long that took in seconds."""
    start = time.perf_counter()
    _, status = os.waitpid(pid, 0)
    if status != 0:
        raise RuntimeError(f"a process that was left alone ended with status {status}")
    return time.perf_counter() - start


def kill_after(work: Callable[[], object], seconds: float) -> bool:
    """Kill a process after a while; whether that came before its end."""
    pid = forked(work)
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    if os.WIFEXITED(status) and status != 0:
        raise RuntimeError("the process failed before it was killed")
    return os.WIFSIGNALED(status)


def moments(kills: int, seconds: float, rng: random.Random) -> list[float]:
    """Times to kill at: one drawn from each of as many equal parts of `seconds`."""
    return [(number + rng.random()) * seconds / kills for number in range(kills)]


def look(remote: Path, cache: Path) -> str:
    """Version that a reader gets, every file of it checked."""
    pulled = pull_release("games", make_settings(remotes=[remote], cache=Cache(cache)))
    problems = Snapshot.open(pulled.path).verify()
    if problems:
        raise RuntimeError("\n".join(problems))
    return pulled.version


def publish_kills(place: Path, kills: int, layout: str, rng: random.Random) -> Counter[str]:
    """Kill publishers of a second release."""
    old = write_games(place / "old", "1.0.0", 12, layout)
    new = write_games(place / "new", "1.1.0", 12, layout)
    base = place / "base"
    publish(old, base)
    trial = place / "trial"
    shutil.copytree(base, trial)
    usual = finish(forked(lambda: publish(new, trial)))
    seen: Counter[str] = Counter()
    for number, moment in enumerate(moments(kills, usual, rng)):
        shutil.rmtree(trial)
        shutil.copytree(base, trial)
        os.environ["SYNTHGYM_STATE"] = str(place / f"state-{number}")
        was_killed = kill_after(lambda: publish(new, trial), moment)
        version = look(trial, place / f"cache-{number}")
        seen["killed" if was_killed else "finished first"] += 1
        seen[f"then {version}"] += 1
        publish(new, trial)
        if look(trial, place / f"cache-{number}") != "1.1.0":
            raise RuntimeError("the next attempt did not publish the release")
        shutil.rmtree(place / f"cache-{number}")
    return seen


def pull_kills(place: Path, kills: int, layout: str, rng: random.Random) -> Counter[str]:
    """Kill pullers, and look at the views that are left."""
    remote = place / "remote"
    publish(write_games(place / "games", "1.0.0", 12, layout), remote)

    def work(cache: Path) -> None:
        pull_release("games", make_settings(remotes=[remote], cache=Cache(cache)))

    usual = finish(forked(lambda: work(place / "usual")))
    seen: Counter[str] = Counter()
    for number, moment in enumerate(moments(kills, usual, rng)):
        cache = place / f"cache-{number}"
        was_killed = kill_after(lambda cache=cache: work(cache), moment)
        seen["killed" if was_killed else "finished first"] += 1
        for manifest in cache.glob("snapshots/*/*/manifest.json"):
            problems = Snapshot.open(manifest.parent).verify()
            if problems:
                raise RuntimeError("a view that is not whole:\n" + "\n".join(problems))
            seen["then a whole view"] += 1
        look(remote, cache)
        shutil.rmtree(cache)
    return seen


def build_kills(place: Path, kills: int, layout: str, rng: random.Random) -> Counter[str]:  # noqa: ARG001
    """Kill builds of a registry of which one card has changed. The layout is that of registries."""
    registry, names = place / "registry", ("DryDock", "LedgerAudit", "SignalBox")
    for name in names:
        shutil.copytree(bundled_root() / "envs" / name, registry / "envs" / name)
    card = registry / "envs" / "DryDock" / "v0" / "card.json"
    told = json.loads(card.read_text())

    def work() -> None:
        build_bundled(registry)

    seen: Counter[str] = Counter()
    with Pool(sources_per_worker=4) as pool:
        usual = finish(forked(work))
        for number, moment in enumerate(moments(kills, usual, rng)):
            old = build_bundled(registry, pool=pool)
            card.write_text(json.dumps(told | {"title": f"Dry dock {number}"}))
            was_killed = kill_after(work, moment)
            now = Snapshot.open(registry)
            seen["killed" if was_killed else "finished first"] += 1
            seen["then the old one" if now.digest == old.digest else "then the new one"] += 1
            problems = [text for text in now.verify() if "card.json" not in text]
            if problems:
                raise RuntimeError("\n".join(problems))
            if build_bundled(registry, pool=pool).verify():
                raise RuntimeError("the next build is not whole")
    return seen


def merge_kills(place: Path, kills: int, layout: str, rng: random.Random) -> Counter[str]:
    """Kill merges into a place where nothing was, and filters that replace nothing."""
    parts = [
        Snapshot.open(write_games(place / version, version, 12, layout))
        for version in ("1.0.0", "1.1.0")
    ]
    target = place / "all"

    def work() -> None:
        merge(target, parts, name="all", version="1.0.0", on_conflict="renumber", layout=layout)

    usual = finish(forked(work))
    seen: Counter[str] = Counter()
    for moment in moments(kills, usual, rng):
        shutil.rmtree(target, ignore_errors=True)
        was_killed = kill_after(work, moment)
        seen["killed" if was_killed else "finished first"] += 1
        if target.exists():
            seen["then whole"] += 1
        else:
            seen["then nothing"] += 1
            work()
        if Snapshot.open(target).verify():
            raise RuntimeError("a merge that is not whole")
    return seen


def many_notes(place: Path, writers: int, notes: int) -> Counter[str]:
    """Let processes note figures in one snapshot at the same time, and count what it holds."""
    snapshot = Snapshot.open(write_games(place / "games", "1.0.0", 4, "folder"))
    digests = snapshot.digests()

    def work(writer: int) -> None:
        for number in range(notes):
            figures = {f"writer {writer} note {number}": number}
            write_metrics(snapshot.path, {digests[number % len(digests)]: figures})

    for pid in [forked(lambda writer=writer: work(writer)) for writer in range(writers)]:
        finish(pid)
    now = Snapshot.open(snapshot.path)
    held = sum(len(now.spec(digest).metrics) for digest in digests)
    if held != writers * notes or now.verify():
        raise RuntimeError(f"{writers * notes} figures were noted, the snapshot holds {held}")
    return Counter({"figures": held})


def many_writers(place: Path, writers: int, releases: int) -> Counter[str]:
    """Let publishers add releases at the same time, and count what the index holds."""
    remote = place / "remote"
    names = [f"{writer}.{minor}" for writer in range(writers) for minor in range(releases)]
    for version in names:
        write_games(place / version, version, 1, "folder")

    def work(writer: int) -> None:
        for minor in range(releases):
            publish(place / f"{writer}.{minor}", remote)

    for pid in [forked(lambda writer=writer: work(writer)) for writer in range(writers)]:
        finish(pid)
    link = newest(open_remote(remote))
    held = [] if link is None else [release.version for release in link.index.names["games"]]
    if sorted(held) != sorted(names):
        raise RuntimeError(f"{len(names)} releases were published, the index holds {len(held)}")
    return Counter({"releases": len(held), "serial": 0 if link is None else link.index.serial})


def main(arguments: list[str] | None = None) -> int:
    """Run what is asked for and print counts as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--releases", type=int, default=10)
    parser.add_argument("--layout", choices=("folder", "shards"), default="folder")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    rng = random.Random(options.seed)
    found: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory(prefix="synthgym-crashes-") as folder:
        root = Path(folder)
        os.environ |= {
            "SYNTHGYM_CACHE": str(root / "cache"),
            "SYNTHGYM_STATE": str(root / "state"),
            "XDG_CONFIG_HOME": str(root / "config"),
        }
        trials = {
            "build": lambda at: build_kills(at, options.kills, options.layout, rng),
            "merge": lambda at: merge_kills(at, options.kills, options.layout, rng),
            "notes": lambda at: many_notes(at, options.writers, options.releases),
            "publish": lambda at: publish_kills(at, options.kills, options.layout, rng),
            "pull": lambda at: pull_kills(at, options.kills, options.layout, rng),
            "writers": lambda at: many_writers(at, options.writers, options.releases),
        }
        for name, trial in trials.items():
            (root / name).mkdir()
            start = time.perf_counter()
            found[name] = trial(root / name)
            print(f"{name}: {time.perf_counter() - start:.1f} s", file=sys.stderr)
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
