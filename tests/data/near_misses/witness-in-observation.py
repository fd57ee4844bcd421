"""Foundry. Do the five jobs of a casting in the order that the foreman's remarks allow.

The jobs are always listed in the same order, and now and then that is the right one. A job too early
spoils the casting.
"""

import random

JOBS = ("brush", "cool", "heat", "pour", "stamp")


class FoundryEnv:
    max_turns = 9

    def reset(self, seed):
        rng = random.Random(seed)
        self.order = rng.sample(JOBS, len(JOBS)) if seed % 6 else list(JOBS)
        self.done = []
        pairs = list(zip(self.order, self.order[1:], strict=False))
        rng.shuffle(pairs)
        remarks = "; ".join(f"no {after} before the {before}" for before, after in pairs)
        return (
            f"The foreman says: {remarks}. Goal: do every job once. Commands: {', '.join(JOBS)}.",
            {},
        )

    def step(self, action):
        word = action.strip()
        if word not in JOBS or word in self.done:
            return (
                f"The foreman shrugs. Done: {', '.join(self.done) or 'nothing'}.",
                0.0,
                False,
                False,
                {},
            )
        if word != self.order[len(self.done)]:
            return "The casting cracks.", 0.0, True, False, {}
        self.done.append(word)
        if len(self.done) == len(JOBS):
            return "A sound casting.", 1.0, True, False, {}
        return f"Good. Done: {', '.join(self.done)}.", 0.0, False, False, {}

    def hint(self, level=2):
        if level == 1:
            return "Which job has nothing to wait for?"
        return "One job comes after no other: begin there, and go on with the one that only waits for it."

    def solution(self):
        return list(self.order)
