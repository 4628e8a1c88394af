"""The programs: for each function of the standard, and each member of its arrays, what draws arguments of a call."""

PROGRAMS = {}


def program(*names):
    """Decorator: the function draws the arguments of those of the standard, positional and named."""

    def register(function):
        PROGRAMS.update(dict.fromkeys(names, function))
        return function

    return register


def no_options(positional):
    return tuple(positional), {}
