"""What protects a worker, tried with code that the language layer would never let through."""

from __future__ import annotations

import importlib
import os
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from locked import run_child, run_locked

import synthgym
from synthgym.sandbox import Layer, Pool, kernel
from synthgym.sandbox.bootstrap import BOOTSTRAP, ENVIRONMENT, zygote_command
from synthgym.sandbox.isolation import Confinement, IsolationReport, lock_down, report
from synthgym.sandbox.process import Zygote

# The package has a function of this name.
isolation_module = importlib.import_module("synthgym.sandbox.isolation")
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


BOUNDS = ("memory", "own-descriptors", "descriptors", "no-new-privileges")


@pytest.mark.parametrize(
    ("on", "level"),
    [
        ((*BOUNDS, "seccomp"), "full"),
        ((*BOUNDS, "seccomp", "landlock"), "full"),
        ((*BOUNDS, "landlock", "not-root", "processes"), "partial"),
        *(((*BOUNDS[:i], *BOUNDS[i + 1 :], "seccomp", "landlock"), "partial") for i in range(4)),
        (("seccomp",), "partial"),
        (("landlock",), "partial"),
        (BOUNDS, "reduced"),
        (("descriptors",), "reduced"),
        (("memory", "core-files"), "none"),
        ((), "none"),
    ],
)
def test_the_level_follows_from_the_layers(on: tuple[str, ...], level: str) -> None:
    names = {*BOUNDS, "seccomp", "landlock", "core-files", "not-root", "processes"}
    layers = [Layer(name, name in on) for name in sorted(names)]
    assert report(layers).level == level


def test_what_landlock_leaves_open_is_why_it_cannot_stand_in_for_seccomp(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.touch(mode=0o600)

    def without_seccomp(channel: socket.socket) -> str:
        kernel.forbid_syscalls = unavailable
        os.geteuid = os.getuid = lambda: 1  # type: ignore[assignment]  # stays the owner of the file
        lock_down(channel.fileno(), Confinement(64, os.getppid()))
        victim.chmod(0o644)
        return "changed"

    if sys.platform != "linux":
        pytest.skip("layers of the Linux kernel")
    assert run_child(without_seccomp) == "changed"
    assert victim.stat().st_mode & 0o777 == 0o644


def unavailable() -> str:
    raise OSError("not on this machine")


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
    outcome = run_locked(lambda: f"SUCCEEDED: {ATTEMPTS[name]()}")
    assert outcome.startswith(("PermissionError", "OSError", "ModuleNotFoundError")), outcome


ELSEWHERE = """
import os, socket, sys
sys.path += {path!r}
import synthgym.sandbox
isolation = sys.modules["synthgym.sandbox.isolation"]
isolation.LINUX = False
sys.platform = "darwin"
ours, theirs = socket.socketpair()
if os.fork():
    theirs.close()
    sys.stdout.buffer.write(ours.recv(1 << 16, socket.MSG_WAITALL))
    os.wait()
else:
    layers = isolation.lock_down(theirs.fileno(), isolation.Confinement(64, os.getppid()))
    found = isolation.report(layers)
    lines = [found.level, *(f"{{l.name}}|{{l.ok}}|{{l.detail}}" for l in layers)]
    theirs.sendall(os.linesep.join(lines).encode())
    os._exit(0)
"""


def test_a_system_that_is_not_linux_reports_every_layer_and_is_reduced(
    found: IsolationReport,
) -> None:
    code = ELSEWHERE.format(path=[str(Path(synthgym.__file__).parents[1])])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    level, *lines = done.stdout.splitlines()
    layers = {name: (ok == "True", detail) for name, ok, detail in (x.split("|") for x in lines)}
    assert level == "reduced"
    assert list(layers) == [layer.name for layer in found.layers]
    on = {name for name, (ok, _) in layers.items() if ok}
    assert {"own-descriptors", "core-files", "file-size", "cpu-time", "descriptors"} <= on
    for name in ("memory", "private-memory", "hidden", "dies-with-parent", "landlock", "seccomp"):
        assert layers[name] == (False, "OSError: [Errno 95] only Linux has it, this is darwin")


def test_a_limit_that_is_accepted_and_not_enforced_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.platform != "linux":
        pytest.skip("only Linux sets a limit on memory")
    monkeypatch.setattr(isolation_module, "_limit", lambda _which, _value: None)
    for limit in (isolation_module._limit_memory, isolation_module._limit_private_memory):
        with pytest.raises(OSError, match="not enforced"):
            limit(64)


def test_a_limit_that_is_accepted_and_not_there_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "setrlimit", lambda _which, _values: None)
    with pytest.raises(OSError, match="is not there"):
        isolation_module._limit(resource.RLIMIT_CPU, 12_345)


