"""Night courier. Four posts stand on the road to the camp, and each one asks for the watchword of the night.

The watchword changes from post to post. A post that hears a wrong word lets you try again, while the night lasts.
"""

import random

WORDS = [
    *("anchor", "barley", "candle", "dagger", "ember", "falcon", "garnet", "hollow"),
    *("iron", "juniper", "kettle", "lantern", "marrow", "needle", "otter", "pepper"),
]
POSTS = 4


class CourierEnv:
    max_turns = 10

    def reset(self, seed):
        rng = random.Random(seed)
        self.words = rng.sample(WORDS, POSTS)
        self.passed = 0
        self.paid = 0.0
        return self.view("You carry a letter to the camp. It must be there before dawn."), {}

    def view(self, note):
        word = self.words[self.passed]
        return (
            f"{note}\nPost {self.passed + 1} of {POSTS}. Halt! Tonight the watchword is {word}.\n"
            "Commands: say <word>."
        )

    def step(self, action):
        if action.split() != ["say", self.words[self.passed]]:
            return self.view("The guard shakes his head."), 0.0, False, False, {}
        self.passed += 1
        if self.passed == POSTS:
            return "The letter is in the camp.", 1.0 - self.paid, True, False, {}
        self.paid += 0.2
        return self.view("You may pass."), 0.2, False, False, {}

    def hint(self, level=2):
        return "A guard wants to hear just what he has called out himself."

    def solution(self):
        return [f"say {word}" for word in self.words]
