"""Carillon. Bells have rung a pattern; ring on where it stopped, six strokes without a mistake.

The pattern has a length of three to five strokes and is shown more than twice, so what comes next can be read in what
has been. A wrong bell ends it.
"""

import random

BELLS = ("bass", "tenor", "alto", "treble")
STROKES = 6


class CarillonEnv:
    max_turns = 10

    def reset(self, seed):
        rng = random.Random(seed)
        while True:
            pattern = [rng.choice(BELLS) for _ in range(rng.randint(3, 5))]
            if len(set(pattern)) > 2:
                break
        heard = 3 * len(pattern) + rng.randint(1, len(pattern))
        peal = pattern * 8
        self.heard, self.coming = peal[:heard], peal[heard : heard + STROKES]
        self.rung = 0
        return (
            f"The bells rang: {', '.join(self.heard)}. Goal: ring the next {STROKES}, one a turn. "
            f"Reply with one of: {', '.join(BELLS)}."
        ), {}

    def step(self, action):
        word = action.strip()
        if word not in BELLS:
            return f"No such bell. {self.rung} of {STROKES} are rung.", 0.0, False, False, {}
        if word != self.coming[self.rung]:
            return "The ringers stop and look at you.", 0.0, True, False, {}
        self.rung += 1
        if self.rung == STROKES:
            return "The peal comes round.", 1.0, True, False, {}
        return f"It fits. {self.rung} of {STROKES} are rung.", 0.0, False, False, {}

    def hint(self, level=2):
        if level == 1:
            return "What has been rung before will be rung again."
        return "Find the first place from which everything repeats; its length tells which stroke comes next."

    def solution(self):
        return list(self.coming)
