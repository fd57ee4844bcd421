from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = ("torch", "faiss", "sentence_transformers", "transformers", "trl", "typer", "rich")


def run(code: str, *options: str) -> str:
    """What `code` prints in a fresh interpreter, in the repository."""
    command = [sys.executable, "-W", "error", *options, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_synthgym_imports_nothing_heavy() -> None:
    loaded = run("import synthgym, sys; print(' '.join(sys.modules))").split()
    assert not {name.partition(".")[0] for name in loaded} & set(HEAVY)
    assert "synthgym.memory" not in loaded


def test_importing_synthgym_starts_no_process_and_no_thread() -> None:
    code = (
        "import synthgym, threading, pathlib, os\n"
        "children = pathlib.Path(f'/proc/self/task/{os.getpid()}/children')\n"
        "print(threading.active_count(), children.read_text() if children.exists() else '')"
    )
    assert run(code) == "1"


def test_public_names_are_all_there_and_lazy_ones_come_when_asked_for() -> None:
    code = "import synthgym; print(all(hasattr(synthgym, name) for name in synthgym.__all__))"
    assert run(code) == "True"


@pytest.mark.parametrize("layout", ["missing", "broken"])
def test_importing_works_without_a_readable_bundled_snapshot(layout: str, tmp_path: Path) -> None:
    if layout == "broken":
        (tmp_path / "manifest.json").write_text("{")
    code = (
        "import warnings, pathlib\n"
        f"root = pathlib.Path({str(tmp_path)!r})\n"
        "import synthgym.registration as registration\n"
        "registration.bundled_root = lambda: root\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    print(registration.register_bundled(), len(caught))"
    )
    assert run(code) == f"[] {int(layout == 'broken')}"
