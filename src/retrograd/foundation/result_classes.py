"""The classes of several named results, in the form of torch.return_types: each operator has a class of its own."""

from operator import itemgetter

MODULE = "retrograd.return_types"  # which shows the classes to users
classes: dict[str, type] = {}  # name -> class, before that module is imported, too


class NamedResults(tuple):
    """The base class: a tuple whose members are attributes, too. A subclass annotates them, and has no slots.

    It is made from one sequence, as PyTorch's classes are, or from the members, as named tuples are.
    """

    __slots__ = ()
    _fields: tuple[str, ...] = ()

    def __init_subclass__(cls, name):
        super().__init_subclass__()
        cls._fields = tuple(cls.__annotations__)
        cls.n_fields = cls.n_sequence_fields = len(cls._fields)
        cls.n_unnamed_fields = 0
        cls.__match_args__ = cls._fields  # type: ignore[misc]
        cls.__module__, cls.__name__, cls.__qualname__ = MODULE, name, name
        cls.__doc__ = f"The results of `{name}`."
        for i, field in enumerate(cls._fields):
            setattr(cls, field, property(itemgetter(i)))
        classes[name] = cls

    def __new__(cls, *members):
        """Return the results that have these members; a TypeError for another number of them."""
        found = tuple(members[0]) if len(members) == 1 else members
        if len(found) != cls.n_fields:
            raise TypeError(f"{MODULE}.{cls.__name__}() takes a {cls.n_fields}-sequence ({len(found)}-sequence given)")
        return tuple.__new__(cls, found)

    def __repr__(self):
        members = ",\n".join(f"{name}={value!r}" for name, value in self._asdict().items())
        return f"{MODULE}.{type(self).__name__}(\n{members})"

    def __reduce__(self):
        return type(self), (tuple(self),)

    @classmethod
    def _make(cls, members):
        return cls(members)

    def _asdict(self):
        return dict(zip(self._fields, self, strict=True))

    def _replace(self, **members):
        return self._make({**self._asdict(), **members}.values())


def result_class(name, fields):
    """Return a new class of results with these fields, tensors, under this name in `retrograd.return_types`.

    >>> result_class("halves", ("low", "high"))([1, 2]).high
    2
    """
    return type(name, (NamedResults,), {"__slots__": (), "__annotations__": dict.fromkeys(fields, "Tensor")}, name=name)
