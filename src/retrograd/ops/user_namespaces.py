"""The operators of users' namespaces: `rg.ops.ns.name`, and `rg.ops.ns.name.overload`."""

from retrograd.core.errors import OperandTypeError
from retrograd.core.op import registry


class Namespace:
    """The operators of one of the users' namespaces: `rg.ops.ns.name` is "ns::name"."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        full = f"{self._name}::{name}"
        if _overload_names(full):
            return OverloadPacket(full)
        if full not in registry:
            raise AttributeError(f"no operator {full!r} is registered")
        return registry[full]

    def __dir__(self):
        return [n.partition("::")[2] for n in registry if n.startswith(f"{self._name}::")]


class OverloadPacket:
    """An operator with overloads: "ns::name.overload" is an attribute, "ns::name" the attribute `default`.

    A call runs the overload, in the order of their definitions, whose schema first has room for the arguments.
    """

    def __init__(self, name):
        self._name = name
        self.__name__ = name

    def __repr__(self):
        return f"<op {self._name}, overloads {', '.join(self.overloads())}>"

    def __getattr__(self, overload):
        found = registry.get(self._name if overload == "default" else f"{self._name}.{overload}")
        if found is None:
            raise AttributeError(
                f"The underlying op of {self._name.replace('::', '.')!r} has no overload name {overload!r}: no "
                f"overload {overload!r} of {self._name!r} is registered; there are {', '.join(self.overloads())}"
            )
        return found

    def overloads(self):
        """Return the names of the overloads, in the order of their definitions."""
        names = [n for n in registry if n == self._name or n in _overload_names(self._name)]
        return [n.partition(".")[2] or "default" for n in names]

    def __call__(self, *args, **kwargs):
        """Run the first overload that accepts the arguments; a TypeError lists the schemas if none does."""
        candidates = [getattr(self, overload) for overload in self.overloads()]
        for operator in candidates:
            if operator.accepts(args, kwargs):
                return operator(*args, **kwargs)
        listed = "\n".join(f"  {operator.schema}" for operator in candidates)
        raise OperandTypeError(
            f"{self._name}(): Overloaded torch operator invoked from Python failed to match any schema: no overload "
            f"accepts the arguments; there are\n{listed}"
        )


def _overload_names(name):
    """Return the names of an operator's overloads other than the default; its functional variant is none."""
    variant = getattr(registry.get(name), "functional", None)
    return [n for n, operator in registry.items() if n.startswith(f"{name}.") and operator is not variant]
