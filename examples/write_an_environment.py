"""Write an environment, have it checked, and give it to others.

The source is text, as a language model would send it. A broken variant shows what a refusal looks like. The good one
becomes a spec, is played, and is written to a snapshot: a folder from which Gymnasium makes it.

    python examples/write_an_environment.py [FOLDER]
"""

import sys
import tempfile
from pathlib import Path

import gymnasium

import synthgym

SOURCE = '''"""Open a vault. Its dial tells whether a number is too low or too high; then pull the handle."""

import random

COMMANDS = "Commands: `dial <number>`, `pull`."


class VaultEnv:
    max_turns = 12

    def reset(self, seed):
        self.number = random.Random(seed).randint(20, 90)
        self.at, self.paid = 0, 0.0
        return f"A vault with a dial from 20 to 90. Goal: open it. {COMMANDS}", {}

    def step(self, action):
        match action.split():
            case ["dial", number] if number.isdecimal() and len(number) == 2:
                self.at = int(number)
                earned = 0.5 - self.paid if self.at == self.number else 0.0
                self.paid += earned
                return f"The dial stands {self.sign()}. {COMMANDS}", earned, False, False, {}
            case ["pull"] if self.at == self.number:
                return "The vault opens.", 1.0 - self.paid, True, False, {}
        return f"Nothing happens. {COMMANDS}", 0.0, False, False, {}

    def sign(self):
        if self.at == self.number:
            return "right, and something clicks"
        return "too low" if self.at < self.number else "too high"

    def hint(self, level=2):
        return "Halve what is left: each try in the middle rules out half of the numbers."

    def solution(self):
        return [f"dial {self.number}", "pull"]
'''
BROKEN = (SOURCE.replace("import random", "import os"), SOURCE.replace("1.0 - self.paid", "1.0"))


def main(folder: Path) -> None:
    for broken in BROKEN:
        for finding in synthgym.validate(broken).findings:
            print(f"refused: {finding}\n  {finding.reason.explanation} {finding.reason.remedy}")
    report = synthgym.validate(SOURCE)
    print(f"accepted: {report.ok}; won by agents that understand nothing: {dict(report.wins)}")
    spec = synthgym.SynthEnvSpec(record=report.record, name="Vault", skills=("optimisation",))

    env = synthgym.HintWrapper(synthgym.SynthEnv(spec))
    print(env.reset(seed=3)[0], "\n>", env.step("dial 55")[0])
    env.close()

    snapshot = synthgym.write_snapshot(folder / "vaults", [spec], name="vaults", version="0.1.0")
    print("registered:", synthgym.register_snapshot(snapshot))
    env = gymnasium.make("synthgym/Vault-v0")
    print(env.reset(seed=3)[0])
    env.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        main(Path(sys.argv[1] if len(sys.argv) > 1 else scratch))
