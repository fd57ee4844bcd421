"""Night watch. Find out at which hour the thief comes, from two tracks, and lie in wait then.

`follow <track>` tells an hour before or after which he never comes; the bell calls each hour of the night, whatever you
do, and so it calls the right one as well. `wait for <hour>` can be ordered once, after both tracks were followed.
"""

import random


class NightWatchEnv:
    max_turns = 18

    def reset(self, seed):
        rng = random.Random(seed)
        self.thief = rng.randint(2, 40)
        self.hour = 0
        self.followed = set()
        return self.view(
            "A thief comes at an hour of the week, 1 to 41. Goal: lie in wait at the right one."
        ), {}

    def view(self, note):
        return (
            f"{note}\nThe bell has struck {self.hour} of 41. "
            "Tracks: mud, snow. Commands: follow <track>, wait for <hour>."
        )

    def step(self, action):
        self.hour += 1
        words = action.split()
        if words == ["follow", "mud"]:
            self.followed.add("mud")
            return (
                self.view(f"Twice his hour is less than {2 * self.thief + 1}."),
                0.0,
                False,
                False,
                {},
            )
        if words == ["follow", "snow"]:
            self.followed.add("snow")
            return (
                self.view(f"Three times his hour is more than {3 * self.thief - 1}."),
                0.0,
                False,
                False,
                {},
            )
        if len(words) == 3 and words[:2] == ["wait", "for"] and len(self.followed) == 2:
            if words[2] == str(self.thief):
                return "You catch him.", 1.0, True, False, {}
            return "He laughs from afar.", 0.0, True, False, {}
        return self.view("The lantern flickers."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 1:
            return "Follow both tracks first."
        return "Each track bounds the hour from one side: divide, and see what is left between the bounds."

    def solution(self):
        return ["follow mud", "follow snow", f"wait for {self.thief}"]
