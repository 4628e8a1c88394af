"""Cache of attention keys and values for later calls."""

from collections.abc import Callable, Iterator
from typing import Any

from retrograd.core import operator_named
from retrograd.nn.module import Module

_cat = operator_named("cat")
_index_select = operator_named("index_select")

Pair = tuple[Any, Any]


class KVCache:
    """Store the keys and values of attention modules, so that generation computes each position only once.

    Pass only the new positions, with the same cache each time, to a `MultiheadAttention`, a transformer's layer,
    encoder or decoder: `layer(x, is_causal=True, cache=cache)`. Queries attend to the cached positions too. Keys and
    values of a decoder's memory are computed in the first call, then reused. `len(cache)` is the number of cached
    positions.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    >>> x, cache = rg.randn(1, 5, 8), nn.KVCache()
    >>> steps = [layer(x[:, i : i + 1], is_causal=True, cache=cache) for i in range(5)]
    >>> bool((rg.cat(steps, 1) - layer(x, is_causal=True)).abs().amax() < 1e-5), len(cache)
    (True, 5)
    """

    def __init__(self) -> None:
        self._self_pairs: dict[Module, Pair] = {}
        self._memory_pairs: dict[Module, Pair] = {}

    def update(self, owner: Module, project: Callable[[], Pair]) -> Pair:
        """Return all keys and values (batch, heads, positions, size) of a module; `project` computes the new ones."""
        key, value = project()
        before = self._self_pairs.get(owner)
        if before is not None:
            if before[0].shape[:-2] != key.shape[:-2]:
                raise ValueError(
                    f"KVCache: the cache is of batch and heads {before[0].shape[:-2]}, the input of {key.shape[:-2]}"
                )
            key, value = (_cat([old, new], -2) for old, new in zip(before, (key, value), strict=True))
        self._self_pairs[owner] = key, value
        return key, value

    def cached_length(self, owner: Module) -> int:
        """Return the number of positions cached for a module."""
        return int(self._self_pairs[owner][0].shape[-2]) if owner in self._self_pairs else 0

    @property
    def memory(self) -> "Memory":
        """Return the part of the cache that does not grow, for cross-attention."""
        return Memory(self._memory_pairs)

    def reorder(self, order: Any) -> None:
        """Select, or repeat, members of the batch by index: a beam search retains its best beams."""
        for pairs in (self._self_pairs, self._memory_pairs):
            for owner, pair in pairs.items():
                pairs[owner] = tuple(_index_select(x, 0, order) for x in pair)

    def crop(self, length: int) -> None:
        """Drop all positions except the first `length`."""
        if not 0 <= length <= len(self):
            raise ValueError(f"KVCache.crop: length must lie between 0 and {len(self)}, got {length}")
        self._self_pairs = {
            owner: (key[..., :length, :], value[..., :length, :]) for owner, (key, value) in self._pairs()
        }

    def _pairs(self) -> Iterator[tuple[Module, Pair]]:
        return iter(self._self_pairs.items())

    def __len__(self) -> int:
        return next((int(key.shape[-2]) for _, (key, _) in self._pairs()), 0)

    def __bool__(self) -> bool:
        return True  # not false when empty: an empty cache is still a cache


class Memory:
    """Keys and values that are computed once."""

    def __init__(self, pairs: dict[Module, Pair]) -> None:
        self._memory_pairs = pairs

    def update(self, owner: Module, project: Callable[[], Pair]) -> Pair:
        """Return the keys and values of the first call."""
        if owner not in self._memory_pairs:
            self._memory_pairs[owner] = project()
        return self._memory_pairs[owner]
