"""The registry of random calls: for each function and array member of the standard, a generator of arguments."""

PROGRAMS = {}


def program(*names):
    """Decorator: the function draws the arguments of those of the standard, positional and named."""

    def register(function):
        PROGRAMS.update(dict.fromkeys(names, function))
        return function

    return register


def no_options(positional):
    return tuple(positional), {}
