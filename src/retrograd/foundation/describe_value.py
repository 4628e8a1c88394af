"""Values in messages: short, whatever they hold."""

import reprlib


class _Description(reprlib.Repr):
    """Arrays and tensors by shape and dtype; of long lists, texts and other objects the beginning and the end."""

    def __init__(self):
        super().__init__()
        self.maxstring = self.maxother = 200

    def repr1(self, x, level):
        shape, dtype = getattr(x, "shape", None), getattr(x, "dtype", None)
        if not shape or dtype is None or isinstance(x, type):  # a number, or an array of one, is short
            return super().repr1(x, level)
        return f"a {type(x).__name__} of shape {tuple(shape)} and {dtype}"


_DESCRIPTION = _Description()


def describe(value):
    """Return a value as text for a message: its repr, but without the elements of arrays and tensors.

    >>> describe(["mean", 2.0, None])
    "['mean', 2.0, None]"
    >>> import retrograd as rg
    >>> describe((rg.ones(2, 3), "mean"))
    "(a Tensor of shape (2, 3) and float32, 'mean')"
    """
    return _DESCRIPTION.repr(value)


def tensor_hint(value):
    """Return what to do with a value that is no tensor, in place of a tensor.

    >>> tensor_hint([1.0, 2.0]), tensor_hint(abs)
    ('see rg.tensor', 'it can be called; pass its result')
    """
    members = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    if any(hasattr(member, "requires_grad") for member in members):
        return "it holds tensors; pass one of them, or join them by rg.stack or rg.cat"
    if value is None:
        return "a function without `return` returns None"
    return "it can be called; pass its result" if callable(value) else "see rg.tensor"


def note_call(error, what, args):
    """Add to an error of a user's function what called it, and with which arguments."""
    error.add_note(f"in {what}, called with {', '.join(map(describe, args)) or 'no arguments'}")
