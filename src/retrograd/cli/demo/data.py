"""The digits data set of scikit-learn: 1,797 scans of 8 x 8 pixels."""

from typing import NamedTuple

import retrograd as rg
from retrograd import Tensor
from retrograd.cli.errors import needs_extra

SPLIT_SEED = 0  # not the user's seed: every run is tested on the same 360 scans


class Digits(NamedTuple):
    """Return scans, float32 of shape (n, 8, 8), and their digits, int64 of shape (n,)."""

    train_x: Tensor
    train_y: Tensor
    test_x: Tensor
    test_y: Tensor


def load_digits() -> Digits:
    """Split into four fifths for training and one for testing, with the same share of each digit in both.

    Pixels are shifted and scaled to mean 0 and deviation 1 over the training scans.
    """
    try:
        from sklearn.datasets import load_digits as load
        from sklearn.model_selection import train_test_split
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        needs_extra("the demo", "scikit-learn" if missing == "sklearn" else missing, "demo")
    x, y = load(return_X_y=True)
    parts = train_test_split(x, y, test_size=0.2, stratify=y, random_state=SPLIT_SEED)
    mean, deviation = parts[0].mean(), parts[0].std()
    train_x, test_x = (_scans(part, mean, deviation) for part in parts[:2])
    train_y, test_y = (rg.from_numpy(part).to(rg.int64) for part in parts[2:])
    return Digits(train_x, train_y, test_x, test_y)


def _scans(pixels, mean, deviation):  # type: ignore[no-untyped-def]
    return rg.from_numpy((pixels - mean) / deviation).to(rg.float32).reshape(-1, 8, 8)


def batches(examples: int, batch: int, seed: int, epoch: int) -> list[Tensor]:
    """Return the example indices of each batch of an epoch: all examples, in an order specific to the epoch.

    Depends on nothing but the arguments, so that any step can be repeated.

    >>> [part.tolist() for part in batches(5, 3, seed=0, epoch=0)] == [
    ...     part.tolist() for part in batches(5, 3, seed=0, epoch=0)
    ... ]
    True
    """
    order = rg.randperm(examples, generator=rg.Generator(seed * 1_000_003 + epoch))
    count = batches_per_epoch(examples, batch)
    sizes = [examples // count + (i < examples % count) for i in range(count)]
    return list(order.split(sizes))


def batches_per_epoch(examples: int, batch: int) -> int:
    """Return the number of batches of at most `batch` examples, all of about equal size.

    >>> batches_per_epoch(1437, 240)
    6
    """
    return -(-examples // batch)
