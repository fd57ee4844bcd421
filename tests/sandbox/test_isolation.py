"""What protects a worker, tried with code that the language layer would never let through."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from synthgym.sandbox import Layer, Pool
from synthgym.sandbox.bootstrap import BOOTSTRAP, ENVIRONMENT, zygote_command
from synthgym.sandbox.isolation import Confinement, IsolationReport, lock_down, report
from synthgym.sandbox.process import Zygote

linux = pytest.mark.skipif(sys.platform != "linux", reason="layers of the Linux kernel")


@pytest.fixture(scope="module")
def found() -> IsolationReport:
    with Pool(max_workers=1) as pool:
        return pool.isolation()


def test_a_worker_reports_every_layer(found: IsolationReport) -> None:
    names = [layer.name for layer in found.layers]
    assert len(names) == len(set(names)) >= 7
    assert all(layer.detail for layer in found.layers if not layer.ok)


@linux
def test_the_resource_limits_hold_on_every_linux(found: IsolationReport) -> None:
    on = {layer.name for layer in found.layers if layer.ok}
    assert {"memory", "own-descriptors", "core-files", "descriptors", "no-new-privileges"} <= on
    assert found.level in ("full", "partial", "reduced")


BOUNDS = ("memory", "descriptors", "processes", "not-root", "no-new-privileges")


@pytest.mark.parametrize(
    ("on", "level"),
    [
        ((*BOUNDS, "seccomp"), "full"),
        ((*BOUNDS, "landlock"), "full"),
        (("seccomp", "landlock"), "partial"),
        (("memory", "descriptors"), "reduced"),
        (("descriptors",), "reduced"),
        (("core-files",), "none"),
        ((), "none"),
    ],
)
def test_the_level_follows_from_the_layers(on: tuple[str, ...], level: str) -> None:
    names = {*BOUNDS, "seccomp", "landlock", "core-files"}
    details = {"landlock": "ABI 6"}
    layers = [Layer(name, name in on, details.get(name, "")) for name in sorted(names)]
    assert report(layers).level == level


def test_an_old_landlock_alone_is_not_full() -> None:
    layers = [Layer(name, True, "") for name in BOUNDS]
    assert report([*layers, Layer("landlock", True, "ABI 5")]).level == "partial"


ATTEMPTS = {
    "read a file": lambda: Path("/etc/hostname").read_bytes(),
    "write a file": lambda: Path("/tmp/synthgym-isolation-marker").write_text("x"),
    "list a folder": lambda: list(Path("/").iterdir()),
    "delete a file": lambda: Path("/tmp/synthgym-not-there").unlink(),
    "read the environment": lambda: Path("/proc/self/environ").read_bytes(),
    "open a socket": lambda: socket.socket(),
    "make a pipe": lambda: os.pipe(),
    "fork": lambda: os.fork() or os._exit(0),
    "run a program": lambda: os.execv("/bin/true", ["true"]),
    "signal the parent": lambda: os.kill(os.getppid() or 1, 0),
    "import a module": lambda: __import__("wave"),
}


@linux
@pytest.mark.parametrize("name", ATTEMPTS)
def test_raw_python_in_a_locked_worker_cannot(name: str, found: IsolationReport) -> None:
    if found.level != "full":
        pytest.skip(f"isolation on this machine is {found.level}")
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if not pid:
        _attempt(theirs, name)
    theirs.close()
    with ours:
        outcome = ours.recv(1000)
    os.waitpid(pid, 0)
    assert outcome.startswith((b"PermissionError", b"OSError", b"ModuleNotFoundError")), outcome


def _attempt(channel: socket.socket, name: str) -> None:
    """In a forked child: lock down, try, and report the exception, never to return into pytest."""
    outcome = b"nothing happened"
    try:
        lock_down(channel.fileno(), Confinement(64, os.getppid()))
        ATTEMPTS[name]()
        outcome = b"SUCCEEDED"
    except (OSError, ImportError) as error:
        outcome = f"{type(error).__name__}: {error}".encode()[:900]
    finally:
        channel.sendall(outcome)
        os._exit(0)


def test_the_zygote_holds_none_of_the_parents_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYNTHGYM_TEST_TOKEN", "secret-value")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    with Zygote() as zygote:
        variables = Path(f"/proc/{zygote.pid}/environ").read_bytes()
        status = Path(f"/proc/{zygote.pid}/status").read_text()
        descriptors = list(Path(f"/proc/{zygote.pid}/fd").iterdir())
    assert dict(item.split(b"=", 1) for item in variables.split(b"\0") if item) == {
        name.encode(): value.encode() for name, value in ENVIRONMENT.items()
    }
    assert "Threads:\t1\n" in status
    assert len(descriptors) == 4  # 0 to 2 and the control channel


def test_the_zygote_loads_neither_gymnasium_nor_numpy_nor_torch() -> None:
    loading, _, _ = BOOTSTRAP.rpartition("main(")
    show = loading + "print(*{name.partition('.')[0] for name, module in sys.modules.items()"
    show += " if getattr(module, '__file__', None)})"
    done = subprocess.run(
        zygote_command(0, show),
        env=ENVIRONMENT,
        cwd="/",
        check=True,
        capture_output=True,
        text=True,
    )
    loaded = set(done.stdout.split())
    assert {"msgspec", "synthgym"} <= loaded
    assert not loaded & {"gymnasium", "numpy", "torch", "faiss", "pytest", "site", "typer"}


def test_the_zygote_ends_when_it_is_closed_and_closing_twice_is_fine() -> None:
    zygote = Zygote()
    pid = zygote.pid
    assert zygote.alive
    zygote.close()
    zygote.close()
    assert not zygote.alive
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@linux
def test_a_worker_runs_as_a_user_of_its_own_without_capabilities() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    ours, theirs = socket.socketpair()
    with Zygote() as zygote, ours:
        with theirs:
            pid = zygote.spawn(theirs, 64)
        (size,) = struct.unpack("!I", ours.recv(4, socket.MSG_WAITALL))
        ours.recv(size, socket.MSG_WAITALL)  # Ready: it is locked down now
        status = dict(
            line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        )
        assert zygote.kill(pid) == signal.SIGKILL
    assert "0" not in status["Uid"].split("\t")
    assert int(status["CapEff"], 16) == 0
    assert status["NoNewPrivs"] == "1"
