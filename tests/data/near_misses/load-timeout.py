"""Prime ladder. From one prime of three digits to another, one digit a step, and every number on the way is a prime.

The primes and their neighbours are worked out once, when the file is loaded.
"""

import random
from collections import deque


def sieve(limit):
    """The primes below a limit."""
    prime = [False, False] + [True] * (limit - 2)
    for number in range(2, limit):
        if prime[number]:
            prime[number * number :: number] = [False] * len(prime[number * number :: number])
    return [number for number in range(limit) if prime[number]]


PRIMES = tuple(str(prime) for prime in sieve(1000) if prime > 100)
# A loop that looks as if it never ended: it takes a prime from the heap each time round.
NEIGHBOURS = {prime: [] for prime in PRIMES}
HEAP = list(PRIMES)
while HEAP:
    one = HEAP.pop()
    for other in HEAP:
        if sum(a != b for a, b in zip(one, other, strict=True)) == 1:
            NEIGHBOURS[one].append(other)
            NEIGHBOURS[other].append(one)


def ladder(start):
    """The shortest way to every prime that can be reached."""
    ways = {start: []}
    queue = deque(ways)
    while queue:
        prime = queue.popleft()
        for following in NEIGHBOURS[prime]:
            if following not in ways:
                ways[following] = [*ways[prime], following]
                queue.append(following)
    return ways


class LadderEnv:
    max_turns = 8

    def reset(self, seed):
        rng = random.Random(seed)
        self.at = rng.choice(PRIMES)
        ways = ladder(self.at)
        longest = max(len(way) for way in ways.values())
        self.way = rng.choice([way for way in ways.values() if len(way) >= min(4, longest)])
        self.goal = self.way[-1]
        note = (
            f"Climb from {self.at} to {self.goal}: change one digit at a time, and let every "
            "number on the way be a prime of three digits."
        )
        return self.view(note), {}

    def view(self, note):
        return f"{note}\nYou stand on {self.at}.\nCommand: to and the next prime."

    def step(self, action):
        word, _, number = action.partition(" ")
        if word != "to" or number not in NEIGHBOURS[self.at]:
            return self.view("No rung there."), 0.0, False, False, {}
        self.at = number
        if number == self.goal:
            return "You are on top.", 1.0, True, False, {}
        return self.view("It holds."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 3:
            return f"The first rung is {self.way[0]}."
        return "Change the last digit freely, it has the most primes; look back from the goal, too."

    def solution(self):
        return [f"to {prime}" for prime in self.way]
