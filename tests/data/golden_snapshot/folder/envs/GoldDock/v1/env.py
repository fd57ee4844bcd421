"""Another dock."""


class GoldDockEnv:
    max_turns = 9
    # another
