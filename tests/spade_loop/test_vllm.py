"""vLLM as TRL drives it, without a GPU: TRL's own `generate` over stand-ins for the server and for the engine."""

from __future__ import annotations

import importlib.util
import inspect
import json
import sys
from pathlib import Path
from typing import Any

import fake_vllm
import pytest
from chat_tokenizers import byte_tokenizer, template
from fake_vllm import Client, Engine, Params, generation, logprob_of
from hypothesis import given, settings
from hypothesis import strategies as st
from ranks import torchrun
from trl.generation import vllm_generation as trl_module
from trl.generation.vllm_client import VLLMClient

from spade_loop.backends import vllm as backend
from spade_loop.backends.vllm import VllmSampler, VllmWriter
from spade_loop.chat import ChatFormat
from spade_loop.completers import Dialogue, Reply, Sampler, Writer
from spade_loop.errors import ConfigError, MissingExtraError, ModelError
from spade_loop.types import Completion, Message

CHAT = ChatFormat(byte_tokenizer(template("chatml")))
SCHEMA = {"type": "object"}


def counting(prompt: Any, max_tokens: int) -> list[int]:
    """A reply of three tokens and the end, by the length of the prompt; cut where fewer are allowed."""
    return [len(prompt) % 200 + 40, 60, 61, CHAT.end_id][:max_tokens]


