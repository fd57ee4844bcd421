"""Novelty memory: describe an environment, decide whether it is new, find its neighbours."""

from synthgym.memory.describe import Description, describe
from synthgym.memory.embedder import Embedder, HashEmbedder, load_embedder
from synthgym.memory.novelty import NoveltyMemory
from synthgym.memory.records import MemoryRecord, Neighbour, NoveltyDecision, NoveltyReason

__all__ = [
    "Description",
    "Embedder",
    "HashEmbedder",
    "MemoryRecord",
    "Neighbour",
    "NoveltyDecision",
    "NoveltyMemory",
    "NoveltyReason",
    "describe",
    "load_embedder",
]
