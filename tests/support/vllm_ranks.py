"""One rank of `test_vllm`: speaks in as many calls as it is told, through TRL's own collective `generate`.

Run by torchrun as `vllm_ranks.py PLAN`, where PLAN is JSON: for each rank a list of calls, [rows, max_tokens] each.
No rows means that it keeps the others company for one call, no tokens that it asks for what is refused. It goes through
the plan in server mode, then with tensor parallelism; what is behind TRL is a stand-in. Prints a line of JSON for each.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import torch.distributed as dist
from accelerate import Accelerator
from chat_tokenizers import byte_tokenizer, template
from fake_vllm import Client, Engine, Params, generation, trl_module

from spade_loop.backends.vllm import VllmSampler
from spade_loop.chat import ChatFormat
from spade_loop.errors import ConfigError, ModelError


def answer(prompt: list[int], max_tokens: int) -> list[int]:
    """What is said tells who asked: twice the first id of the prompt, once for each token that may be said."""
    return [prompt[0] * 2] * max_tokens


def follow(plan: list[tuple[int, int]], rank: int, engine: Any) -> dict[str, Any]:
    chat = ChatFormat(byte_tokenizer(template("chatml")))
    sampler = VllmSampler(engine, chat, temperature=1.0)
    said: list[list[list[int]]] = []
    error = ""
    try:
        for number, (rows, max_tokens) in enumerate(plan):
            if rows == 0:
                sampler.keep_company()
                said.append([])
                continue
            prompts = [[100 + 50 * rank + 10 * number + row] for row in range(rows)]
            dialogue = sampler.open(prompts, streams=[[0]] * rows)
            schema = {"type": "object"} if max_tokens == 0 else None
            replies = dialogue.generate(range(rows), max_tokens, schema)
            said.append([list(replies[row].ids) for row in range(rows)])
        sampler.wait_for_all()
    except (ConfigError, ModelError) as caught:
        error = type(caught).__name__
    return {"rank": rank, "said": said, "error": error}


def main() -> None:
    plan = json.loads(sys.argv[1])
    accelerator = Accelerator(cpu=True)
    rank = accelerator.process_index
    client = Client(answer)
    server = generation(client, accelerator=accelerator)
    found = {"mode": "server", **follow(plan[rank], rank, server), "calls": len(client.calls)}
    sys.stdout.write(json.dumps(found) + "\n")

    trl_module.SamplingParams = Params
    llm = Engine(answer)
    colocated = generation(None, llm, accelerator=accelerator, tensor_parallel_size=len(plan))
    colocated.tp_group = dist.group.WORLD
    found = {"mode": "colocate", **follow(plan[rank], rank, colocated), "calls": len(llm.calls)}
    sys.stdout.write(json.dumps(found) + "\n")
    dist.destroy_process_group()


main()
