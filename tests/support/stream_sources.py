"""Sources that draw from random streams and read clocks, and what they showed before streams were made lazily."""

from __future__ import annotations

STREAMS: dict[str, tuple[str, list[str]]] = {
    "module functions": (
        """
import random
class AEnv:
    max_turns = 9
    def __init__(self): self.made = [random.random(), random.randint(0, 99)]
    def reset(self, seed):
        self.log = [self.made, random.random(), random.gauss(0, 1), random.sample(range(50), 4)]
        return str(self.log), {}
    def step(self, action):
        return str([random.choice("abcdef"), random.gauss(0, 1), random.getrandbits(40),
            random.randbytes(3)]), 0.0, False, False, {}
""",
        ["8f03f3da4f713518", "a3a64d08b8c73959", "05b94eeb71ce9c54"],
    ),
    "preloaded random": (
        """
class AEnv:
    max_turns = 9
    def reset(self, seed): return str(random.random()), {}
    def step(self, action):
        return str([random.uniform(0, 1), random.triangular(), random.betavariate(1, 2)]), 0.0, False, False, {}
""",
        ["90f6741db8e6274d", "4b9a74ecdc659093", "718a09b6d3b30b69"],
    ),
    "seeded by the episode": (
        """
import random
class AEnv:
    max_turns = 9
    def reset(self, seed): self.rng = random.Random(seed); return str(self.rng.random()), {}
    def step(self, action):
        return str([self.rng.random(), self.rng.gauss(0, 1), self.rng.choices("abc", k=3)]), 0.0, False, False, {}
""",
        ["e96638eb0de85a95", "fd4caf27117f43e6", "eeaf10df980a5635"],
    ),
    "unseeded everywhere": (
        """
import random
EARLY = random.Random()
FIXED = random.Random(5)
class AEnv:
    max_turns = 9
    def __init__(self): self.mid = random.Random(); self.other = random.Random(None)
    def reset(self, seed):
        self.late = random.Random()
        return str([g.random() for g in (EARLY, FIXED, self.mid, self.other, self.late)]), {}
    def step(self, action):
        more = random.Random()
        return str([g.random() for g in (EARLY, FIXED, self.mid, self.other, self.late, more)]), 0.0, False, False, {}
""",
        ["26687b5eaf395434", "43ed02f7bdf9140a", "b8ba6b34997c1c4e"],
    ),
    "seeds of many kinds": (
        """
from random import Random, seed as seed_all, random as draw
class AEnv:
    max_turns = 9
    def reset(self, seed):
        made = [Random(x) for x in (0, -3, 2**70, 1.5, "abc", b"xyz", bytearray(b"q"), True, None)]
        made[0].seed(4, 1); made[1].seed("abc", version=1); made[2].seed(None); made[3].seed()
        self.made = made
        return str([g.random() for g in made] + [draw()]), {}
    def step(self, action):
        if action == "1": seed_all(7)
        if action == "2": seed_all(None)
        if action == "3": seed_all()
        if action == "4": seed_all("text", 1)
        return str([g.gauss(0, 1) for g in self.made] + [draw(), Random().random()]), 0.0, False, False, {}
""",
        ["2cacaa72e4301c38", "07e2580485fe4303", "3bb1127e91c3fd1b"],
    ),
    "states": (
        """
import random, copy
class AEnv:
    max_turns = 9
    def __init__(self):
        self.free = random.Random(); self.held = random.Random(); self.held.setstate(random.Random(3).getstate())
    def reset(self, seed):
        self.twin = copy.copy(self.free); self.deep = copy.deepcopy(self.held)
        self.state = random.getstate()
        return str([self.free.random(), self.held.random(), self.twin.random(), self.deep.random(),
            random.random()]), {}
    def step(self, action):
        if action == "2": random.setstate(self.state)
        self.free.setstate(self.twin.getstate())
        return str([self.free.random(), self.held.random(), self.twin.random(), self.deep.random(),
            random.random(), random.Random().random()]), 0.0, False, False, {}
""",
        ["bffee0f76b9126b2", "61879b0960e50444", "0fc8eaadd7d0d1da"],
    ),
    "subclasses": (
        """
import random
class Dice(random.Random):
    def __init__(self, sides, seed=None): super().__init__(seed); self.sides = sides
    def roll(self): return self.randint(1, self.sides)
class Plain(random.Random): pass
class Loud(random.Random):
    def seed(self, a=None, version=2): self.seen = a; super().seed(a, version)
class Half(random.Random):
    def random(self): return super().random() / 2
class AEnv:
    max_turns = 9
    def __init__(self): self.dice = Dice(6); self.plain = Plain(); self.loud = Loud(3)
    def reset(self, seed):
        self.half = Half(seed); self.more = [Dice(20, seed), Plain(seed), Loud(), Half()]
        return str([self.dice.roll(), self.plain.random(), self.loud.random(), self.loud.seen,
            self.half.randint(0, 99)]), {}
    def step(self, action):
        return str([self.dice.roll(), self.plain.random(), self.loud.random(), self.half.choice("abcdefgh"),
            [g.random() for g in self.more], isinstance(self.half, random.Random)]), 0.0, False, False, {}
""",
        ["1c237f9e1b72bd36", "9213726802e2b177", "5a0ddbf960ecda71"],
    ),
    "draws while the module runs": (
        """
import random, time
LUCK = [random.random(), random.randint(0, 9), random.Random().random(), time.time()]
class AEnv:
    max_turns = 9
    def __init__(self): self.made = [random.random(), random.Random().random(), time.time()]
    def reset(self, seed):
        return str([LUCK, self.made, random.random(), random.Random().random(), time.time()]), {}
    def step(self, action): return str([LUCK, random.random(), time.monotonic()]), 0.0, False, False, {}
""",
        ["759745bb5e3b2c52", "c5f1b609e6097491", "16e32d1f44b73b10"],
    ),
    "clocks": (
        """
import time, datetime
from datetime import datetime as dt, date, timezone
from time import perf_counter, sleep
class AEnv:
    max_turns = 9
    def __init__(self): self.start = time.time()
    def reset(self, seed):
        sleep(2.5)
        return str([self.start, time.time(), dt.now(), date.today(), time.strftime("%H:%M:%S")]), {}
    def step(self, action):
        time.sleep(60)
        return str([perf_counter(), time.time_ns(), dt.now(timezone.utc), dt.utcnow(), time.gmtime().tm_min,
            datetime.datetime.now() - dt(2020, 1, 1)]), 0.0, False, False, {}
""",
        ["38b8b394c6447c53", "38b8b394c6447c53", "38b8b394c6447c53"],
    ),
    "bound methods and generators kept": (
        """
import random
def walk():
    while True: yield random.random()
class AEnv:
    max_turns = 9
    def __init__(self):
        self.roll = random.random
        self.walk = walk()
        self.lazy = (random.random() for _ in range(99))
    def reset(self, seed):
        self.make = random.Random
        return str([self.roll(), next(self.walk), next(self.lazy)]), {}
    def step(self, action):
        return str([self.roll(), next(self.walk), next(self.lazy), self.make().random()]), 0.0, False, False, {}
""",
        ["1c15a911c0973eaa", "36475639ec13346a", "ac1dffaef2c27199"],
    ),
}
"""The digests are of the texts of a reset and six steps, for the seeds 0, 7 and 2**63 - 1."""
