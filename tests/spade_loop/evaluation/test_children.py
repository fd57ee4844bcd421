"""Children of suites: they answer, they end, and they cannot do what they must not."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from confined import needs_confinement

from spade_loop.errors import ModelError, ResourceError
from spade_loop.evaluation.suites import children
from spade_loop.evaluation.suites.children import (
    Child,
    ChildError,
    ConfinementError,
    Crew,
    Limits,
    check_confinement,
    run_confined,
    scratch,
)
from spade_loop.evaluation.suites.confinement import seccomp_program

pytestmark = needs_confinement

ECHO = """
import json, sys, time
for line in sys.stdin:
    request = json.loads(line)
    if request["do"] == "sleep":
        time.sleep(60)
    if request["do"] == "end":
        sys.exit("enough")
    if request["do"] == "babble":
        print("not JSON", flush=True)
        continue
    print(json.dumps({"error": "no"} if request["do"] == "fail" else request), flush=True)
"""


@pytest.fixture
def echo(tmp_path: Path) -> Child:
    script = tmp_path / "echo.py"
    script.write_text(ECHO)
    return Child((str(script),), Limits(seconds=20.0, reads=True), Crew())


def run(code: str, **limits: int | float) -> children.Run:
    with scratch("test-children-") as root:
        (root / "work").mkdir()
        (root / "work" / "p.py").write_text(code)
        asked = Limits(**{"seconds": 20.0} | limits)  # type: ignore[arg-type]
        return run_confined(
            (str(root / "work" / "p.py"),), root / "work", stdin="in", limits=asked, crew=Crew()
        )


def test_a_child_answers_in_order(echo: Child) -> None:
    with echo:
        large = "x" * 3_000_000
        assert echo.ask({"do": "say", "text": large}) == {"do": "say", "text": large}
        assert echo.ask({"do": "say", "text": "b"})["text"] == "b"


@pytest.mark.parametrize(
    ("request_", "message"),
    [("fail", "^no$"), ("end", "ended with status 1; it said: enough"), ("babble", "broke off")],
)
def test_a_child_that_does_not_answer_is_an_error(echo: Child, request_: str, message: str) -> None:
    with echo, pytest.raises(ChildError, match=message) as caught:
        echo.ask({"do": request_})
    assert not caught.value.slow


def test_a_child_that_is_too_slow_is_ended(tmp_path: Path) -> None:
    script = tmp_path / "echo.py"
    script.write_text(ECHO)
    child = Child((str(script),), Limits(seconds=1.0, reads=True), Crew())
    with child, pytest.raises(ChildError, match="no answer within 1 s") as caught:
        child.ask({"do": "sleep"})
    assert caught.value.slow
    assert child._process.returncode == -signal.SIGKILL


def test_a_child_and_its_folder_go_together(echo: Child) -> None:
    folder, process = echo._folder, echo._process
    assert folder.is_dir()
    echo.close()
    assert not folder.exists()
    assert process.returncode is not None


def test_a_python_that_is_not_there_is_named() -> None:
    with pytest.raises(ChildError, match="/nowhere/python cannot be started"):
        Child(("-c", ""), Limits(seconds=1.0), Crew(), python="/nowhere/python")


def test_children_of_a_closed_suite_say_nothing_of_the_model(tmp_path: Path) -> None:
    script = tmp_path / "echo.py"
    script.write_text(ECHO)
    crew = Crew()
    with Child((str(script),), Limits(seconds=60.0, reads=True), crew) as child:
        child.ask({"do": "say"})
        threading.Timer(0.2, crew.close).start()
        began = time.monotonic()
        with pytest.raises(ModelError, match="closed"):
            child.ask({"do": "sleep"})
    with pytest.raises(ModelError, match="closed"):
        Child((str(script),), Limits(seconds=60.0, reads=True), crew)
    assert time.monotonic() - began < 20.0


def test_programs_of_a_closed_suite_say_nothing_of_the_model(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    crew = Crew()
    threading.Timer(0.5, crew.close).start()
    with pytest.raises(ModelError, match="closed"):
        run_confined(
            ("-c", "import time; time.sleep(50)"),
            tmp_path / "work",
            stdin="",
            limits=Limits(seconds=60.0),
            crew=crew,
        )


def test_a_lack_of_room_is_not_the_models(tmp_path: Path) -> None:
    with pytest.raises(ResourceError, match="room in"):
        run_confined(
            ("-c", ""),
            tmp_path / "gone" / "work",
            stdin="",
            limits=Limits(seconds=9.0),
            crew=Crew(),
        )


def test_this_machine_can_confine() -> None:
    check_confinement()


def test_a_machine_that_cannot_confine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        children,
        "run_confined",
        lambda *_, **__: children.Run(97, "", "files (Landlock): not there"),
    )
    with pytest.raises(ConfinementError, match=r"Landlock.*5\.13"):
        check_confinement()


@pytest.mark.parametrize(
    "code",
    [
        "import socket; socket.socket()",
        "import socket; socket.socketpair()[0].sendto(b'x', ('127.0.0.1', 9))",
        "import os; os.fork()",
        "import subprocess; subprocess.run(['true'])",
        "import os; os.kill(os.getppid(), 0)",
        "import signal, os; os.kill(1, 0)",
        "open('/tmp/children-mark', 'w')",
        "import os; os.mkdir('../elsewhere')",
        "import os; os.setgroups([])",
        "import time; time.clock_settime(time.CLOCK_REALTIME, time.time())",
        "open('/etc/passwd')",
        "import os; open(f'/proc/{os.getppid()}/environ')",
        "import os; os.listdir('/tmp')",
        "import os; os.listdir('..')",
        "import os; os.chmod('/tmp', 0o1777)",
        "import os; os.utime('/tmp')",
        "import os; os.symlink('/etc', '../link')",
        "import resource, os; resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE)",
    ],
)
def test_what_a_child_must_not_do_is_refused(code: str) -> None:
    done = run(code)
    assert done.status == 1, done
    assert "Error" in done.errors


@pytest.mark.parametrize(
    ("code", "output"),
    [
        ("print(input())", "in\n"),
        ("open('a', 'w').write('b'); print(open('a').read())", "b\n"),
        (
            "import threading as t; x = t.Thread(target=print, args=['c']); x.start(); x.join()",
            "c\n",
        ),
        ("import os; print(sorted(k for k in os.environ if 'KEY' in k))", "[]\n"),
        ("import ssl, sqlite3, decimal, zoneinfo, numpy; print('d')", "d\n"),
        ("open('/dev/null', 'w').write('x'); print(hash('a') == hash('a'))", "True\n"),
    ],
)
def test_what_a_program_needs_is_there(code: str, output: str) -> None:
    done = run(code)
    assert (done.status, done.output) == (0, output), done


def test_nothing_of_the_environment_reaches_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    assert "secret" not in run("import os; print(dict(os.environ))").output


def test_reading_can_be_allowed() -> None:
    assert run("print(len(open('/etc/passwd').read()) > 0)", reads=True).output == "True\n"
    assert "PermissionError" in run("open('/tmp/children-mark', 'w')", reads=True).errors


def test_time_and_memory_are_limited() -> None:
    began = time.monotonic()
    assert run("import time; time.sleep(60)", seconds=1.0).status is None
    assert run("while True: pass", cpu_seconds=1).status in (-signal.SIGKILL, -signal.SIGXCPU)
    assert time.monotonic() - began < 30.0
    assert "MemoryError" in run("bytearray(10**9)", memory_mb=500).errors
    assert "File too large" in run("print('x' * 5_000_000)", file_mb=1).errors


def alive(pid: int) -> bool:
    """Whether a process is there, and no zombie that waits for somebody else to reap it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_child_ends_with_its_parent(tmp_path: Path) -> None:
    script = tmp_path / "sleeper.py"
    script.write_text("import time\nprint('{}', flush=True)\ntime.sleep(600)\n")
    code = (
        "import os\n"
        "from spade_loop.evaluation.suites.children import Child, Crew, Limits\n"
        f"child = Child(({str(script)!r},), Limits(seconds=60.0, reads=True), Crew())\n"
        "child._line()\n"
        "print(child._process.pid, flush=True)\n"
        "os._exit(0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    pid = int(done.stdout)
    deadline = time.monotonic() + 20.0
    while alive(pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_every_jump_of_the_filter_lands_in_it(machine: str) -> None:
    program = seccomp_program(machine)
    lines = [struct.unpack_from("HBBI", program, at) for at in range(0, len(program), 8)]
    for at, (code, if_true, if_false, _) in enumerate(lines):
        if code & 0x07 == 0x05:
            assert at + 1 + max(if_true, if_false) < len(lines)
    assert lines[-1] == (0x06, 0, 0, 0x7FFF0000)


def test_a_machine_without_a_table_is_refused() -> None:
    with pytest.raises(OSError, match="no table of system calls"):
        seccomp_program("vax")
