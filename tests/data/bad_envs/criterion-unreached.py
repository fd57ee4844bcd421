"""Locker room. Take the key, then open the locker whose number is the sum of the two on the note."""

import random

from synthgym.contract import ToolEnv, ToolError


class LockerEnv(ToolEnv):
    """The note shows two numbers; only their sum opens a locker, and only with the key."""

    max_turns = 10

    def setup(self, seed):
        rng = random.Random(seed)
        self.left, self.right = rng.randint(11, 49), rng.randint(11, 49)
        self.has_key = self.is_open = False
        self.instruct("Take the key with you.", lambda: self.has_key)
        self.instruct(
            "Open the locker that the note means.", lambda: self.is_open and not self.has_key
        )
        return "A locker room. On the bench lie a key and a note; lockers are numbered 20 to 99."

    def tool_read_note(self) -> str:
        """Read the note."""
        return f"It says {self.left} and {self.right}."

    def tool_take_key(self) -> str:
        """Take the key from the bench."""
        self.has_key = True
        return "You have the key."

    def tool_open_locker(self, number: int) -> str:
        """Open a locker by its number."""
        if not self.has_key:
            raise ToolError("you have no key")
        self.is_open = number == self.left + self.right
        return "The locker opens." if self.is_open else "It does not open."

    def hint(self, level=2):
        return "Take the key first, and add before you open."

    def solution(self):
        number = self.left + self.right
        return [
            self.call("read_note"),
            self.call("take_key"),
            self.call("open_locker", number=number),
        ]
