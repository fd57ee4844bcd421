"""Play a bundled environment from code that knows only Gymnasium.

`synthgym:` in front of an id makes Gymnasium import the package, which registers its environments. The agent below was
written from the rules that the environment shows; it does not look at the solution. First it plays one environment,
then four copies of it as a vector environment, which share one worker process.
"""

import re

import gymnasium

ENV_ID = "synthgym:synthgym/SignalBox-v0"
SIGNAL = re.compile(r"The signal is lever (\d)")
HELD = re.compile(r"Lever \d does not move: lever (\d) stands wrong")


class LeverAgent:
    """Reasons backwards: try the signal; whenever a lever is held, throw first what holds it."""

    def __init__(self, first_observation: str) -> None:
        self.wanted = [SIGNAL.search(first_observation)[1]]

    def act(self) -> str:
        return f"throw {self.wanted[-1]}"

    def see(self, observation: str) -> None:
        held = HELD.search(observation)
        if held:
            self.wanted.append(held[1])
        elif len(self.wanted) > 1:
            self.wanted.pop()


def play_one() -> None:
    env = gymnasium.make(ENV_ID)
    observation, info = env.reset(seed=7)
    print(observation)
    # Wrappers hide plain attributes, hence `unwrapped`. The hint belongs to the instance just reset.
    print("\nHint:", env.unwrapped.hint, "\n")
    agent, over = LeverAgent(observation), False
    while not over:
        action = agent.act()
        observation, _, terminated, truncated, info = env.step(action)
        print(f"{info['turn']:2} {action}: {observation.splitlines()[0]}")
        agent.see(observation)
        over = terminated or truncated
    print("won" if info["success"] else "not won", "\n")
    env.close()


def play_four() -> None:
    envs = gymnasium.make_vec(ENV_ID, num_envs=4)
    observations, _ = envs.reset(seed=[11, 12, 13, 14])
    agents = [LeverAgent(observation) for observation in observations]
    turns = {}
    while len(turns) < 4:
        # An episode that is over is reset by the next step (Gymnasium's NEXT_STEP mode): we stop looking at it.
        observations, _, terminated, truncated, infos = envs.step([agent.act() for agent in agents])
        for i, agent in enumerate(agents):
            agent.see(observations[i])
            if i not in turns and (terminated[i] or truncated[i]):
                turns[i] = (int(infos["turn"][i]), bool(infos["success"][i]))
    for i, (turn, success) in sorted(turns.items()):
        print(f"copy {i}: {'won' if success else 'not won'} in {turn} turns")
    envs.close()


if __name__ == "__main__":
    play_one()
    play_four()