@pytest.fixture(params=["server", "colocate"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """TRL's object in either mode; `asked()` lists the prompts of each call."""
    # The module has these two names only where vLLM is installed.
    monkeypatch.setattr(trl_module, "SamplingParams", Params, raising=False)
    if request.param == "server":
        client = Client(counting)
        made = generation(client)
        made.asked = lambda: [call["prompts"] for call in client.calls]
    else:
        llm = Engine(counting)
        made = generation(None, llm)
        made.asked = lambda: [[p["prompt_token_ids"] for p in prompts] for prompts, _ in llm.calls]
    return made


def sampler(engine: Any, **arguments: Any) -> VllmSampler:
    return VllmSampler(engine, CHAT, **{"temperature": 1.0, **arguments})


def opened(engine: Any, prompts: list[list[int]]) -> Dialogue:
    return sampler(engine).open(prompts, streams=[[0]] * len(prompts))


# --- what TRL offers ---


def test_trl_still_generates_as_it_is_called() -> None:
    """What we rely on in TRL: the signature, and settings that are read at each call."""
    signature = inspect.signature(trl_module.VLLMGeneration.generate)
    assert list(signature.parameters) == [
        "self",
        "prompts",
        "images",
        "num_generations",
        "profiler",
    ]
    source = inspect.getsource(trl_module.VLLMGeneration.generate)
    for name in ("max_completion_length", "generation_kwargs", "temperature", "logprobs"):
        assert f"self.{name}" in source
    own = inspect.signature(trl_module.VLLMGeneration.__init__).parameters
    assert {"mode", "tensor_parallel_size", "enable_sleep_mode", "top_p", "top_k"} < set(own)
    sent = inspect.signature(VLLMClient.generate).parameters
    assert {"prompts", "features", "max_tokens", "generation_kwargs"} < set(sent)
    assert hasattr(VLLMClient, "get_server_info")


def test_sampler_dialogue_and_writer_are_what_the_loop_expects() -> None:
    for ours, theirs in (
        (backend.VllmSampler, Sampler),
        (backend.VllmDialogue, Dialogue),
        (backend.VllmWriter, Writer),
    ):
        for name, method in inspect.getmembers(theirs, inspect.isfunction):
            if not name.startswith("_"):
                expected = list(inspect.signature(method).parameters.values())
                found = list(inspect.signature(getattr(ours, name)).parameters.values())
                assert [(p.name, p.kind) for p in found] == [(p.name, p.kind) for p in expected]


# --- the policy ---


def test_a_reply_has_its_ids_their_log_probabilities_and_whether_it_ended(engine: Any) -> None:
    prompts = [[5, 6, 7], [8]]
    replies = opened(engine, prompts).generate([0, 1], 16)
    for row, prompt in enumerate(prompts):
        ids = tuple(counting(prompt, 16))
        logprobs = tuple(logprob_of(t, i) for i, t in enumerate(ids))
        assert replies[row] == Completion(ids, logprobs, (1,) * 4, stopped=True)


def test_a_reply_that_the_limit_cut_did_not_end(engine: Any) -> None:
    (reply,) = opened(engine, [[5, 6, 7]]).generate([0], 2).values()
    assert (len(reply.ids), reply.stopped) == (2, False)


def test_every_call_sends_the_whole_history(engine: Any) -> None:
    dialogue = opened(engine, [[5, 6], [7], [8]])
    first = dialogue.generate([0, 1, 2], 16)
    dialogue.drop([1])
    dialogue.feed({0: (9, 10), 2: (11,)})
    dialogue.generate([2, 0], 16)
    assert engine.asked() == [
        [[5, 6], [7], [8]],
        [[8, *first[2].ids, 11], [5, 6, *first[0].ids, 9, 10]],
    ]


def test_no_row_is_no_call(engine: Any) -> None:
    assert opened(engine, [[5]]).generate([], 16) == {}
    assert engine.asked() == []


texts = st.lists(st.tuples(st.text(max_size=12), st.integers(1, 6)), min_size=1, max_size=4)


@settings(max_examples=40, deadline=None)
@given(opening=st.text(max_size=12), turns=texts)
def test_what_the_engine_saw_is_what_is_trained(opening: str, turns: list[tuple[str, int]]) -> None:
    """Prompt, replies and turns, put one behind the other as episodes do, are the history that was sent."""
    client = Client(counting)
    prompt = CHAT.prompt([Message("user", opening)])
    dialogue = opened(generation(client), [list(prompt)])
    trained, mask = list(prompt), [0] * len(prompt)
    for text, max_tokens in turns:
        (reply,) = dialogue.generate([0], max_tokens).values()
        assert client.calls[-1]["prompts"] == [trained]
        chunk = CHAT.next_turn(text, stopped=reply.stopped, last=reply.ids[-1])
        trained += [*reply.ids, *chunk]
        mask += [*reply.mask, *[0] * len(chunk)]
        dialogue.feed({0: chunk})
    ends = sum(token == CHAT.end_id for token in trained)
    assert ends == 1 + 2 * len(turns)  # every turn ended once, whoever ended it
    assert sum(mask) == sum(min(n, 4) for _, n in turns)


def test_limit_and_stop_tokens_go_with_the_call_and_leave_trls_settings_alone() -> None:
    client = Client(counting)
    engine = generation(client)
    opened(engine, [[5]]).generate([0], 3)
    (call,) = client.calls
    assert call["max_tokens"] == 3
    assert call["generation_kwargs"] == {"stop_token_ids": sorted(CHAT.stop_ids)}
    assert (call["temperature"], call["n"], call["logprobs"]) == (1.0, 1, 0)
    assert (engine.max_completion_length, engine.generation_kwargs) == (256, {})


def test_settings_are_put_back_after_a_failure() -> None:
    def fail(prompt: Any, max_tokens: int) -> list[int]:
        raise RuntimeError("the server is gone")

    engine = generation(Client(fail))
    with pytest.raises(RuntimeError, match="is gone"):
        opened(engine, [[5]]).generate([0], 3)
    assert (engine.max_completion_length, engine.generation_kwargs) == (256, {})


@pytest.mark.parametrize("logprobs", [None, [[[None, None]]], [[[-0.5, -0.5]]]])
def test_a_log_probability_that_is_missing_is_named(logprobs: Any) -> None:
    class Broken(Client):
        def generate(self, *args: Any, **params: Any) -> dict[str, Any]:
            answer = super().generate(*args, **params)
            tokens = [[[1, 2]]] if logprobs == [[[-0.5, -0.5]]] else answer["logprob_token_ids"]
            return answer | {"logprobs": logprobs, "logprob_token_ids": tokens}

    dialogue = opened(generation(Broken(counting)), [[5]])
    expected = "no log-probabilities" if logprobs is None else "token 41 at position 0"
    with pytest.raises(ModelError, match=expected):
        dialogue.generate([0], 1)


def test_a_grammar_is_refused_with_what_to_set(engine: Any) -> None:
    with pytest.raises(ConfigError, match=r"blueprint.*policy\.backend=transformers"):
        opened(engine, [[5]]).generate([0], 16, SCHEMA)
    assert engine.asked() == []


def test_the_initial_model_is_refused_with_what_to_set(engine: Any) -> None:
    with pytest.raises(ModelError, match=r"designer\.initial_share=0"):
        sampler(engine).open([[5]], streams=[[0]], initial=True)


def test_conversations_that_cannot_begin_are_refused(engine: Any) -> None:
    with pytest.raises(ModelError, match="at least one token"):
        sampler(engine).open([[]], streams=[[0]])
    with pytest.raises(ValueError, match="1 prompts need as many streams, got 2"):
        sampler(engine).open([[5]], streams=[[0], [1]])


def test_earlier_completions_are_scored_by_the_trainers_model() -> None:
    class Scorer:
        def score(self, prompt_ids: Any, completion: Completion) -> list[float]:
            return [-1.0] * len(completion.ids)

    completion = Completion((1, 2), (0.0, 0.0), (1, 1))
    engine = generation(Client(counting))
    assert sampler(engine, scorer=Scorer()).score([5], completion) == [-1.0, -1.0]
    with pytest.raises(ModelError, match=r"policy\.backend=transformers"):
        sampler(engine).score([5], completion)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", 0.7),
        ("top_p", 0.95),
        ("top_k", 20),
        ("min_p", 0.02),
        ("repetition_penalty", 1.1),
        ("structured_outputs_regex", "a*"),
        ("generation_kwargs", {"seed": 1}),
        ("logprobs", None),
    ],
)
def test_an_engine_that_samples_otherwise_than_is_trained_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=name.replace("logprobs", "log-probabilities")):
        sampler(generation(Client(counting), **{name: value}))


