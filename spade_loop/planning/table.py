"""A plan for people."""

from __future__ import annotations

from collections.abc import Iterator

from spade_loop.batch import BatchShape, proposals
from spade_loop.planning.budget import Step, episode_tokens, seeds_at_most
from spade_loop.planning.memory import Memory, design_context, widest_row
from spade_loop.planning.plan import Plan

Line = tuple[str, str]
_SCALES = (("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3))


def as_text(plan: Plan) -> str:
    """The plan as aligned lines under headings. Numbers of tokens and bytes are upper bounds."""
    again = plan.config.schedule.regenerate_every > 1
    sections = (
        ("Run", list(_run(plan))),
        ("One iteration that designs, at most", _step(plan.budget.design)),
        *([("One iteration that plays on, at most", _step(plan.budget.replay))] if again else []),
        ("Update", list(_update(plan))),
        ("Memory of one process, estimated", list(_memory(plan))),
        ("Needs", _needs(plan)),
    )
    width = max(len(label) for _, lines in sections for label, _ in lines)
    blocks = [
        "\n".join([title, *(f"  {label:{width}}  {text}".rstrip() for label, text in lines)])
        for title, lines in sections
    ]
    return "\n\n".join(blocks)


def short(number: float) -> str:
    """A count in three digits: 12,345,678 is 12.3M."""
    for letter, scale in _SCALES:
        if number >= scale:
            value = number / scale
            return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}{letter}"
    return f"{number:g}"


def gib(number: float) -> str:
    """Bytes in GiB."""
    return f"{number / 2**30:.2f} GiB"


def _run(plan: Plan) -> Iterator[Line]:
    config, budget = plan.config, plan.budget
    policy = config.policy
    how = f"LoRA of rank {policy.lora_rank}" if policy.lora_rank else "all weights"
    yield "recipe", f"{config.name}: {policy.model}, {how}, sampled by {policy.backend}"
    often = config.schedule.regenerate_every
    yield "iterations", f"{budget.iterations}, designing in {budget.regenerations} (every {often})"
    drain = f", {budget.drain_steps} of them for designs that wait" if budget.drain_steps else ""
    yield "optimiser steps", f"{budget.steps}{drain}"
    authors = ", ".join(f"{count} {name}" for name, count in proposals(config).items() if count)
    yield (
        "designs an iteration",
        f"{config.designer.candidates}" + (f" ({authors})" if authors else ""),
    )
    yield (
        "episodes in all",
        f"at most {budget.episodes_plain:,} plain, {budget.episodes_hinted:,} hinted",
    )
    yield "tokens sampled", f"at most {short(budget.sampled)}"
    yield "tokens trained", f"at most {short(budget.trained)}"


def _step(step: Step) -> list[Line]:
    placebo = f", {step.episodes_placebo} with a placebo" if step.episodes_placebo else ""
    lines = [
        ("episodes", f"{step.episodes_plain} plain, {step.episodes_hinted} hinted{placebo}"),
        ("tokens of episodes", short(step.tokens_episodes)),
    ]
    if step.replies:
        lines.append(
            ("tokens of designs", f"{short(step.tokens_designs)} in {step.replies} replies")
        )
    if step.hint_calls:
        lines.append(("tokens of hints", f"{short(step.tokens_hints)} in {step.hint_calls} calls"))
    return lines


def _update(plan: Plan) -> Iterator[Line]:
    config = plan.config
    agent, rows = config.agent, BatchShape.of(config)
    rehearsed = f" + {rows.rehearsal} rehearsed" if rows.rehearsal else ""
    yield (
        "rows",
        f"{rows.designer} designer + {rows.agent} agent "
        f"({agent.environments} environments x {agent.seeds} seeds x {agent.plays} plays){rehearsed}, padded to "
        f"{rows.shared(plan.processes)}",
    )
    if seeds_at_most(config) > agent.seeds:
        yield "measured", f"on up to {seeds_at_most(config)} seeds, untrained beyond {agent.seeds}"
    yield "tokens of an episode", f"{episode_tokens(config)}, context {agent.context}"
    context = design_context(config)
    if context:
        yield "tokens of a design", f"{config.designer.max_tokens}, with its prompt about {context}"
    yield (
        "forward pass",
        f"{config.trainer.rows_per_step} rows of up to {widest_row(config)} tokens",
    )


def _memory(plan: Plan) -> Iterator[Line]:
    memory, shape = plan.memory, plan.shape
    if memory is None or shape is None:
        yield (
            plan.config.policy.model,
            "cannot be told: its shape is not known here; give a directory that holds its config.json",
        )
        return
    unsure = "" if shape.sure else " (by formulas that are not certain for this model)"
    yield "parameters", f"{short(memory.parameters)}, {short(shape.active)} active{unsure}"
    yield "trained", short(memory.trainable)
    yield "weights", gib(memory.weights)
    yield "gradients", gib(memory.gradients)
    yield "optimiser", gib(memory.optimiser)
    if memory.reference:
        yield "reference model (KL)", gib(memory.reference)
    yield "activations", gib(memory.activations)
    yield (
        "output layer",
        f"{gib(memory.output_layer)} in tiles (all logits at once: {gib(memory.all_logits)})",
    )
    yield from _sampling(plan, memory)
    yield "update", gib(memory.update)
    yield "sampling", gib(memory.sampling)
    yield "peak", gib(memory.peak)


def _sampling(plan: Plan, memory: Memory) -> Iterator[Line]:
    policy = plan.config.policy
    if policy.backend == "transformers":
        yield "weights, whole", gib(memory.whole_weights)
        yield "keys and values", gib(memory.kv_cache)
        yield "draws", gib(memory.draws)
    elif policy.backend == "vllm-colocate":
        needed = memory.parameters * 2
        yield (
            "vLLM",
            f"{policy.vllm_memory:.0%} of the GPU beside all this: {gib(needed)} of bfloat16 weights and a cache",
        )
    else:
        yield "vLLM", f"on GPUs of its own, {gib(memory.parameters * 2)} of weights in bfloat16"
    if memory.scoring:
        yield "scoring of late designs", gib(memory.scoring)


def _needs(plan: Plan) -> list[Line]:
    lines = [
        (need.name, need.detail if need.met else f"NOT MET: {need.detail}") for need in plan.needs
    ]
    count = len(plan.lacks)
    verdict = (
        "a run can start here" if not count else f"a run here would fall short of {count} of these"
    )
    return [*lines, ("in all", verdict)]
