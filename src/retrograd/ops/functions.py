"""Public functions that are no operators: they answer no tensors, or only call operators."""

functions = {}  # dotted name below `rg.` -> function


def function(*names):
    """Decorator: the function has these public names; without any, its own.

    >>> @function("linalg.answer")
    ... def answer():
    ...     return 42
    >>> functions.pop("linalg.answer")()
    42
    """

    def register(member):
        for name in names or (member.__name__,):
            if name in functions:
                raise ValueError(f"the function {name!r} is registered already, by {functions[name].__module__}")
            functions[name] = member
        return member

    return register
