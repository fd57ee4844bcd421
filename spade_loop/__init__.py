"""SPADE (arXiv 2608.19197) over any synthgym registry snapshot: one model designs environments and learns in them."""

from spade_loop.config import Config, load_config
from spade_loop.errors import SpadeLoopError

__all__ = ["Config", "SpadeLoopError", "load_config"]
