"""What a recipe needs of this machine, looked at without loading anything: what `spade-loop run` would refuse here."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from spade_loop.backends.weights import BUNDLED, check_gpu, check_model, needs_gpu
from spade_loop.batch import BatchShape
from spade_loop.config import Config
from spade_loop.corpus import Corpus
from spade_loop.curriculum import RlvePackage
from spade_loop.demonstrations import TRAIN, read_demonstrations
from spade_loop.design.dialects import make_dialect
from spade_loop.errors import ConfigError, SpadeLoopError
from spade_loop.planning.memory import Sharding, runs_on_gpu, vanishing
from spade_loop.types import JsonRow
from synthgym.errors import SynthGymError
from synthgym.registry import Snapshot, bundled_root


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that a recipe needs."""

    name: str
    met: bool
    """Whether it is here; a run without it is refused, or is not worth its time."""
    detail: str

    def to_json(self) -> JsonRow:
        """Plain data."""
        return {"name": self.name, "met": self.met, "detail": self.detail}


def needs_of(config: Config, *, processes: int, sharding: Sharding) -> list[Need]:
    """Everything that a recipe needs, in the order in which a run would ask for it. Nothing is fetched."""
    return [
        _asked("dialect", lambda: _dialect(config)),
        _asked("corpus", lambda: _corpus(config)),
        *([_asked("rehearsal", lambda: _rehearsal(config))] if config.rehearsal.rows else []),
        _asked("gpu", lambda: _gpu(config)),
        _asked("model", lambda: _model(config)),
        _asked("registry", lambda: _registry(config)),
        *([_asked("rlve", lambda: _rlve(config))] if config.curriculum.rlve else []),
        *_packages(config, sharding),
        *_keys(config),
        _rows(config, processes),
        *_sharded(config, processes, sharding),
        *_steps(config, sharding),
    ]


def _asked(name: str, ask: Callable[[], str]) -> Need:
    """The answer, or the refusal that a run would meet."""
    try:
        return Need(name, True, ask())
    except (SpadeLoopError, SynthGymError) as error:
        return Need(name, False, str(error))


def _dialect(config: Config) -> str:
    make_dialect(config.designer)
    return f"{config.designer.dialect}, {config.designer.task}"


def _corpus(config: Config) -> str:
    documents = Corpus.load(Path(config.corpus.path) if config.corpus.path else None)
    used = "" if config.corpus.use else ", not used"
    return f"{len(documents)} documents of {config.corpus.path or 'the bundled corpus'}{used}"


def _rehearsal(config: Config) -> str:
    rows = read_demonstrations(Path(config.rehearsal.rows)).rows
    return f"{sum(row.split == TRAIN for row in rows)} demonstrations of {config.rehearsal.rows}"


def _gpu(config: Config) -> str:
    check_gpu(config.policy)
    if needs_gpu(config.policy):
        return "there is one"
    return "used" if runs_on_gpu(config.policy) else "not needed: the policy runs on the CPU"


def _model(config: Config) -> str:
    check_model(config.policy)
    model = config.policy.model
    if model in BUNDLED:
        return f"{model}, bundled"
    if Path(model).expanduser().is_dir():
        return f"{model}, a directory"
    return f"{model}, of the Hugging Face Hub or its cache: looked for when the run starts"


def _registry(config: Config) -> str:
    """How many environments there are to begin with; bytes are verified when the run starts."""
    root = Path(config.registry) if config.registry else bundled_root()
    count = len(Snapshot.open(root))
    where = config.registry or "the bundled snapshot"
    rungs = len(config.curriculum.rlve) * (config.curriculum.hardest + 1)
    wanted = config.agent.environments
    if config.designer.candidates == 0 and count + rungs < wanted:
        raise ConfigError(
            f"registry: {where} has {count} environments, and an iteration plays {wanted} (agent.environments) with "
            "nothing designed: the rows of those that are missing stay empty. Give a larger snapshot"
        )
    return f"{count} environments of {where}"


def _rlve(config: Config) -> str:
    package = RlvePackage.installed()
    for name in config.curriculum.rlve:
        package.spec(name, config.curriculum.hardest)
    return f"rlve-gym {package.version}, {len(config.curriculum.rlve)} environments"


def _packages(config: Config, sharding: Sharding) -> Iterator[Need]:
    kinds = {other.kind for other in config.designers}
    wanted = {"torch": "loop", "transformers": "loop", "trl": "loop", "accelerate": "loop"}
    if config.policy.lora_rank > 0:
        wanted["peft"] = "loop"
    if config.designer.dialect == "blueprint":
        wanted["xgrammar"] = "loop"
    if config.policy.backend != "transformers" or "vllm" in kinds:
        wanted["vllm"] = "vllm"
    if "endpoint" in kinds:
        wanted["openai"] = ""
    if sharding == "deepspeed_zero3":
        wanted["deepspeed"] = ""
    for package, extra in wanted.items():
        install = f"'synthgym[{extra}]'" if extra else package
        met = importlib.util.find_spec(package) is not None
        yield Need(package, met, "installed" if met else f"not installed: pip install {install}")


def _keys(config: Config) -> Iterator[Need]:
    """Environment variables of endpoints, by name alone."""
    for name in dict.fromkeys(o.api_key_env for o in config.designers if o.api_key_env):
        met = bool(os.environ.get(name))
        yield Need(name, met, "set" if met else "this environment variable is not set")


def _rows(config: Config, processes: int) -> Need:
    shape = BatchShape.of(config)
    planned, shared = shape.planned, shape.shared(processes)
    step = shape.rows_per_step * processes
    each = f"{shared} on one process"
    if processes > 1:
        each = f"{shared // processes} for each of {processes} processes"
    if planned < step:
        return Need(
            "rows",
            False,
            f"{planned} rows are fewer than trainer.rows_per_step * processes = {step}: some processes would train on "
            "padding alone",
        )
    padding = f", {shared - planned} of {shared} padding" if shared > planned else ""
    return Need("rows", True, each + padding)


def _sharded(config: Config, processes: int, sharding: Sharding) -> Iterator[Need]:
    if sharding == "none":
        return
    if config.designer.dialect == "blueprint":
        yield Need(
            sharding,
            False,
            "designer.dialect=blueprint is scored against the whole output embedding: take program or edit, or DDP",
        )
    elif processes == 1:
        yield Need(sharding, False, "one process has nothing to share: give --processes")


def _steps(config: Config, sharding: Sharding) -> Iterator[Need]:
    limit = vanishing(config, sharding)
    if limit < float("inf"):
        yield Need(
            "precision",
            False,
            f"a step of AdamW, about trainer.learning_rate={config.trainer.learning_rate:g}, is rounded away in "
            f"bfloat16 for every weight above {limit:.2g}: set policy.dtype=float32, take LoRA, or launch with "
            "deepspeed_zero3.yaml (--sharding deepspeed_zero3), which keeps weights of 32 bits",
        )
