"""Streams of random numbers: NumPy's Philox generators, with uniform values drawn by several threads."""

import math

import numpy as np

from retrograd import kernels
from retrograd.kernels import empty

STATE_SIZE = 112  # the bytes of a packed state
MANY = 16_384  # values from which on drawing by whole counters is faster


def random_source(seed):
    """Return a NumPy generator over Philox that depends on the seed alone."""
    return np.random.Generator(np.random.Philox(seed))


def pack_state(seed, state):
    """Return a seed and the state of a source as an array of bytes: 14 little-endian numbers of 64 bits."""
    counter, key = state["state"]["counter"], state["state"]["key"]
    rest = state["buffer_pos"], state["has_uint32"], state["uinteger"]
    words = [seed, *counter.tolist(), *key.tolist(), *state["buffer"].tolist(), *rest]
    return np.array(words, "<u8").view(np.uint8)


def unpack_state(packed):
    """Return the seed and the state of a source from `pack_state`; ValueError for bytes that are none."""
    if packed.size != STATE_SIZE:
        found = f"but found the input RNG state size to be {packed.size}"
        raise ValueError(f"Expected an RNG state of size {STATE_SIZE} {found}")
    words = np.ascontiguousarray(packed).reshape(-1).view("<u8").astype(np.uint64)
    names, limits = ("buffer_pos", "has_uint32", "uinteger"), (4, 1, 2**32 - 1)
    if any(number > limit for number, limit in zip(words[11:].tolist(), limits, strict=True)):
        raise ValueError("RNG state is damaged")
    rest = {name: int(number) for name, number in zip(names, words[11:], strict=True)}
    parts = {"state": {"counter": words[1:5], "key": words[5:7]}, "buffer": words[7:11]}
    return int(words[0]), {"bit_generator": "Philox", **parts, **rest}


def mixed_words(entropy, count):
    """Return words of 32 bits, mixed from words by NumPy's SeedSequence, as Python numbers."""
    return np.random.SeedSequence(entropy).generate_state(count).tolist()


def uniform(source, size, dtype=np.float64):
    """Return `source.random(size, dtype)` and advance the source alike; many values come from a kernel."""
    count = math.prod(size)
    if count < MANY:
        return source.random(size, dtype)
    out = empty(count, dtype)
    state = source.bit_generator.state
    single = out.dtype == np.float32
    each = 8 if single else 4  # values per counter
    begun = (4 - state["buffer_pos"]) * each // 4 + (single and state["has_uint32"])
    end = begun + (count - begun - 1) // each * each  # the source draws the last value itself
    source.random(dtype=dtype, out=out[:begun])
    kernels.uniform(state["state"]["key"], state["state"]["counter"], out[begun:end])
    skip_uniform(source, end - begun, dtype)
    source.random(dtype=dtype, out=out[end:])
    return out.reshape(size)


def skip_uniform(source, count, dtype):
    """Advance a source as `source.random(count, dtype)` would, drawing at most a few values.

    Double precision consumes a 64-bit word per value; single consumes half of one, and buffers the other half.
    """
    bits, single = source.bit_generator, dtype == np.float32
    state = bits.state
    words, half = divmod(count - (single and count > 0 and state["has_uint32"]), 2) if single else (count, 0)
    kept = {"has_uint32": 0 if single and count else state["has_uint32"], "uinteger": state["uinteger"]}
    ready = 4 - state["buffer_pos"]
    if words <= ready:
        bits.state = {**state, **kept, "buffer_pos": state["buffer_pos"] + words}
    else:
        blocks, rest = divmod(words - ready, 4)
        bits.advance(blocks)  # from the end of the current block
        bits.state = {**bits.state, **kept}
        bits.random_raw(rest, output=False)
    if half:
        source.random(1, np.float32)
