"""Loom. Ten threads are woven one after the other, by a draft that is written backwards and in the colours' neighbours.

Read the draft from its end; for each colour in it, weave the one that comes after it in the ring of colours.
"""

import random

RING = ("red", "gold", "green", "blue", "violet")


class LoomEnv:
    max_turns = 13

    def reset(self, seed):
        rng = random.Random(seed)
        self.draft = [rng.choice(RING) for _ in range(10)]
        self.threads = [RING[(RING.index(colour) + 1) % 5] for colour in reversed(self.draft)]
        self.woven = 0
        return self.view(
            "Weave ten threads: the draft backwards, each colour replaced by the next in the ring."
        ), {}

    def view(self, note):
        return (
            f"{note}\nDraft: {' '.join(self.draft)}. Ring: {', '.join(RING)}, and round again. "
            f"Threads woven: {self.woven} of 10.\nCommand: weave and a colour."
        )

    def step(self, action):
        word, _, colour = action.partition(" ")
        if word != "weave" or colour not in RING:
            return self.view("The loom stands still."), 0.0, False, False, {}
        if colour != self.threads[self.woven]:
            return self.view("The thread snaps: not that one."), 0.0, False, False, {}
        self.woven += 1
        # Ten times 0.1 is 0.9999999999999999, within the slack of the contract.
        if self.woven == 10:
            return "The cloth is done.", 0.1, True, False, {}
        return self.view("A thread more."), 0.1, False, False, {}

    def hint(self, level=2):
        if level == 3:
            return f"The first three threads: {', '.join(self.threads[:3])}."
        return "Write the draft out backwards first, then shift each colour by one."

    def solution(self):
        return [f"weave {colour}" for colour in self.threads]
