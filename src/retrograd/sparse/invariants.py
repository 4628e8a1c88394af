"""The switch that makes constructors check their indices."""

from functools import wraps
from typing import Any, ClassVar


class check_sparse_tensor_invariants:
    """Make the constructors of sparse tensors check their indices: for a block, a function, or from now on.

    `enable()`, `disable()` and `is_enabled()` switch it for good; as a context manager, or a decorator, an instance
    sets it for a block.  It is off at the start, as checks take time; wrong indices can give wrong results or
    IndexErrors later.

    >>> import retrograd as rg
    >>> with rg.sparse.check_sparse_tensor_invariants():
    ...     rg.sparse_coo_tensor([[5]], [1.0], (3,))
    Traceback (most recent call last):
    RuntimeError: sparse_coo_tensor: size is inconsistent with indices: for dim 0, size is 3 but found index 5
    """

    _on: ClassVar[list[bool]] = [False]

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self.saved_state: bool | None = None

    @classmethod
    def is_enabled(cls) -> bool:
        """Return whether constructors check their indices."""
        return cls._on[0]

    @classmethod
    def enable(cls) -> None:
        """Let constructors check their indices."""
        cls._on[0] = True

    @classmethod
    def disable(cls) -> None:
        """Let constructors check no indices, unless check_invariants=True."""
        cls._on[0] = False

    def __enter__(self) -> None:
        if self.saved_state is not None:
            raise RuntimeError("This context manager instance is already activated. Use a different instance.")
        self.saved_state = self.is_enabled()
        self._on[0] = self.state

    def __exit__(self, *raised: Any) -> None:
        assert self.saved_state is not None
        self._on[0] = self.saved_state
        self.saved_state = None

    def __call__(self, function: Any) -> Any:
        @wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return function(*args, **kwargs)

        return checked
