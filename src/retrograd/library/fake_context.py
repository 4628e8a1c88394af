"""The context of functions registered by `register_fake`, while they run."""

import threading
from collections.abc import Iterator
from typing import NoReturn

from retrograd.core.blocks import generator_block
from retrograd.core.state import thread_values


class _CurrentOperator(threading.local):
    name = ""


_operator = _CurrentOperator()
thread_values.append(_operator)


class AbstractContext:
    """The context in which a function for shapes and dtypes runs."""

    def __init__(self, name: str) -> None:
        self._name = name

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> NoReturn:
        """Raise: sizes that depend on values are not supported, because shapes are concrete."""
        raise NotImplementedError(
            f"{self._name}: the size of its result depends on values, so there is no telling it without a run"
        )


@generator_block
def abstract_context(name: str) -> Iterator[None]:
    """Run a block in which the operator's function for shapes and dtypes is the current one."""
    before, _operator.name = _operator.name, name
    try:
        yield
    finally:
        _operator.name = before


def get_ctx() -> AbstractContext:
    """Return the context of the running function registered by `register_fake`; RuntimeError if none runs.

    >>> import retrograd as rg
    >>> @rg.library.custom_op("docs::nonzeros", mutates_args=())
    ... def nonzeros(x: rg.Tensor) -> rg.Tensor:
    ...     return x[x != 0]
    >>> @nonzeros.register_fake
    ... def _(x):
    ...     return rg.empty(rg.library.get_ctx().new_dynamic_size())
    >>> rg.func.vmap(nonzeros)(rg.ones(0, 3))
    Traceback (most recent call last):
    NotImplementedError: docs::nonzeros: the size of its result depends on values, ...
    """
    if not _operator.name:
        raise RuntimeError("get_ctx: no function registered by register_fake or impl_abstract is running")
    return AbstractContext(_operator.name)