def test_a_server_with_raw_log_probabilities_is_refused() -> None:
    with pytest.raises(ConfigError, match="--logprobs-mode processed_logprobs"):
        sampler(generation(Client(counting, mode="raw_logprobs")))


# --- several processes ---


def ranks(plan: list[list[tuple[int, int]]]) -> dict[str, list[dict[str, Any]]]:
    """What each rank was given, by TRL's mode. No rows: the rank keeps company for one call."""
    script = Path(fake_vllm.__file__).with_name("vllm_ranks.py")
    done = torchrun([str(script), json.dumps(plan)], size=len(plan), seconds=280)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    rows.sort(key=lambda row: int(row["rank"]))
    return {mode: [r for r in rows if r["mode"] == mode] for mode in ("server", "colocate")}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_process_whose_episodes_are_over_keeps_the_others_company() -> None:
    # The first is done after two calls; the second goes on, in other numbers of rows and tokens, and pauses once.
    plan = [[(2, 3), (0, 0)], [(1, 2), (3, 1), (0, 0), (2, 5), (1, 1)]]
    found = ranks(plan)
    for mode, results in found.items():
        for rank, calls in enumerate(plan):
            expected = [
                [[2 * (100 + 50 * rank + 10 * n + row)] * max_tokens for row in range(rows)]
                for n, (rows, max_tokens) in enumerate(calls)
            ]
            assert (results[rank]["said"], results[rank]["error"]) == (expected, ""), mode
    # A server is asked by the main process for all, the parts of an engine together; neither where nobody speaks.
    assert [row["calls"] for row in found["server"]] == [4, 0]
    assert [row["calls"] for row in found["colocate"]] == [4, 4]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_process_that_refuses_does_not_leave_the_others_waiting() -> None:
    for results in ranks([[(1, 2), (1, 2)], [(1, 2), (1, 0)]]).values():
        assert [row["error"] for row in results] == ["ModelError", "ConfigError"]
        assert [len(row["said"]) for row in results] == [1, 1]


# --- frozen designers ---


@pytest.fixture
def writer(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[VllmWriter, Any]:
    module, sampling, made = fake_vllm.module(lambda _, max_tokens: [70, 71, 1][:max_tokens])
    monkeypatch.setitem(sys.modules, "vllm", module)
    monkeypatch.setitem(sys.modules, "vllm.sampling_params", sampling)
    ours = VllmWriter(str(tiny_model), name="frozen", gpu_memory_utilization=0.3)
    return ours, made[0]


def test_a_frozen_designer_answers_each_chat_with_its_own_seed(
    writer: tuple[VllmWriter, Any], tokenizer: Any, chat: ChatFormat
) -> None:
    ours, engine = writer
    assert tokenizer.eos_token_id == 1
    chats = [[Message("user", "Design a lock.")], [Message("user", "<|im_end|> Design.")]]
    replies = ours.write(chats, max_tokens=8, temperature=0.6, seeds=[3, 4])
    said = tokenizer.decode([70, 71])
    assert replies == [Reply(said, 3, True, len(chat.prompt(c))) for c in chats]
    ((prompts, params),) = engine.calls
    assert [tuple(p["prompt_token_ids"]) for p in prompts] == [chat.prompt(c) for c in chats]
    assert [(p.seed, p.max_tokens, p.temperature) for p in params] == [(3, 8, 0.6), (4, 8, 0.6)]
    assert all(p.structured_outputs is None for p in params)
    assert ours.name == "frozen"
    assert engine.arguments["gpu_memory_utilization"] == 0.3


def test_a_frozen_designer_is_held_to_a_schema(writer: tuple[VllmWriter, Any]) -> None:
    ours, engine = writer
    chats = [[Message("user", "Design.")]]
    (reply,) = ours.write(chats, max_tokens=2, temperature=0.6, seeds=[3], schema=SCHEMA)
    assert not reply.stopped
    assert engine.calls[0][1][0].structured_outputs.json == SCHEMA


def test_an_engine_that_fails_is_named(
    writer: tuple[VllmWriter, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, engine = writer

    def fail(*_: Any, **__: Any) -> None:
        raise ValueError("prompt is too long")

    monkeypatch.setattr(engine, "generate", fail)
    with pytest.raises(ModelError, match=r"'frozen' did not answer: prompt is too long"):
        ours.write([[Message("user", "Design.")]], max_tokens=2, temperature=0.6, seeds=[3])


def test_a_model_that_is_not_there_is_named(writer: tuple[VllmWriter, Any], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"cannot load the designer .*config\.json"):
        VllmWriter(str(tmp_path / "nothing"))


@pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="vLLM is installed")
def test_without_vllm_the_extra_is_named(tiny_model: Path) -> None:
    with pytest.raises(MissingExtraError, match=r"synthgym\[vllm\]"):
        VllmWriter(str(tiny_model))
