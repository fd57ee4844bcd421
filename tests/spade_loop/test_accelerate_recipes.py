"""The accelerate files beside the recipes: read by accelerate's own classes, and turned into what its launcher sets."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from accelerate.commands.config.config_args import load_config_from_file
from accelerate.commands.launch import _validate_launch_command, launch_command_parser
from accelerate.utils import DistributedType
from accelerate.utils.launch import prepare_multi_gpu_env
from pages import table

FOLDER = Path(str(resources.files("spade_loop").joinpath("recipes", "accelerate")))
KINDS = {
    "ddp": DistributedType.MULTI_GPU,
    "fsdp2": DistributedType.FSDP,
    "deepspeed_zero3": DistributedType.DEEPSPEED,
    "multi_node": DistributedType.MULTI_GPU,
}
pytestmark = pytest.mark.filterwarnings("ignore:Port .* is already in use:UserWarning")


def launch(name: str, *flags: str) -> Any:
    """The launcher's arguments, as `accelerate launch --config_file NAME.yaml FLAGS` has them."""
    command = ["--config_file", str(FOLDER / f"{name}.yaml"), *flags, "-m", "spade_loop"]
    return _validate_launch_command(launch_command_parser().parse_args(command))[0]


def test_every_file_is_known() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(KINDS)
    assert {Path(name).stem for name in table("docs/scaling.md", "accelerate")} == set(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_accelerate_reads_the_file_and_knows_every_key(name: str) -> None:
    config = load_config_from_file(
        str(FOLDER / f"{name}.yaml")
    )  # refuses keys that it does not know
    assert config.distributed_type is KINDS[name]
    known = vars(launch_command_parser().parse_args(["script.py"]))
    assert {*config.fsdp_config, *config.deepspeed_config} <= set(known)


def test_ddp_is_started_with_a_process_a_gpu() -> None:
    args = launch("ddp", "--num_processes", "4")
    environment = prepare_multi_gpu_env(args)
    assert (args.multi_gpu, args.nproc_per_node) == (True, "4")
    assert environment["ACCELERATE_MIXED_PRECISION"] == "no"
    assert environment.get("ACCELERATE_USE_FSDP") is None


def test_two_nodes_share_the_processes() -> None:
    args = launch("multi_node", "--machine_rank", "1", "--main_process_ip", "10.1.2.3")
    prepare_multi_gpu_env(args)
    assert (args.nnodes, args.nproc_per_node, args.node_rank) == ("2", "8", 1)
    assert args.rdzv_endpoint == "10.1.2.3:29500"


def test_fsdp_is_version_2_and_saves_whole_checkpoints() -> None:
    environment = prepare_multi_gpu_env(launch("fsdp2"))
    assert environment["ACCELERATE_USE_FSDP"] == "true"
    assert environment["FSDP_VERSION"] == "2"
    assert environment["FSDP_RESHARD_AFTER_FORWARD"] == "true"
    assert environment["FSDP_STATE_DICT_TYPE"] == "FULL_STATE_DICT"
    assert environment["FSDP_CPU_RAM_EFFICIENT_LOADING"] == "false"


def test_deepspeed_shards_the_weights() -> None:
    args = launch("deepspeed_zero3")
    assert args.use_deepspeed
    assert (args.zero_stage, args.zero3_init_flag) == (3, False)
