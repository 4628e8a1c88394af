"""What batching rules are made of.  The examples of a batch lie along the first dimension of what is batched."""

from retrograd.core import registry


def broadcast_batch(x, n):
    """A tensor that is the same for all examples, n times along a new first dimension; a view."""
    return registry["expand"](x, (n, *x.shape))


def batch_all(args, batched, n):
    """The arguments, with every tensor batched; numbers and None stay."""
    return [broadcast_batch(a, n) if hasattr(a, "shape") and not b else a for a, b in zip(args, batched, strict=True)]


def align_batched(args, batched, cores=None):
    """The arguments so that they broadcast as single examples do, behind the first dimension.

    Of each, the last dimensions, as many as `cores` says (default: none), take no part in that.
    """
    cores = cores or (0,) * len(args)
    ranks = [getattr(a, "ndim", 0) - b - core for a, b, core in zip(args, batched, cores, strict=True)]
    most = max(ranks)
    return [
        unsqueeze_n(a, most - rank) if b and rank < most else a for a, b, rank in zip(args, batched, ranks, strict=True)
    ]


def unsqueeze_n(x, count, at=1):
    """A tensor with so many dimensions of size 1 more, from the place `at` on; a view."""
    return registry["reshape"](x, (*x.shape[:at], *(1,) * count, *x.shape[at:])) if count else x


def at_least_1d(x):
    """A batch of numbers as a batch of vectors of one; others as they are."""
    return unsqueeze_n(x, 1) if getattr(x, "ndim", 0) == 1 else x
