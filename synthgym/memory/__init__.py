"""Novelty memory: describe an environment, decide whether it is new, find its neighbours."""

from synthgym.memory.behaviour import Trace, behaviour_trace
from synthgym.memory.decision import Judge, Verdict
from synthgym.memory.describe import Description, describe
from synthgym.memory.embedder import Embedder, HashEmbedder, load_embedder
from synthgym.memory.novelty import NoveltyMemory
from synthgym.memory.records import MemoryRecord, Neighbour, NoveltyDecision, NoveltyReason
from synthgym.memory.review_band import ReviewBand, choose_review_band
from synthgym.memory.rules import Strictness

__all__ = [
    "Description",
    "Embedder",
    "HashEmbedder",
    "Judge",
    "MemoryRecord",
    "Neighbour",
    "NoveltyDecision",
    "NoveltyMemory",
    "NoveltyReason",
    "ReviewBand",
    "Strictness",
    "Trace",
    "Verdict",
    "behaviour_trace",
    "choose_review_band",
    "describe",
    "load_embedder",
]
