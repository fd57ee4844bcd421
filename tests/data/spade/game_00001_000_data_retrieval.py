"""A parcel depot: read the depot's lists with tools, then answer."""
import random
import json
from typing import Tuple


class ParcelDepotEnv(ToolUseBaseEnv):
    def __init__(self, max_turns=12, **kwargs):
        super().__init__(max_turns=max_turns)

    def reset(self, seed=None) -> Tuple[str, dict]:
        self.turn_count = 0
        self._call_history = []
        if seed is not None:
            random.seed(seed)
        shelves = ["north", "south", "east", "west"]
        self._state = {
            "parcels": {
                f"P{random.randint(100, 999)}": {"shelf": random.choice(shelves), "grams": random.randint(50, 4000)}
                for _ in range(12)
            }
        }
        self._tools = {
            "list_shelf": {
                "description": "List the parcels on a shelf",
                "parameters": {
                    "type": "object",
                    "properties": {"shelf": {"type": "string", "enum": shelves}},
                    "required": ["shelf"],
                },
            },
            "weigh": {
                "description": "Weigh a parcel",
                "parameters": {"type": "object", "properties": {"parcel": {"type": "string"}}, "required": ["parcel"]},
            },
        }
        self.shelf = random.choice(sorted({p["shelf"] for p in self._state["parcels"].values()}))
        self._expected_answer = sum(p["grams"] for p in self._state["parcels"].values() if p["shelf"] == self.shelf)
        return f"TASK: How many grams lie on the {self.shelf} shelf in all? Answer with <answer>N</answer>.", {}

    def tool_list_shelf(self, shelf="") -> str:
        found = [k for k, v in sorted(self._state["parcels"].items()) if v["shelf"] == shelf]
        return json.dumps(found)

    def tool_weigh(self, parcel="") -> str:
        if parcel not in self._state["parcels"]:
            return f"Error: no parcel {parcel}"
        return str(self._state["parcels"][parcel]["grams"])

    def solution(self) -> str:
        return f'1. list_shelf(shelf="{self.shelf}") -> then weigh each. ANSWER: {self._expected_answer}'
