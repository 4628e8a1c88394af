"""Helpers for batching rules.  The batch dimension is always the first dimension of a batched tensor."""

from retrograd.core import registry


def broadcast_batch(x, n):
    """Expand an unbatched tensor to n examples along a new first dimension; a view."""
    return registry["expand"](x, (n, *x.shape))


def batch_all(args, batched, n):
    """Batch every tensor among the arguments; numbers and None stay."""
    return [broadcast_batch(a, n) if hasattr(a, "shape") and not b else a for a, b in zip(args, batched, strict=True)]


def align_batched(args, batched, cores=None):
    """Align the arguments, so that they broadcast as single examples do after the batch dimension.

    The last dimensions of each, as many as `cores` says (default: none), are left out of this.
    """
    cores = cores or (0,) * len(args)
    ranks = [getattr(a, "ndim", 0) - b - core for a, b, core in zip(args, batched, cores, strict=True)]
    most = max(ranks)
    return [
        unsqueeze_n(a, most - rank) if b and rank < most else a for a, b, rank in zip(args, batched, ranks, strict=True)
    ]


def unsqueeze_n(x, count, at=1):
    """Insert `count` dimensions of size 1 at dimension `at`; a view."""
    return registry["reshape"](x, (*x.shape[:at], *(1,) * count, *x.shape[at:])) if count else x


def append_dims(x, ndim):
    """Append dimensions of size 1, to have `ndim` of them; a view."""
    return unsqueeze_n(x, ndim - x.ndim, x.ndim)


def at_least_1d(x):
    """Return a batch of scalars as a batch of vectors of size 1; others unchanged."""
    return unsqueeze_n(x, 1) if getattr(x, "ndim", 0) == 1 else x
