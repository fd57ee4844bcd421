"""A workshop with several instructions in a row."""
import random
import json


class WorkshopMTEnv(ToolUseBaseEnv):
    def reset(self, seed=None):
        self.turn_count = 0
        self._call_history = []
        if seed is not None:
            random.seed(seed)
        names = random.sample(["lathe", "saw", "drill", "press", "kiln", "forge"], 4)
        self.first, self.second = names[0], names[1]
        self.level = random.randint(2, 9)
        self._state = {"machines": {n: {"on": False, "level": 0} for n in names}, "last_read": None}
        self._tools = {
            "switch": {
                "description": "Switch a machine on or off",
                "parameters": {
                    "type": "object",
                    "properties": {"machine": {"type": "string"}, "on": {"type": "boolean"}},
                    "required": ["machine", "on"],
                },
            },
            "set_level": {
                "description": "Set the level of a machine that is on",
                "parameters": {
                    "type": "object",
                    "properties": {"machine": {"type": "string"}, "level": {"type": "integer"}},
                    "required": ["machine", "level"],
                },
            },
            "read": {
                "description": "Read the state of a machine",
                "parameters": {"type": "object", "properties": {"machine": {"type": "string"}}, "required": ["machine"]},
            },
        }
        self._user_messages = [
            f"Please start the {self.first}.",
            f"Set the {self.first} to level {self.level}.",
            f"Tell me how the {self.second} stands.",
        ]
        self._message_criteria = [
            lambda s: s["machines"][self.first]["on"],
            lambda s: s["machines"][self.first]["level"] == self.level,
            lambda s: s["last_read"] == self.second,
        ]
        self._current_msg = 0
        self._expected_answer = "done"
        return (self._user_messages[0], {})

    def _advance_if_done(self):
        if self._current_msg >= len(self._user_messages):
            return ""
        if self._message_criteria[self._current_msg](self._state):
            self._current_msg += 1
            if self._current_msg >= len(self._user_messages):
                return "\n\n[ALL STEPS COMPLETE] Submit <answer>done</answer>."
            return "\n\n[NEW INSTRUCTION] " + self._user_messages[self._current_msg]
        return ""

    def _check_answer(self, answer):
        return answer.strip().lower() == "done" and self._current_msg >= len(self._user_messages)

    def tool_switch(self, machine="", on=True):
        if machine not in self._state["machines"]:
            return f"Error: no {machine}" + self._advance_if_done()
        self._state["machines"][machine]["on"] = on
        return f"{machine} is {'on' if on else 'off'}" + self._advance_if_done()

    def tool_set_level(self, machine="", level=0):
        found = self._state["machines"].get(machine)
        if found is None or not found["on"]:
            return "Error: it is not on" + self._advance_if_done()
        found["level"] = level
        return f"{machine} at {level}" + self._advance_if_done()

    def tool_read(self, machine=""):
        self._state["last_read"] = machine
        return json.dumps(self._state["machines"].get(machine)) + self._advance_if_done()

    def solution(self):
        return (
            f"1. switch(machine='{self.first}', on=True) -> on "
            f"2. set_level(machine='{self.first}', level={self.level}) "
            f"3. read(machine='{self.second}') ANSWER: done"
        )
