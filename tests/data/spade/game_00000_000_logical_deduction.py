"""A vault dial game: find the code of three digits from how far off each guess is."""
import random


class VaultDialEnv:
    def __init__(self, max_turns=15, **kwargs):
        self.max_turns = max_turns
        self.turn_count = 0
        self.code = []
        self.tried = 0
        self.reset()

    def reset(self, seed=None):
        if seed is not None:
            random.seed(seed)
        self.code = [random.randint(0, 9) for _ in range(3)]
        self.turn_count = 0
        self.armed = False
        return (
            "A vault has a dial with a code of three digits. First arm the dial with \\boxed{arm}. "
            "Then guess with \\boxed{d d d}; for each digit you are told whether it is too low, too high or right.",
            {"turn": 0},
        )

    def _parse(self, action):
        match = re.search(r"\\boxed\{(.*?)\}", action)
        return match.group(1).strip().lower() if match else None

    def step(self, action):
        self.turn_count += 1
        truncated = self.turn_count >= self.max_turns
        command = self._parse(action)
        if command is None:
            return "Put your action in \\boxed{}.", -0.1, False, truncated, {}
        if command == "arm":
            self.armed = True
            return "The dial hums.", 0.0, False, truncated, {}
        parts = command.split()
        if not self.armed:
            return "The dial is not armed.", 0.0, False, truncated, {}
        if len(parts) != 3 or not all(p in "0123456789" and len(p) == 1 for p in parts):
            return "A guess is three digits.", -0.1, False, truncated, {}
        guess = [int(p) for p in parts]
        if guess == self.code:
            return "The vault opens.", 1.0, True, False, {"success": True}
        words = ["right" if g == c else "too low" if g < c else "too high" for g, c in zip(guess, self.code)]
        return "Feedback: " + ", ".join(words) + ".", 0.05, False, truncated, {}

    def solution(self):
        return "1. \\boxed{arm} 2. \\boxed{" + " ".join(map(str, self.code)) + "}"

    def close(self):
        pass
