"""Auction room. Six bids are called, one a turn, whether you listen or not; keep the highest and the lowest.

Nobody repeats a bid, so remember them. `note <bid>` writes down a bid that has been called, `strike` takes out the last
one written, `nod` keeps you in the room. `hand in` ends it: then just the highest and the lowest must be noted.
"""

import random


class AuctionRoomEnv:
    max_turns = 14

    def reset(self, seed):
        rng = random.Random(seed)
        self.bids = rng.sample(range(110, 990), 6)
        self.called, self.notes = 0, []
        return self.view(
            "Six bids will be called, one a turn. Goal: hand in the highest and the lowest."
        ), {}

    def view(self, note):
        return f"{note}\nNoted: {len(self.notes)}. Commands: nod, note <bid>, strike, hand in."

    def step(self, action):
        words = action.split()
        if words == ["hand", "in"] and self.notes:
            if sorted(self.notes) == [min(self.bids), max(self.bids)]:
                return "The clerk stamps your paper.", 1.0, True, False, {}
            return "The clerk tears it up.", 0.0, True, False, {}
        called = {str(bid): bid for bid in self.bids[: self.called]}
        if (
            len(words) == 2
            and words[0] == "note"
            and called.get(words[1], 0) not in (0, *self.notes)
        ):
            self.notes.append(called[words[1]])
            news = "You write it down."
        elif words == ["strike"] and self.notes:
            self.notes.pop()
            news = "You cross it out."
        else:
            news = "You nod." if words == ["nod"] else "Heads turn towards you."
        if self.called < len(self.bids):
            self.called += 1
            news += f" The crier calls {self.bids[self.called - 1]}."
        return self.view(news), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 1:
            return "Most bids can be forgotten at once."
        return "Keep only two bids in mind: when a new one is called, ask whether it replaces one of them."

    def solution(self):
        waits = ["nod"] * len(self.bids)
        return [*waits, f"note {max(self.bids)}", f"note {min(self.bids)}", "hand in"]
