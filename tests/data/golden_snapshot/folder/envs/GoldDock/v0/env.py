"""One dock, six ships: é€🚢."""


class GoldDockEnv:
    max_turns = 9
