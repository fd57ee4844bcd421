"""Find the entry that is wrong."""


class GoldLedgerEnv:
    max_turns = 9
