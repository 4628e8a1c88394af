"""`autograd.builtins`: Python's own, since tuples, lists and dicts of tensors need no boxes."""

from builtins import dict, isinstance, list, tuple, type  # noqa: UP029 (they are this module's names)

DictBox = dict
SequenceBox = (list, tuple)

__all__ = ["DictBox", "SequenceBox", "dict", "isinstance", "list", "tuple", "type"]
