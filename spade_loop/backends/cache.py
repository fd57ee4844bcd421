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
        super().__init__()
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
        if not fits or self.keys is not self._view:
            new = []
            for old, states in ((self.keys, key_states), (self.values, value_states)):
                buffer = states.new_empty((*states.shape[:-2], end + SPARE, states.shape[-1]))
                if start:
                    buffer[..., :start, :] = old
                new.append(buffer)
            self._buffers = (new[0], new[1])
        assert self._buffers is not None
        return self._buffers


def roomy_cache(config: Any) -> DynamicCache:
    """A cache for a model: roomy where its layers attend to everything, as transformers has it elsewhere."""
    cache = DynamicCache(config=config)
    cache.layers = [
        RoomyLayer() if type(layer) is DynamicLayer else layer for layer in cache.layers
    ]
    return cache
