"""Run by test_redteam_os.py in a process of its own: plays payloads in raw Python, without the language layer.

    redteam_raw_runner.py raw|locked FOLDER payload.py...

`raw` is the positive control: what does a payload do where nothing stands in its way? So that it does
no damage, it runs as a user that owns nothing (when started by root), under small resource limits, for
a short time, and its markers go to FOLDER. `locked` puts the lock-down of a worker between, and nothing
else. Each payload has a process of its own. One line of JSON goes out at the end: what each came to.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import linecache
import os
import random
import resource
import select
import signal
import socket
import sys
import tempfile
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from synthgym.sandbox.isolation import Confinement, lock_down, report

MARKERS = "/tmp/synthgym-redteam"
"""Where payloads leave their markers, unless they are sent elsewhere."""
HANG_SECONDS = 0.5
"""For those that are known to hang."""
SECONDS = 30.0
ADDRESS_SPACE = 1 << 30
NOBODY = 65_534
QUOTA_MB = 256
CHANNEL = 9
SOCKET_ROOM = 1 << 16


PRELOADED = (
    "abc array codecs collections contextlib copy ctypes dataclasses decimal enum fractions functools heapq "
    "inspect io itertools json json.codecs math mmap numpy operator os queue random re resource signal socket "
    "statistics string subprocess sys threading time traceback types typing unicodedata uuid weakref "
    "xml.dom xml.sax.handler _thread _strptime encodings.idna encodings.latin_1"
)
"""Neither a powerless user nor a locked process can read the standard library any more."""


def preload() -> None:
    for name in PRELOADED.split():
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def confine_raw() -> None:
    """Resource limits and a powerless user: raw payloads must not harm the machine that tests them."""
    for which, value in (
        (resource.RLIMIT_AS, ADDRESS_SPACE),
        (resource.RLIMIT_CPU, 20),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 1 << 16),
        (resource.RLIMIT_NPROC, 64),
    ):
        resource.setrlimit(which, (value, value))
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def play(source: str, path: Path) -> str:
    """What a payload comes to in this process, in one or two words."""
    name = path.name
    try:
        module = types.ModuleType("payload")
        module.__file__ = str(path)
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        sys.modules["payload"] = module
        exec(compile(source, name, "exec"), module.__dict__)
        env = module.PayloadEnv()
        for key, probe in PROBES.items():
            if name.startswith(key):
                return probe(env)
        env.reset(seed=0)
        return describe(env.step("go"))
    except BaseException as error:  # noqa: BLE001 - whatever a payload raises is a result here
        return f"raised {type(error).__name__}: {str(error)[:200]}"


def describe(returned: Any) -> str:
    """What `step` returned, seen by what is wrong with it."""
    if type(returned) is not tuple:
        return f"returned {type(returned).__name__}"
    observation, reward, terminated, _, info = returned
    if observation.startswith("PWNED"):
        return f"pwned: {observation[:200]}"
    if type(info) is not dict:
        return f"info {type(info).__name__}"
    faults = [
        (len(observation.encode("utf-8", "replace")) > 1 << 20, "large observation"),
        (type(reward) is not float, f"reward {type(reward).__name__}"),
        (type(terminated) is not bool, f"flag {type(terminated).__name__}"),
        (len(info) > 10_000, "wide info"),
        (any(type(value) not in (str, int) for value in info.values()), "odd info"),
    ]
    found = [text for is_wrong, text in faults if is_wrong]
    return found[0] if found else f"clean: {observation[:200]}"


# --- payloads whose harm shows over several calls ---


def grows(env: Any) -> str:
    env.reset(seed=0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(64):
        env.step("go")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return "grows" if grown > 32 << 10 else "clean"


def reseeds(env: Any) -> str:
    env.reset(seed=0)
    env.step("go")
    drawn = random.random()
    env.step("go")
    return "reseeds" if random.random() == drawn else "clean"


def leaks(env: Any) -> str:
    episodes = []
    for _ in range(2):
        env.reset(seed=0)
        episodes.append(env.step("go")[0])
    return "leaks" if episodes[0] != episodes[1] else "clean"


def pays_early(env: Any) -> str:
    return "pays early" if env.step("go")[1] else "clean"


def pays_late(env: Any) -> str:
    env.reset(seed=0)
    _, _, terminated, _, _ = env.step("go")
    return "pays late" if terminated and env.step("go")[1] else "clean"


PROBES: dict[str, Callable[[Any], str]] = {
    "153": grows,
    "190": reseeds,
    "194": leaks,
    "199": pays_early,
    "200": pays_late,
}


# --- one process a payload ---


def lock(channel: int) -> None:
    """The lock-down of a worker, and nothing else."""
    found = report(lock_down(channel, Confinement(QUOTA_MB, os.getppid())))
    if found.level != "full":
        os.write(channel, f"\nnot locked: {found.level}\n".encode())
        os._exit(0)


def run(path: Path, mode: str, folder: Path, seconds: float) -> str:
    source = path.read_text().replace(MARKERS, str(folder / "marker"))
    ours, theirs = socket.socketpair()
    output = tempfile.TemporaryFile()  # noqa: SIM115 - closed below
    pid = os.fork()
    if not pid:
        try:
            os.setpgid(0, 0)
            ours.close()
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            os.dup2(theirs.fileno(), CHANNEL)
            theirs.close()
            if mode == "locked":
                lock(CHANNEL)
            outcome = play(source, path)
            os.write(CHANNEL, b"\n" + one_line(outcome) + b"\n")
            os._exit(0)
        finally:
            os._exit(1)
    theirs.close()
    with ours:
        sent, in_time = listen(ours, time.monotonic() + seconds)
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    with output:
        output.seek(0)
        printed = output.read()
    if any(folder.iterdir()):
        found = sorted(item.name for item in folder.iterdir())
        empty(folder)
        return f"marker: {found}"
    if b"PWNED" in printed:
        return "output"
    if not in_time:
        return "hang"
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) != signal.SIGKILL:
        return f"died: {signal.Signals(os.WTERMSIG(status)).name}"
    lines = sent.decode("utf-8", "replace").split("\n")
    return lines[-2] if len(lines) > 2 and not lines[-1] else f"ended: {os.WEXITSTATUS(status)}"


def one_line(text: str) -> bytes:
    return " ".join(text.split()).encode("utf-8", "replace")[:500]


def listen(channel: socket.socket, until: float) -> tuple[bytes, bool]:
    """The last bytes that arrive before `until` or the end, and whether the end came first.

    A real parent takes no more than a frame; what a payload floods it with is thrown away here.
    """
    kept = b""
    while (left := until - time.monotonic()) > 0:
        ready, _, _ = select.select([channel], [], [], left)
        if not ready:
            break
        try:
            data = channel.recv(SOCKET_ROOM)
        except OSError:
            return kept, True
        if not data:
            return kept, True
        kept = (kept + data)[-4096:]
    return kept, False


def empty(folder: Path) -> None:
    for item in folder.iterdir():
        if item.is_dir() and not item.is_symlink():
            empty(item)
            item.rmdir()
        else:
            item.unlink()


def main() -> None:
    mode, folder, *paths = sys.argv[1:]
    preload()
    if mode == "raw":
        confine_raw()
    outcomes = {}
    for item in paths:
        path = item.removeprefix("hang:")
        seconds = HANG_SECONDS if item != path else SECONDS
        outcomes[Path(path).name] = run(Path(path), mode, Path(folder), seconds)
    print("\n" + json.dumps(outcomes))


if __name__ == "__main__":
    main()
