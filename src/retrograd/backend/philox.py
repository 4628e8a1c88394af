"""Streams of random numbers: NumPy's generators over Philox, whose uniform numbers several threads may draw."""

import math

import numpy as np

from retrograd import kernels

MANY = 16_384  # numbers from which on drawing them by whole counters pays


def random_source(seed):
    """A NumPy generator over Philox, a function of the seed alone."""
    return np.random.Generator(np.random.Philox(seed))


def uniform(source, size, dtype=np.float64):
    """Return `source.random(size, dtype)` and advance the source alike; many values come from a kernel."""
    count = math.prod(size)
    if count < MANY:
        return source.random(size, dtype)
    out = np.empty(count, dtype)
    state = source.bit_generator.state
    single = out.dtype == np.float32
    each = 8 if single else 4  # numbers of a counter
    begun = (4 - state["buffer_pos"]) * each // 4 + (single and state["has_uint32"])
    end = begun + (count - begun - 1) // each * each  # at least one number is left to the source: it ends as it would
    source.random(dtype=dtype, out=out[:begun])
    kernels.uniform(state["state"]["key"], state["state"]["counter"], out[begun:end])
    skip_uniform(source, end - begun, dtype)
    source.random(dtype=dtype, out=out[end:])
    return out.reshape(size)


def skip_uniform(source, count, dtype):
    """Put a source where `source.random(count, dtype)` would leave it, without drawing more than a few numbers.

    Double precision takes a word of 64 bits for each number; single takes half of one, and keeps the other half.
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
        bits.advance(blocks)  # from the end of the present block
        bits.state = {**bits.state, **kept}
        bits.random_raw(rest, output=False)
    if half:
        source.random(1, np.float32)
