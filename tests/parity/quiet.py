"""PyTorch functions with their warnings suppressed."""

import warnings


def quiet(function):
    """Return the function with its warnings suppressed: that it is slow, or that its name is deprecated."""

    def call(*args):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args)

    return call
