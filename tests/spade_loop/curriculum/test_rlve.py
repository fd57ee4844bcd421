"""Problems of rlve-gym in the sandbox: from a small package of our own, and from the real one where it is there."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spade_loop.chat import ChatFormat
from spade_loop.completers import ScriptedSampler
from spade_loop.config import AgentConfig
from spade_loop.curriculum import RlvePackage, Rung, rungs
from spade_loop.curriculum.rlve import DEFAULT_ENVIRONMENTS, MAX_DIFFICULTY
from spade_loop.episodes import Play, Player
from spade_loop.errors import ConfigError, MissingExtraError
from spade_loop.types import Arm, StopReason
from synthgym import SynthEnv, parse_action
from synthgym.errors import EnvFaultError
from synthgym.sandbox import Pool, check_source

BASE = """
import re
from abc import ABC, abstractmethod
from typing import Dict, Optional, Tuple, Any, Union
import torch
import absent_package

def manual_seed(seed) :
    torch.manual_seed(seed)

class VerifiableEnvironment(ABC) :
    def __init__(self, answer_markers : Optional[Tuple[str, str]] = None) :
        self.seed = self.parameter = None
        self.answer_markers = answer_markers or (r"<answer>", r"</answer>")

    def generator(self, seed : int, parameter : Optional[Dict] = None) -> bool :
        manual_seed(seed)
        return True

    @abstractmethod
    def _generate(self) -> None :
        pass

    def prompt_generator(self) -> str :
        return self._prompt_generate()

    def verifier(self, output : str) -> Dict[str, Union[float, int]] :
        found = re.findall("<answer>(.*?)</answer>", output, re.DOTALL)
        return dict(accuracy = int(bool(found) and self.scorer(found[-1].strip()) >= 1.0))
"""
ENVIRONMENT = """import random
import networkx
from Gym.environment import VerifiableEnvironment

class Route_Length_Environment(VerifiableEnvironment) :
    def _generate(self) -> None :
        if self.parameter["unlucky"] :
            raise ValueError("no route")
        edges = [(i, i + 1, random.randint(1, 9)) for i in range(self.parameter["N"])]
        edges.append((0, self.parameter["N"], 1000))
        G = networkx.DiGraph()
        G.add_weighted_edges_from(edges)
        length, path = networkx.single_source_dijkstra(G, 0, self.parameter["N"])
        self.parameter["edges"], self.parameter["reference_answer"] = edges, length
        assert path == list(range(self.parameter["N"] + 1))

    def _prompt_generate(self) -> str :
        return "How long is the shortest route? {}".format(self.parameter["edges"])

    def scorer(self, answer : str) -> float :
        return float(answer == str(self.parameter["reference_answer"]))
"""
CONTROLLER_BASE = """
from typing import Dict, List
from abc import ABC, abstractmethod

class ParameterController(ABC) :
    def __init__(self) :
        pass
"""
CONTROLLER = """from Gym.parameter_controller import ParameterController
from typing import Dict, List

class Route_Length_ParameterController(ParameterController) :
    def __init__(self, **kwargs) :
        super().__init__(**kwargs)
        self.N = 2

    def update(self) -> None :
        self.N += 3

    def get_parameter_list(self) -> List[Dict] :
        return [dict(N = self.N, unlucky = unlucky) for unlucky in UNLUCKY]
