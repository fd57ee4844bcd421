"""A key/value cache with spare room: appending a token copies that token, not everything before it."""

from __future__ import annotations

from typing import Any

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

SPARE = 128
"""Positions allocated ahead. transformers' DynamicLayer reallocates the whole cache for every token."""


class RoomyLayer(DynamicLayer):
    """A `DynamicLayer` whose keys and values [batch, heads, length, size] are views into larger buffers."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._buffers: tuple[torch.Tensor, torch.Tensor] | None = None
        self._view: torch.Tensor | None = None

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append to the cache; the keys and values so far."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        start = self.get_seq_length()
        end = start + key_states.shape[-2]
        keys, values = self._room(start, end, key_states, value_states)
        keys[..., start:end, :] = key_states
        values[..., start:end, :] = value_states
        self.keys, self.values = keys[..., :end, :], values[..., :end, :]
        self._view = self.keys
        return self.keys, self.values

    def _room(
        self, start: int, end: int, key_states: torch.Tensor, value_states: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Buffers for `end` positions. New ones when they are too small, or when someone else replaced the view."""
        fits = self._buffers is not None and self._buffers[0].shape[-2] >= end
        if self._buffers is None or not fits or self.keys is not self._view:
            self._buffers = (
                _extended(self.keys, key_states, start, end + SPARE),
                _extended(self.values, value_states, start, end + SPARE),
            )
        return self._buffers


def _extended(old: torch.Tensor | None, like: torch.Tensor, used: int, room: int) -> torch.Tensor:
    """A buffer with `room` positions for states like `like`, the first `used` copied from `old`."""
    buffer = like.new_empty((*like.shape[:-2], room, like.shape[-1]))
    if old is not None and used:
        buffer[..., :used, :] = old
    return buffer


def roomy_cache(config: Any) -> DynamicCache:
    """A cache for a model: roomy where its layers attend to everything, as transformers has it elsewhere."""
    cache = DynamicCache(config=config)
    cache.layers = [
        RoomyLayer() if type(layer) is DynamicLayer else layer for layer in cache.layers
    ]
    return cache
