"""Immutable lists and dicts for the arguments of nodes, which would not notice a change."""

from typing import Any, NoReturn

import optree

__all__ = ["immutable_dict", "immutable_list"]


def _no_mutation(value: Any, attribute: str) -> TypeError:
    return TypeError(
        f"{type(value).__name__!r} object does not support mutation. If you are attempting to modify the kwargs or "
        f"args of a torch.fx.Node object,\ninstead create a new copy of it and assign the copy to the node: "
        f"node.{attribute} = new_{attribute}"
    )


class immutable_list(list):
    """An immutable list among the arguments of a node; methods that would change it raise a TypeError.

    >>> immutable_list([1, 2]).append(3)
    Traceback (most recent call last):
    TypeError: 'immutable_list' object does not support mutation. If you are attempting to modify the kwargs or args of
    a torch.fx.Node object, instead create a new copy of it and assign the copy to the node: node.args = new_args
    """

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise _no_mutation(self, "args")

    __setitem__ = __delitem__ = __iadd__ = __imul__ = append = clear = extend = insert = pop = remove = _refuse
    reverse = sort = _refuse

    def __reduce__(self) -> tuple:
        return immutable_list, (list(self),)


class immutable_dict(dict):
    """An immutable dict among the arguments of a node; methods that would change it raise a TypeError.

    >>> immutable_dict(a=1)["a"]
    1
    """

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise _no_mutation(self, "kwargs")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple:
        return immutable_dict, (dict(self),)


EVERYWHERE: Any = optree.registry.__GLOBAL_NAMESPACE
_register: Any = optree.register_pytree_node

# Registered so that pytree functions treat them like plain lists and dicts.
_register(immutable_list, lambda v: (tuple(v), None), lambda _, v: immutable_list(v), namespace=EVERYWHERE)
_register(
    immutable_dict,
    lambda v: (tuple(v.values()), tuple(v), tuple(v)),
    lambda keys, v: immutable_dict(zip(keys, v, strict=True)),
    namespace=EVERYWHERE,
)
