"""Scripted agents: from what is seen to what is done, without understanding."""

from synthgym.agents.filling import blanks, fill
from synthgym.agents.offers import offered
from synthgym.agents.scripts import (
    Agent,
    Script,
    copying,
    null,
    random_words,
    repeating,
    scraping,
    scripted,
)
from synthgym.agents.text import MAX_READ

__all__ = [
    "MAX_READ",
    "Agent",
    "Script",
    "blanks",
    "copying",
    "fill",
    "null",
    "offered",
    "random_words",
    "repeating",
    "scraping",
    "scripted",
]
