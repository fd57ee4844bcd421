"""The run in a few sentences, for a person who reads nothing else. Nothing here claims that a model learned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from spade_loop.report.formats import count, percent, plus_minus
from spade_loop.report.reading import MetricsRow, Run
from spade_loop.schedule import Schedule
from spade_loop.timing import GENERATE, UPDATE
from spade_loop.types import Outcome

NO_CLAIM = (
    "These are the numbers of one run with one seed. They show what it did; "
    "they are no evidence that the model learned."
)
LOST = (
    (Outcome.UNPARSED, "could not be read"),
    (Outcome.REFUSED, "failed validation"),
    (Outcome.DUPLICATE, "resembled one that was held"),
    (Outcome.SURPASSED, "gave way to another draw"),
)


def headline(run: Run) -> tuple[str, ...]:
    """Sentences about the run, most important first."""
    planned = count(Schedule.of(run.config).steps, "iteration")
    if not run.done:
        return (
            f"No iteration is complete yet. The run plans {planned}; this page fills as they are committed.",
        )
    begin = f"{run.done:,} of {planned} {'is' if run.done == 1 else 'are'} complete: "
    sentences = [
        begin + designs_sentence(outcomes(run.metrics)),
        rates_sentence(run.metrics),
        parsing_sentence(run.metrics),
        regret_sentence(run.metrics),
        time_sentence(run.parts),
        *cautions(run),
        NO_CLAIM,
    ]
    return tuple(s for s in sentences if s)


def outcomes(metrics: Iterable[MetricsRow]) -> Counter[str]:
    """Designs of all iterations by outcome."""
    total: Counter[str] = Counter()
    for row in metrics:
        total.update(row.designs)
    return total


def designs_sentence(by_outcome: Counter[str]) -> str:
    """How many designs were made, and what became of them."""
    made, admitted = by_outcome.total(), by_outcome[Outcome.ADMITTED]
    lost = [f"{by_outcome[o]:,} {text}" for o, text in LOST if by_outcome[o]]
    rest = f" ({', '.join(lost)})" if lost else ""
    return f"{count(made, 'design')} made, {admitted:,} admitted{rest}."


def rates_sentence(metrics: Sequence[MetricsRow]) -> str:
    """Solve rates of both arms, averaged over the iterations that measured them."""
    plain = [r.solve_rate.plain for r in metrics if r.solve_rate.plain is not None]
    hinted = [r.solve_rate.hinted for r in metrics if r.solve_rate.hinted is not None]
    if not plain or not hinted:
        return "No environment could be measured, so there is no solve rate and no regret."
    return (
        f"The agent solved {percent(sum(plain) / len(plain))} of the episodes without the hint and "
        f"{percent(sum(hinted) / len(hinted))} with it, averaged over {count(len(plain), 'iteration')}."
    )


def parsing_sentence(metrics: Sequence[MetricsRow]) -> str:
    """The share of turns that held no usable action, and the most frequent reason; nothing when all held one."""
    turns = sum(number for row in metrics for number in row.turns.values())
    failures: Counter[str] = Counter()
    for row in metrics:
        for by_status in row.parse_failures.values():
            failures.update(by_status)
    if not turns or not failures.total():
        return ""
    status, _ = max(failures.items(), key=lambda item: (item[1], item[0]))
    return f"{percent(failures.total() / turns)} of the agent's turns held no usable action, most often {status}."


def regret_sentence(metrics: Sequence[MetricsRow]) -> str:
    """The newest mean regret with its standard error, and whether it stands out of the noise."""
    measured = [r for r in metrics if r.regret.mean is not None]
    if not measured:
        return ""
    last = measured[-1]
    mean, error = last.regret.mean or 0.0, last.regret.standard_error
    text = f"Mean regret in iteration {last.iteration + 1} was {plus_minus(mean, error)}"
    if not error:
        return f"{text}."
    if abs(mean) < 2 * error:
        return f"{text} (one standard error): within two of them from zero, so it may be noise."
    return f"{text} (one standard error): more than two of them from zero."


def time_sentence(parts: Mapping[str, float]) -> str:
    """What the time went into; nothing when it was not noted."""
    total = sum(parts.values())
    if total <= 0:
        return ""
    sampling, update = parts.get(GENERATE, 0.0), parts.get(UPDATE, 0.0)
    return (
        f"Of the time {percent(sampling / total)} went into sampling, {percent(update / total)} into the update, and "
        f"{(total - sampling - update) / total:.1%} into environments, validation and bookkeeping."
    )


def cautions(run: Run) -> list[str]:
    """What a reader should know before trusting the numbers."""
    found = []
    skipped = [r.iteration + 1 for r in run.metrics if r.update.skipped]
    if skipped:
        found.append(
            f"The optimiser step was skipped in {_named(skipped)}: too few rows had an advantage."
        )
    limit = run.config.trainer.max_logprob_gap
    apart = [r.iteration + 1 for r in run.metrics if (r.update.logprob_gap or 0.0) > limit]
    if apart:
        found.append(
            f"Sampler and trainer disagreed by more than {limit:g} about the trained tokens in {_named(apart)}."
        )
    faulty = sum(r.faulty for r in run.metrics)
    if faulty:
        found.append(
            f"Environments failed while they were played, reproducibly: {count(faulty, 'case')}."
        )
    return found


def _named(iterations: Sequence[int]) -> str:
    if len(iterations) == 1:
        return f"iteration {iterations[0]}"
    if len(iterations) > 6:
        return f"{len(iterations):,} iterations"
    return f"iterations {', '.join(map(str, iterations[:-1]))} and {iterations[-1]}"