"""


def write_package(root: Path, unlucky: str = "[True, False]") -> RlvePackage:
    """A package in the layout of rlve-gym with one environment, and one that has no controller."""
    files = {
        "environment.py": BASE,
        "parameter_controller.py": CONTROLLER_BASE,
        "environments/__init__.py": (
            "from Gym.environments.route_length import Route_Length_Environment\n"
            "from Gym.environments.lonely import Lonely_Environment\n"
            "identifier2environment = {\n    'Route_Length' : Route_Length_Environment,\n"
            "    'Lonely' : Lonely_Environment,\n}\n"
        ),
        "environments/route_length/environment.py": ENVIRONMENT,
        "parameter_controllers/__init__.py": (
            "from Gym.parameter_controllers.route_length import Route_Length_ParameterController\n"
            "identifier2controller = {'Route_Length' : Route_Length_ParameterController}\n"
        ),
        "parameter_controllers/route_length/parameter_controller.py": (
            CONTROLLER.replace("UNLUCKY", unlucky)
        ),
    }
    for name, text in files.items():
        path = root / "Gym" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return RlvePackage(root / "Gym", "9.9")


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=1) as pool:
        yield pool


def test_a_problem_is_one_question_and_one_answer(tmp_path: Path, pool: Pool) -> None:
    spec = write_package(tmp_path).spec("Route_Length", 1)
    assert not check_source(spec.record.source)
    env = SynthEnv(spec, pool=pool)
    question, _ = env.reset(seed=3)
    assert question.count("(") == 6  # two edges, three more at difficulty 1, and the long one
    assert env.reset(seed=3)[0] == question
    assert env.reset(seed=4)[0] != question
    (answer,) = env.solution()
    action = parse_action(rf"Along the chain it is \boxed{{ {answer} }}.").action
    _, reward, terminated, truncated, info = env.step(action)
    assert (reward, terminated, truncated, info["success"]) == (1.0, True, False, True)
    env.reset(seed=4)
    observation, reward, terminated, _, info = env.step("17")
    assert (reward, terminated, info["success"]) == (0.0, True, False)
    assert answer not in observation
    assert "no hint" in (env.reset(seed=4) and env.hint)
    env.close()


def test_the_player_of_the_loop_plays_a_problem(
    tmp_path: Path, pool: Pool, chat: ChatFormat, tokenizer: Any
) -> None:
    def script(row: int, turn: int, text: str) -> str:
        """Adds up the chain; one of the replies has no box, and the contract grants it a second turn."""
        weights = [int(w) for w in re.findall(r"\(\d+, \d+, (\d+)\)", text)[:-1]]
        return "Let me see." if (row, turn) == (0, 0) else rf"\boxed{{{sum(weights) + (row == 1)}}}"

    spec = write_package(tmp_path).spec("Route_Length", 1)
    sampler = ScriptedSampler(chat, script, tokenizer.eos_token_id)
    player = Player(AgentConfig(max_turns=6, turn_tokens=60, context=8000), pool, hint_level=2)
    plays = [Play(spec, 5, play, Arm.PLAIN) for play in range(3)]
    done = player.play(sampler, plays, stream=[1])
    assert [(t.success, t.episode_return, len(t.turns)) for t in done] == [
        (True, 1.0, 2),
        (False, 0.0, 1),
        (True, 1.0, 1),
    ]
    assert done[1].stop is StopReason.FAILURE


def test_the_difficulty_is_the_number_of_updates_of_the_controller(
    tmp_path: Path, pool: Pool
) -> None:
    package = write_package(tmp_path)
    for difficulty in (0, 2, 5):
        env = SynthEnv(package.spec("Route_Length", difficulty), pool=pool)
        assert env.reset(seed=0)[0].count("(") == 3 + 3 * difficulty
        env.close()


def test_ten_parameters_that_give_no_problem_are_a_fault(tmp_path: Path, pool: Pool) -> None:
    env = SynthEnv(write_package(tmp_path, "[True]").spec("Route_Length", 0), pool=pool)
    with pytest.raises(EnvFaultError, match="no problem in 10 tries"):
        env.reset(seed=0)
    env.close()


def test_a_spec_says_where_it_comes_from_and_on_which_rung_it_stands(tmp_path: Path) -> None:
    package = write_package(tmp_path)
    easy, hard = (package.spec("Route_Length", difficulty) for difficulty in (0, 7))
    assert easy.digest != hard.digest
    assert package.spec("Route_Length", 7) == hard
    assert (hard.name, hard.license) == ("RlveRouteLengthLevel7", "MIT")
    assert hard.provenance.author == "rlve-gym 9.9"
    assert hard.record.source.startswith('"""Route_Length of rlve-gym 9.9 (MIT licence), ')
    assert "import torch" not in hard.record.source
    assert rungs([easy, hard]) == {
        easy.digest: Rung(environment="Route_Length", difficulty=0),
        hard.digest: Rung(environment="Route_Length", difficulty=7),
    }


def test_what_the_package_does_not_have_is_refused(tmp_path: Path) -> None:
    package = write_package(tmp_path)
    assert package.names() == ("Route_Length",)
    with pytest.raises(ConfigError, match=r"no environment 'Route_Lenght'.*Route_Length"):
        package.spec("Route_Lenght", 0)
    for difficulty in (-1, MAX_DIFFICULTY + 1):
        with pytest.raises(ConfigError, match=rf"must lie in 0..20, got {difficulty}"):
            package.spec("Route_Length", difficulty)


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> importlib.metadata.Distribution:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", absent)
    with pytest.raises(MissingExtraError, match=r"pip install 'synthgym\[rlve\]'"):
        RlvePackage.installed()


# --- the real one ---

THEIRS = """
import json, random, sys
from Gym.environments import identifier2environment
from Gym.parameter_controllers import identifier2controller

said = []
for name, difficulty, seed in json.load(sys.stdin):
    stream = random.Random(seed)
    controller = identifier2controller[name]()
    for _ in range(difficulty):
        controller.update()
    parameters = controller.get_parameter_list()
    for _ in range(10):
        env = identifier2environment[name]()
        problem_seed = stream.randrange(2**31)
        if env.generator(seed=problem_seed, parameter=stream.choice(parameters)):
            break
    answers = [str(env.parameter.get("reference_answer")), "1", "0", "0 1 2", "1 0 0", "OFF", "Stan", "x"]
    verdicts = {a: env.verifier(f"So: <answer>{a}</answer>")["accuracy"] for a in answers}
    said.append([name, difficulty, seed, env.prompt_generator(), verdicts])
print(json.dumps(said))
"""


def installed() -> RlvePackage:
    try:
        return RlvePackage.installed()
    except MissingExtraError as error:
        pytest.skip(str(error))


@pytest.mark.slow
def test_every_default_environment_asks_and_judges_as_the_package_does(pool: Pool) -> None:
    package = installed()
    pytest.importorskip("torch")
    pytest.importorskip("networkx")
    cases = [(n, d, s) for n in DEFAULT_ENVIRONMENTS for d in (0, 3, 6) for s in (1, 2)]
    done = subprocess.run(
        [sys.executable, "-c", THEIRS],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(package.root.parent)},
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert len(said) == len(cases)
    right = 0
    for name, difficulty, seed, question, verdicts in said:
        env = SynthEnv(package.spec(name, difficulty), pool=pool)
        for answer, accuracy in verdicts.items():
            assert env.reset(seed=seed)[0] == question
            _, reward, terminated, _, info = env.step(answer)
            assert (reward, info["success"]) == (accuracy, bool(accuracy)), (name, answer)
            assert terminated
            right += accuracy
        env.close()
    # All have an answer that the package knows, but for the polygons.
    assert right >= len(cases) * 15 / 16


@pytest.mark.slow
def test_nearly_all_of_the_package_may_run_in_the_sandbox() -> None:
    package = installed()
    refused = [n for n in package.names() if check_source(package.spec(n, 0).record.source)]
    assert len(package.names()) == 400
    assert len(refused) <= 8
    assert not set(refused) & set(DEFAULT_ENVIRONMENTS)
