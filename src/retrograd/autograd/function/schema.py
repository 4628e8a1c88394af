"""The schema of a user's Function: calls pass any arguments, unchanged."""

from typing import Any

from retrograd.core.schema import Schema


class FunctionSchema(Schema):
    """The schema of an operator that is a user's Function: its forward alone knows its arguments."""

    def __init__(self, name: str) -> None:
        super().__init__(name, (), "any")

    def __str__(self) -> str:
        return f"{self.name}(...) -> any"

    def bind(self, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        """Return the arguments of a call as they are."""
        return args, kwargs

    def given(self, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call by name, those by position by their number."""
        return {**{str(i): a for i, a in enumerate(args)}, **kwargs}
