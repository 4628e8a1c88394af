"""Models that return their loss, and the search for the loss in a model's output."""

from collections.abc import Callable, Mapping
from typing import Any

from retrograd.core import Aval
from retrograd.core.dtype import is_floating
from retrograd.fx import Node
from retrograd.nn import Module


class LossWrapper(Module):
    """A model and its loss function as one module: a subclass connects them in `forward`.

    `loss_spec` marks the loss in the result of `forward`: see `find_loss`.

    >>> import retrograd as rg
    >>> class WithPenalty(LossWrapper):
    ...     loss_spec = (True, False)
    ...
    ...     def forward(self, x, targets):
    ...         out = self.module(x)
    ...         return self.loss_fn(out, targets) + (out * out).mean(), out
    >>> model = WithPenalty(rg.nn.Linear(4, 2), rg.nn.functional.mse_loss)
    >>> model(rg.ones(3, 4), rg.ones(3, 2))[0].shape
    ()
    """

    loss_spec: Any = None

    def __init__(self, module: Module, loss_fn: Callable[..., Any]) -> None:
        super().__init__()
        self.module = module
        self.loss_fn = loss_fn

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Connect the model and the loss; every subclass defines it."""
        raise NotImplementedError(
            f"{type(self).__name__} has no forward(); define it to connect self.module, self.loss_fn and the inputs"
        )


class TrivialLossWrapper(LossWrapper):
    """`loss_fn(module(x), targets)`.

    >>> import retrograd as rg
    >>> model = TrivialLossWrapper(rg.nn.Linear(4, 2), rg.nn.functional.mse_loss)
    >>> model(rg.ones(3, 4), rg.ones(3, 2)).shape
    ()
    """

    loss_spec = True

    def forward(self, x: Any, targets: Any) -> Any:
        """Return the loss of the model's output for x."""
        return self.loss_fn(self.module(x), targets)


def find_loss(output: Any, spec: Any) -> Node | None:
    """Return the loss in a model's output, a pytree of nodes, or None.

    spec: nested as the output, with True for the loss and False elsewhere: `True` for an output that is the loss,
    `(True, False)`, `{"loss": True, "logits": False}`.  None: the entry "loss", if the output is a dict and the entry
    is a loss.

    Raises RuntimeError if the spec differs from the output in type, length or keys, marks none or several, or
    marks anything but a real 0-d tensor.
    """
    if spec is None:
        found = output.get("loss") if isinstance(output, Mapping) else None
        return found if _is_loss(found) else None
    marked: list[Any] = []
    _collect_marked(output, spec, "output", marked)
    if len(marked) != 1:
        raise RuntimeError(f"loss_spec: {spec!r} marks {len(marked)} losses in {_describe(output)}; mark one with True")
    if not _is_loss(marked[0]):
        raise RuntimeError(f"loss_spec: {spec!r} marks {_describe(marked[0])}; the loss is a real tensor of shape ()")
    return marked[0]


def _collect_marked(output: Any, spec: Any, path: str, marked: list[Any]) -> None:
    """Collect the values that a spec marks with True."""
    if isinstance(spec, bool):
        marked += [output] if spec else []
    elif isinstance(spec, (tuple, list)):
        _check_kind(output, spec, path, list if isinstance(spec, list) else tuple)
        if len(output) != len(spec):
            raise RuntimeError(
                f"loss_spec: {path} has {len(output)} members, {_describe(output)}, but its spec has {len(spec)}, "
                f"{spec!r}"
            )
        for index, (member, part) in enumerate(zip(output, spec, strict=True)):
            _collect_marked(member, part, f"{path}[{index}]", marked)
    elif isinstance(spec, Mapping):
        _check_kind(output, spec, path, Mapping)
        if set(output) != set(spec):
            raise RuntimeError(f"loss_spec: {path} has the keys {list(output)}, but its spec has {list(spec)}")
        for key, part in spec.items():
            _collect_marked(output[key], part, f"{path}[{key!r}]", marked)
    else:
        raise RuntimeError(
            f"loss_spec: expected a bool, tuple, list or dict for {path}, {_describe(output)}, got {spec!r} of type "
            f"{type(spec).__name__}"
        )


def _check_kind(output: Any, spec: Any, path: str, kind: Any) -> None:
    if not isinstance(output, kind):
        raise RuntimeError(
            f"loss_spec: {path} is {_describe(output)}, a {_kind(output)}, but its spec is {spec!r}, a {_kind(spec)}"
        )


def _kind(value: Any) -> str:
    return "tensor" if isinstance(value, Node) else type(value).__name__


def _is_loss(value: Any) -> bool:
    aval = value.meta.get("val") if isinstance(value, Node) else None
    return isinstance(aval, Aval) and aval.shape == () and is_floating(aval.dtype)


def _describe(value: Any) -> str:
    """Return an output as text, each tensor by its dtype and shape."""
    if isinstance(value, Node):
        return str(value.meta.get("val", value.name))
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k!r}: {_describe(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_describe, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(_describe, value))}{',' * (len(value) == 1)})"
    return repr(value)
