"""Unique names of nodes, made as PyTorch makes them."""

import builtins
import keyword
import re

# Names that generated code uses itself, and those that PyTorch's generated code does.
RESERVED = {*dir(builtins), *keyword.kwlist, "self", "ops", "inf", "nan", "NoneType", "torch", "device"}
RESERVED |= {"fx_pytree", "pytree"}

NUMBERED = re.compile(r"([a-zA-Z_][0-9a-zA-Z_]*?)(?:_(\d+))?")


class Namespace:
    """The names that a graph has given, each once.

    >>> names = Namespace()
    >>> [names.create_name(candidate) for candidate in ("add", "add", "add_1", "max", "a.b", "1")]
    ['add', 'add_1', 'add_2', 'max_1', 'a_b', '_1']
    """

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._numbers: dict[str, int] = {}  # base name -> the last number used with it

    def create_name(self, candidate: str) -> str:
        """Return the candidate as an identifier, with the next number of its base name if it is taken or reserved."""
        name = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        name = f"_{name}" if name[0].isdigit() else name
        found = NUMBERED.fullmatch(name)
        assert found is not None
        base, digits = found.groups()
        number = int(digits or 0)
        if digits is None or name in self._used:
            number = self._numbers.get(base, 0)
            if name in RESERVED:
                number += 1
                name = f"{base}_{number}"
        while name in self._used:
            number += 1
            name = f"{base}_{number}"
        self._used.add(name)
        self._numbers[base] = number
        return name


def snake_case(text: str) -> str:
    """Return a target as a name in snake_case, without the underscores around a Python protocol's name.

    >>> snake_case("layers.ReLU"), snake_case("__getitem__")
    ('layers.re_lu', 'getitem')
    """
    text = text[2:-2] if text.startswith("__") and text.endswith("__") else text
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", text).lower()
