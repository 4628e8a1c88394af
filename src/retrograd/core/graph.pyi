"""Types of the graph for mypy, which sees no fields of the compiled classes in their sources."""

from typing import Any

def __getattr__(name: str) -> Any: ...

class GradFn:
    """A node of the graph."""

    saved: Any
    freed: bool
    def __getattr__(self, name: str) -> Any: ...
