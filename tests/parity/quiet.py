"""PyTorch functions with their warnings suppressed."""

import warnings


def quiet(function):
    """The function, its warnings left out: that it is slow, or that its name is old."""

    def call(*args):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args)

    return call
