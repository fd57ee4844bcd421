"""Which sampler a recipe gets, and what TRL is told of it. No engine runs here: its stand-in says so."""

from __future__ import annotations

from typing import Any

import pytest
from fake_vllm import Client, generation
from trl import GRPOConfig

from spade_loop.backends.sampling import engine_arguments, make_sampler
from spade_loop.backends.transformers import TransformersSampler
from spade_loop.backends.vllm import VllmSampler
from spade_loop.chat import ChatFormat
from spade_loop.config import load_config
from spade_loop.errors import ConfigError
from spade_loop.types import Message

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")  # TRL's and transformers' own
VLLM = ["designer.dialect=program", "designer.initial_share=0", "trainer.max_ratio=2.0"]


def test_without_vllm_trl_is_told_nothing(model: Any, tokenizer: Any, chat: ChatFormat) -> None:
    config = load_config("tiny")
    assert engine_arguments(config) == {}
    sampler = make_sampler(config, model, tokenizer, chat, None)
    assert isinstance(sampler, TransformersSampler)
    assert sampler.temperature == config.trainer.temperature


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            ["policy.backend=vllm-colocate", "policy.vllm_memory=0.4"],
            {"vllm_mode": "colocate", "vllm_gpu_memory_utilization": 0.4},
        ),
        (
            ["policy.backend=vllm-server", "policy.vllm_server=http://node:8000"],
            {"vllm_mode": "server", "vllm_server_base_url": "http://node:8000"},
        ),
    ],
)
def test_trl_takes_what_it_is_told_of_vllm(settings: list[str], expected: dict[str, Any]) -> None:
    arguments = engine_arguments(load_config("tiny", [*VLLM, *settings]))
    made = GRPOConfig(output_dir="x", bf16=False, use_cpu=True, **arguments)
    assert made.use_vllm
    assert {name: getattr(made, name) for name in expected} == expected
    assert made.vllm_importance_sampling_mode == "token_truncate"
    assert made.vllm_importance_sampling_clip_max == 2.0


def test_the_trainers_model_scores_what_vllm_said(
    model: Any, tokenizer: Any, chat: ChatFormat
) -> None:
    config = load_config("tiny", [*VLLM, "policy.backend=vllm-colocate", "trainer.temperature=1.0"])
    sampler = make_sampler(
        config, model, tokenizer, chat, generation(Client(lambda prompt, limit: [1]))
    )
    assert isinstance(sampler, VllmSampler)
    own = TransformersSampler(model, tokenizer, chat)
    prompt = chat.prompt([Message("user", "a")])
    said = own.open([prompt], streams=[[0]]).generate([0], 6)[0]
    assert sampler.score(prompt, said) == pytest.approx(own.score(prompt, said))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["policy.backend=vllm-colocate"], "designer.initial_share"),
        (
            ["policy.backend=vllm-colocate", "designer.initial_share=0"],
            "blueprint is sampled under a grammar",
        ),
        ([*VLLM, "policy.backend=vllm-server"], "policy.vllm_server must be the URL"),
        (["policy.backend=vlm"], "must be one of transformers"),
        (["trainer.beta=0.1"], "trainer.beta must be 0 with designer.dialect=blueprint"),
        (["schedule.designer_delay=2"], "needs trainer.learning_rate of at most"),
        (["hints.train=true"], "hints.train needs hints.source=designer"),
        (["designers=[{name='a', kind='endpoint', share=0.2, model='m'}]"], "base_url must be"),
        (["designers=[{name='a', kind='endpoint', share=0.2}]"], "model must name"),
        (["designers=[{name='policy', kind='random', share=0.2}]"], "give it a name of its own"),
        (["designers=[{name='a', kind='random', share=1.5}]"], "add up to|lie in"),
        (
            [
                "designers=[{name='a', kind='random', share=0.5}, {name='a', kind='random', share=0.1}]"
            ],
            "2 have the name",
        ),
        (
            ["designers=[{name='a', kind='random', shar=0.5}]"],
            r"designers\[0\]\.shar; did you mean 'share'",
        ),
        (
            ["designer.dialect=program", "designers=[{name='a', kind='mutation', share=0.5}]"],
            "draws blueprints",
        ),
        (["hints.play=false"], "measures no regret"),
        (["designer.task=tools"], r"unknown skill .* \(designer.task=tools knows"),
        (["agent.half_width=0.1", "agent.max_seeds=2"], "agent.max_seeds must be at least 4"),
    ],
)
def test_what_does_not_go_together_is_refused(settings: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config("tiny", settings)