def test_a_limit_never_asks_for_more_than_there_is() -> None:
    def lower_then_limit(_channel: socket.socket) -> str:
        resource.setrlimit(resource.RLIMIT_CPU, (100, 100))
        isolation_module._limit(resource.RLIMIT_CPU, 12_345)
        return str(resource.getrlimit(resource.RLIMIT_CPU))

    assert run_child(lower_then_limit) == "(100, 100)"


def test_every_descriptor_but_the_channel_is_closed_however_high() -> None:
    def close_all(channel: socket.socket) -> str:
        high = os.dup2(channel.fileno(), 1000)
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))  # below a descriptor that is open
        isolation_module._close_all_but(channel.fileno())
        still = [fd for fd in range(2000) if isolation_module._is_open(fd)]
        targets = {os.fstat(fd).st_rdev for fd in (0, 1, 2)}
        null = Path(os.devnull).stat().st_rdev
        return str((still == [0, 1, 2, channel.fileno()], targets == {null}, high, str(Path.cwd())))

    assert run_child(close_all) == "(True, True, 1000, '/')"


@pytest.mark.parametrize("channel", [0, 2])
def test_a_standard_stream_cannot_be_the_channel(channel: int) -> None:
    with pytest.raises(ValueError, match="cannot be the channel"):
        isolation_module._close_all_but(channel)


def test_root_that_cannot_change_its_user_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object) -> None:
        raise PermissionError(1, "not in this namespace")

    monkeypatch.setattr(os, "getuid", lambda: 0)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "setgroups", refuse)
    with pytest.raises(PermissionError, match="not in this namespace"):
        isolation_module._drop_root()
    monkeypatch.setattr(isolation_module, "_limit", lambda _which, _value: None)
    with pytest.raises(OSError, match="does not bind root"):
        isolation_module._limit_processes()


@linux
def test_a_worker_whose_parent_ended_before_the_kernel_was_told_ends_itself() -> None:
    def orphan(channel: socket.socket) -> str:
        lock_down(channel.fileno(), Confinement(64, os.getppid() + 1))
        return "went on"

    assert run_child(orphan) == ""


def test_a_change_of_user_that_can_be_taken_back_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("setgroups", "setgid", "setuid"):
        monkeypatch.setattr(os, name, lambda _value: None)
    with pytest.raises(OSError, match="can be taken back"):
        isolation_module._become(2_000_000_001)


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


@pytest.fixture
def worker() -> Iterator[int]:
    """Pid of a worker that is locked down."""
    ours, theirs = socket.socketpair()
    with Zygote() as zygote, ours:
        with theirs:
            pid = zygote.spawn(theirs, 64, zygote.board.take())
        (size,) = struct.unpack("!I", ours.recv(4, socket.MSG_WAITALL))
        ours.recv(size, socket.MSG_WAITALL)  # Ready: it is locked down now
        yield pid
        assert zygote.kill(pid) == signal.SIGKILL


@linux
def test_a_worker_runs_as_a_user_of_its_own_without_capabilities(worker: int) -> None:
    lines = Path(f"/proc/{worker}/status").read_text().splitlines()
    status = dict(line.split(":\t", 1) for line in lines)
    assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0
    assert status["NoNewPrivs"] == "1"
    assert status["Threads"] == "1"
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    for kind in ("Uid", "Gid"):
        assert "0" not in status[kind].split("\t")
        assert len(set(status[kind].split("\t"))) == 1
    assert status["Groups"].split() == []


@linux
def test_the_limits_of_a_worker_are_seen_from_outside(worker: int) -> None:
    rows = re.findall(
        r"^Max (.+?)\s{2,}(\w+)\s+(\w+)",
        Path(f"/proc/{worker}/limits").read_text(),
        re.MULTILINE,
    )
    limits = {name: soft for name, soft, hard in rows if soft == hard}
    for name in ("core file size", "file size", "processes", "open files"):
        assert limits[name] == "0", name
    assert int(limits["cpu time"]) == isolation_module.CPU_SECONDS
    for name in ("data size", "address space"):
        assert 64 << 20 < int(limits[name]) < 1 << 30, name


@linux
@pytest.mark.parametrize("name", ["environ", "maps", "mem", "fd"])
def test_a_worker_is_hidden_from_its_own_user(name: str, worker: int) -> None:
    if os.geteuid() == 0:
        owner = Path(f"/proc/{worker}/environ").stat().st_uid
        assert owner == 0  # not the worker's user: who is not dumpable belongs to root
        pytest.skip("root sees everything")
    with pytest.raises(PermissionError):
        _look(Path(f"/proc/{worker}/{name}"))


def _look(path: Path) -> object:
    return list(path.iterdir()) if path.is_dir() else path.read_bytes()
