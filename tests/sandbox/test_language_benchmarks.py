"""The benchmarks of the language layer run, count and compare; how fast it is is not a test's business."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = """
import abc
from typing import Optional
from gem.utils import seeding
class Env(abc.ABC):
    @abc.abstractmethod
    def step(self, action): ...
    def reset(self, seed: Optional[int] = None):
        if seed is not None: seeding.set_seed(seed)
    def sample_random_action(self): raise NotImplementedError
"""
GAME = """
import random
from gem.core import Env
from gem.utils.constants import LanguageGameReward
class GuessEnv(Env):
    def reset(self, seed=None):
        super().reset(seed)
        self._number = random.randint(0, 99)
        return f"guess {self._number % 7}", {}
    def step(self, action):
        self._number += random.randint(0, 9)
        return self._number, LanguageGameReward.success_reward, self._number > 150, False, {"action": action}
"""


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", f"benchmarks/{script}", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    files = {
        "core.py": CORE,
        "utils/constants.py": "class LanguageGameReward:\n    success_reward = 1.0\n",
        "envs/game_env/guess.py": GAME,
        "envs/game_env/files.py": "from gem.core import Env\nclass A(Env):\n    def f(self): return open('x')\n",
        "envs/game_env/refused.py": "from gem.core import Env\nclass A(Env):\n    async def f(self): pass\n",
        "envs/game_env/needs.py": "import numpy\nfrom gem.core import Env\nclass A(Env): pass\n",
        "envs/game_env/clock.py": GAME.replace(
            "random.randint(0, 9)", "id(object()) % 2 + hash(action)"
        )
        .replace("import random", "import random\nimport time")
        .replace("self._number % 7", "time.perf_counter()"),
        "envs/game_env/differs.py": GAME.replace("import random", "import decimal, random").replace(
            "self._number += ", "decimal.getcontext().prec = 9\n        self._number += "
        ),
        "envs/game_env/no_environment.py": "x = 1\n",
    }
    for name, text in files.items():
        path = tmp_path / "gem" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_files_are_counted_by_what_became_of_them_and_run_in_both_ways(site: Path) -> None:
    done = run(
        "compatibility", "--packages", "gem_llm", "--site-packages", str(site), "--run", "--seeds", "2"
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    row = next(line.split() for line in done.stdout.splitlines() if line.split()[:1] == ["gem_llm"])
    assert row == ["gem_llm", "6", "5", "4", "80.0", "%", "3", "60.0", "%"]
    assert "1  open()" in done.stdout
    assert "1  async def is not available to environments" in done.stdout
    assert "gem_llm, run: 2 comparable, 1 identical" in done.stdout
    assert "gem/envs/game_env/differs.py: plain" in done.stdout
    assert "Context objects are read-only" in done.stdout
    for reason in ("imports numpy", "refused by the policy", "not reproducible in plain Python"):
        assert f"1: {reason}" in done.stdout


def test_a_package_that_is_not_installed_is_named(tmp_path: Path) -> None:
    done = run("compatibility", "--packages", "gem_llm", "--site-packages", str(tmp_path))
    assert done.returncode == 2
    assert "gem_llm: not installed" in done.stderr


def test_the_cost_of_the_guards_is_printed_for_every_bundled_environment() -> None:
    done = run("guard_cost.py", "--rounds", "1", "--episodes", "1", "--goal", "1000")
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[2:-1]]
    assert [row[0] for row in rows[:-1]] == sorted(
        f"{folder.name}-v0" for folder in (ROOT / "registry" / "envs").iterdir()
    )
    assert all(float(row[3]) > 0 and float(row[6]) > 0 for row in rows)
    assert "steps and resets over all" in done.stdout


def test_a_ratio_above_the_goal_is_a_failure() -> None:
    assert (
        run("guard_cost.py", "--rounds", "1", "--episodes", "1", "--goal", "0.01").returncode == 1
    )
