"""The registry of random calls: for each function and array member of the standard, a generator of arguments."""

PROGRAMS = {}


def program(*names):
    """Register the decorated function as generator of arguments, positional and named, for standard functions."""

    def register(function):
        PROGRAMS.update(dict.fromkeys(names, function))
        return function

    return register


def no_options(positional):
    return tuple(positional), {}
