"""Old calculator. A machine with a stack must print a number that is made of four others.

It knows `push <number>` (each number of the tape once), `add`, `mul`, `sub` on the two topmost numbers, and `eval`,
which prints the stack when one number is left on it. It has no exec, no compile, and it never calls open().
"""

import random

# Not a call of eval(), exec() or __import__("os"): the words are the machine's own.
FORBIDDEN = ("exec", "compile", "open", "globals()", "__builtins__", "__import__('os').system")
__version__ = "1"


class _Tape:
    """The numbers that are left."""

    def __init__(self, numbers):
        self.__numbers = list(numbers)  # private, and mangled

    def open(self):
        return tuple(self.__numbers)

    def compile(self, word):
        """Take a number off the tape, if it is there."""
        for number in self.__numbers:
            if str(number) == word:
                self.__numbers.remove(number)
                return number
        return None


class CalculatorEnv:
    max_turns = 10

    def reset(self, seed):
        rng = random.Random(seed)
        numbers = rng.sample(range(3, 20), 4)
        self._input, self.__stack = _Tape(sorted(numbers)), []
        self._order = numbers
        a, b, c, d = numbers
        self._target = (a + b) * c - d
        return self._print("Print {0._target}.".format(self)), {}  # noqa: UP030, UP032

    def _print(self, note):
        tape = " ".join(map(str, self._input.open())) or "empty"
        stack = " ".join(map(str, self.__stack)) or "empty"
        return (
            f"{note}\nTape: {tape}. Stack: {stack}.\n"
            "Commands: push and a number of the tape, add, mul, sub, eval."
        )

    def step(self, action):
        if action in FORBIDDEN:
            return self._print(f"There is no {action} in this machine."), 0.0, False, False, {}
        word, _, rest = action.partition(" ")
        if word == "push" and (number := self._input.compile(rest)) is not None:
            self.__stack.append(number)
            return self._print("Pushed."), 0.0, False, False, {}
        if word in ("add", "mul", "sub") and not rest and len(self.__stack) > 1:
            right, left = self.__stack.pop(), self.__stack.pop()
            self.__stack.append(type(self).__mro__[0].__dict__["_" + word](self, left, right))
            return self._print("Done."), 0.0, False, False, {}
        if action == "eval" and self.__stack == [self._target]:
            return f"The machine prints {self._target}.", 1.0, True, False, {}
        return self._print("A red lamp blinks."), 0.0, False, False, {}

    def _add(self, left, right):
        return left + right

    def _mul(self, left, right):
        return left * right

    def _sub(self, left, right):
        return left - right

    def hint(self, level=2):
        if level == 3:
            return "Add {}, multiply by {}, subtract {}.".format("two of them", *self._order[2:])
        return "It is a sum, times a third number, less a fourth. Look near the multiples."

    def solution(self):
        a, b, c, d = self._order
        return [f"push {a}", f"push {b}", "add", f"push {c}", "mul", f"push {d}", "sub", "eval"]


if __name__ == "__main__":
    import sys

    print(eval(input()), file=sys.stderr)
