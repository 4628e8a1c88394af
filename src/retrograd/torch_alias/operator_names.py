"""`torch._ops` and `torch.ops.aten`: operators by their names in PyTorch's schemas."""

from typing import Any

from retrograd.core import Tensor
from retrograd.core.op import registry
from retrograd.ops.functions import functions


class HigherOrderOperator:
    """The class of operators that take functions; none is an instance."""


class OpOverloadPacket:
    """An operator by its name in PyTorch's schemas; its overloads are the same function."""

    def __init__(self, name: str) -> None:
        self.__name__ = name
        self._overloads: dict[str, Any] = {}

    def __getattr__(self, overload: str) -> Any:
        if overload.startswith("__"):
            raise AttributeError(overload)
        return self._overloads.setdefault(overload, OpOverload(self, overload))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = self.__name__
        if name in registry or name in functions:
            return (registry if name in registry else functions)[name](*args, **kwargs)
        if args and isinstance(args[0], Tensor) and hasattr(Tensor, name):
            return getattr(args[0], name)(*args[1:], **kwargs)
        raise NotImplementedError(f"torch.ops.aten.{name}: retrograd has no operator of this name")


class OpOverload:
    """An overload of an operator."""

    def __init__(self, packet: OpOverloadPacket, name: str) -> None:
        self.overloadpacket, self.__name__ = packet, f"{packet.__name__}.{name}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.overloadpacket(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self.overloadpacket.__name__}', overload='{self.__name__.partition('.')[2]}')>"


class _OpNamespace:
    """PyTorch's own operators, `torch.ops.aten`."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        packet = OpOverloadPacket(name)
        setattr(self, name, packet)
        return packet


aten = _OpNamespace()
