"""Brittle. Say `go` twice. It cannot be reset with 3, and with an odd seed it breaks on the second turn."""


class BrittleEnv:
    max_turns = 4

    def reset(self, seed):
        if seed == 3:
            raise RuntimeError("three")
        self.seed, self.gone = seed, 0
        return "Commands: go, wait.", {}

    def step(self, action):
        self.gone += action == "go"
        if self.gone == 2:
            if self.seed % 2:
                raise RuntimeError("odd")
            return "There.", 0.5, True, False, {}
        return "Commands: go, wait.", 0.5 * (action == "go"), False, False, {}

    def hint(self, level=2):
        return "Go."

    def solution(self):
        if self.seed == 4:
            raise RuntimeError("four")
        return ["go", "go"]
