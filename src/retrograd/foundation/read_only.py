"""Attributes that are read only."""


class read_only(property):
    """A property that refuses to be set and deleted in PyTorch's words.

    >>> class Box:
    ...     size = read_only(lambda box: 3, "size")
    >>> Box().size = 4
    Traceback (most recent call last):
    AttributeError: attribute 'size' of 'Box' objects is not writable
    """

    def __init__(self, getter, name=None):
        super().__init__(getter)
        self._name = name or getter.__name__

    def __set__(self, owner, value):
        raise AttributeError(f"attribute {self._name!r} of {type(owner).__name__!r} objects is not writable")

    def __delete__(self, owner):
        self.__set__(owner, None)
