"""Count the floating-point operations of products of matrices, convolutions and attention."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from math import prod
from typing import Any

from retrograd.autograd.running_pass import OncePerPass
from retrograd.core import Operator, Tensor, registry
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.nn.global_hooks import register_module_forward_hook, register_module_forward_pre_hook
from retrograd.nn.module import Module
from retrograd.utils._python_dispatch import TensorDispatchMode

__all__ = ["FlopCounterMode", "register_flop_formula"]

Shape = tuple[int, ...]
GLOBAL = "Global"  # the name of everything together
UNITS = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "K"))
flop_registry: dict[str, Callable[..., int]] = {}  # formulas by names of operators


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Register the formula of one or several operators, as a decorator; PyTorch has the same one.

    The formula gets the operator's arguments with shapes in place of tensors, and `out_shape`.  get_raw: it gets the
    tensors themselves, and `out_val`.

    >>> import retrograd as rg
    >>> @register_flop_formula(rg.hypot)
    ... def of_hypot(a_shape, b_shape, *, out_shape=None, **kwargs):
    ...     return 4 * out_shape[0]
    >>> with FlopCounterMode(display=False) as counter:
    ...     y = rg.hypot(rg.ones(5), rg.ones(5))
    >>> counter.get_total_flops()
    20
    """

    operators = targets if isinstance(targets, list | tuple) else [targets]
    for target in operators:
        if not isinstance(target, Operator):
            raise ValueError(f"register_flop_formula(targets): expected operators such as rg.matmul, got {target!r}")

    def register(formula: Callable[..., int]) -> Callable[..., int]:
        flop_registry.update((target.name, formula if get_raw else _of_shapes(formula)) for target in operators)
        return formula

    return register


class FlopCounterMode(TensorDispatchMode):
    """Count the operations of products, convolutions and attention that run in its block, backward passes included.

    A multiplication with an addition counts as 2.  Elementwise operators and reductions are left out, as in PyTorch.
    Counts are given by module, too; the name of the outermost one is that of its class.

    - display: print the table at the end of the block.
    - depth: the levels of modules in the table; None: all.
    - custom_mapping: further formulas by operator, as for `register_flop_formula`; those with the attribute `_get_raw`
      get tensors.
    - mods: without effect.

    >>> import retrograd as rg
    >>> model = rg.nn.Sequential(rg.nn.Linear(10, 20), rg.nn.ReLU(), rg.nn.Linear(20, 5))
    >>> with FlopCounterMode(depth=2) as counter:
    ...     model(rg.ones(8, 10)).sum().backward()
    Module        FLOPs    share
    Global        11.2K  100.00%
      Sequential  11.2K  100.00%
        0          6.4K   57.14%
        2          4.8K   42.86%
    >>> {operator.name: count for operator, count in counter.get_flop_counts()["Sequential.2"].items()}
    {'linear': 1600, 'matmul': 1600, 'rows_dot': 1600}
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int | None = 2,
        display: bool = True,
        custom_mapping: Mapping[Operator, Callable[..., int]] | None = None,
    ) -> None:
        super().__init__()
        self.depth, self.display = depth, display
        own = {
            target.name: formula if getattr(formula, "_get_raw", False) else _of_shapes(formula)
            for target, formula in (custom_mapping or {}).items()
        }
        self.flop_registry = flop_registry | own
        self.flop_counts: dict[str, dict[Operator, int]] = {}
        self._modules = _RunningModules()

    def __enter__(self) -> "FlopCounterMode":
        self.flop_counts = defaultdict(lambda: defaultdict(int))
        self._modules.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> Any:
        found = super().__exit__(*error)
        self._modules.__exit__(*error)
        if self.display:
            print(self.get_table(self.depth))
        return found

    def get_total_flops(self) -> int:
        """Return the number of operations."""
        return sum(self.flop_counts.get(GLOBAL, {}).values())

    def get_flop_counts(self) -> dict[str, dict[Operator, int]]:
        """Return the number of operations by module and operator."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """Return the operations of each module as a text; depth: the levels of modules, by default the mode's."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        rows = [("Module", "FLOPs", "share")]
        for name in [GLOBAL, *sorted(self.flop_counts.keys() - {GLOBAL})]:
            level = 0 if name == GLOBAL else name.count(".") + 1
            if depth is None or level <= depth:
                flops = sum(self.flop_counts.get(name, {}).values())
                share = f"{100 * flops / total:.2f}%" if total else "0%"
                rows.append(("  " * level + name.rpartition(".")[2], _short(flops), share))
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        lines = [f"{name:<{widths[0]}}  {flops:>{widths[1]}}  {share:>{widths[2]}}" for name, flops, share in rows]
        return "\n".join(line.rstrip() for line in lines)

    def __tensor_dispatch__(self, func: Any, types: tuple, args: tuple = (), kwargs: Any = None) -> Any:
        """Run an operator and count its operations."""
        out = func(*args, **(kwargs or {}))
        formula = self.flop_registry.get(func.name)
        if formula is not None:
            flops = formula(*args, **(kwargs or {}), out_val=out)
            for name in (GLOBAL, *self._modules.names):
                self.flop_counts[name][func] += flops
        return out


class _RunningModules:
    """The names of the modules whose forward runs, or whose part of a backward pass does."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._names_of: dict[int, str] = {}
        self._hooks = ExitStack()
        self._pass = OncePerPass(lambda: None, self.names.clear)

    def __enter__(self) -> None:
        self.names.clear()
        self._names_of.clear()
        self._hooks.enter_context(register_module_forward_pre_hook(self._begin))
        self._hooks.enter_context(register_module_forward_hook(self._end, always_call=True))

    def __exit__(self, *error: Any) -> None:
        self._hooks.close()

    def _begin(self, module: Module, args: tuple) -> None:
        if id(module) not in self._names_of or not self.names:  # an outermost module names its parts
            root = type(module).__name__
            for name, part in module.named_modules():
                self._names_of[id(part)] = f"{root}.{name}" if name else root
        name = self._names_of[id(module)]
        for x in _tensors(args):
            x.register_hook(lambda g: self._leave(name))
        self.names.append(name)

    def _end(self, module: Module, args: tuple, output: Any) -> None:
        name = self._names_of[id(module)]
        self._leave(name)
        for x in _tensors([output]):
            x.register_hook(lambda g: self._enter_backward(name))

    def _enter_backward(self, name: str) -> None:
        self._pass.enter()
        if name not in self.names:
            self.names.append(name)

    def _leave(self, name: str) -> None:
        if name in self.names:
            self.names.remove(name)


def _tensors(values: Any) -> list[Tensor]:
    """Return the tensors with a graph among values and in their lists and tuples."""
    found = []
    for value in values:
        if isinstance(value, Tensor):
            found += [value] if value.grad_fn is not None else []
        elif isinstance(value, list | tuple):
            found += _tensors(value)
    return found


def _short(flops: int) -> str:
    for size, unit in UNITS:
        if flops >= size:
            return f"{flops / size:.4g}{unit}"
    return str(flops)


def _of_shapes(formula: Callable[..., int]) -> Callable[..., int]:
    """Return a formula of tensors from one of shapes."""

    def count(*args: Any, out_val: Any, **kwargs: Any) -> int:
        named = {name: _shapes(value) for name, value in kwargs.items()}
        return int(formula(*map(_shapes, args), **named, out_shape=_shapes(out_val)))

    return count


def _shapes(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.shape
    if isinstance(value, list | tuple) and any(isinstance(x, Tensor) for x in value):
        return [_shapes(x) for x in value]
    return value


def _formula(names: str) -> Callable[[Callable[..., int]], None]:
    """Register a formula of shapes for operators of the package, which need not be imported."""

    def register(formula: Callable[..., int]) -> None:
        flop_registry.update(dict.fromkeys(names.split(), _of_shapes(formula)))

    return register


@_formula("matmul linear")
def _of_product(a: Shape, *others: Shape, out_shape: Shape) -> int:
    return 2 * prod(out_shape) * a[-1]


@_formula("rows_dot")
def _of_rows(a: Shape, b: Shape, out_shape: Shape) -> int:
    return 2 * prod(a) * b[-1]


@_formula("contract")
def _of_einsum(a: Shape, b: Shape, equation: str, out_shape: Shape) -> int:
    left, right = equation.partition("->")[0].split(",")
    return 2 * prod({**dict(zip(left, a, strict=True)), **dict(zip(right, b, strict=True))}.values())


@_formula("convolution")
def _of_convolution(x: Shape, weight: Shape, *settings: Any, out_shape: Shape, **more: Any) -> int:
    return 2 * prod(out_shape) * prod(weight[1:])


@_formula("convolution_input")
def _of_convolution_input(y: Shape, weight: Shape, *settings: Any, out_shape: Shape, **more: Any) -> int:
    return 2 * prod(y) * prod(weight[1:])


@_formula("convolution_weight")
def _of_convolution_weight(x: Shape, y: Shape, *settings: Any, out_shape: Shape, **more: Any) -> int:
    return 2 * prod(y) * prod(out_shape[1:])


@_formula("attend")
def _of_attention(mask: Shape | None, tensors: list[Shape], out_shape: Any, **settings: Any) -> int:
    q, k, v = tensors[:3]
    return 2 * prod(q[:-1]) * k[-2] * (q[-1] + v[-1])


@_formula("attend_backward")
def _of_attention_backward(mask: Shape | None, tensors: list[Shape], out_shape: Any, **settings: Any) -> int:
    q, k, v = tensors[:3]  # the scores again, and the gradients of the scores, q and k; those of the weights and v
    return 2 * prod(q[:-1]) * k[-2] * (3 * q[-1] + 2 * v[-1])


@_formula("lstm_layer gru_layer rnn_tanh_layer rnn_relu_layer")
def _of_layer(tensors: list[Shape], out_shape: Any, **settings: Any) -> int:
    x, *weights = tensors[:3]
    return 2 * prod(x[:-1]) * sum(map(prod, weights))


def _of_recurrent_gradients(
    tensors: list[Tensor], cell: str, output_mask: Sequence[bool], out_val: Any, **settings: Any
) -> int:
    of = registry[f"{cell}_layer_backward"].definition.operands(tensors)
    for_x, for_weight_ih, for_weight_hh, _ = output_mask
    inputs, hidden = of.weight_ih.numel() * (for_x + for_weight_ih), of.weight_hh.numel() * (1 + for_weight_hh)
    return 2 * prod(of.x.shape[:-1]) * (inputs + hidden)  # once for the states, from step to step


flop_registry["recurrent_gradients"] = _of_recurrent_gradients


suggest_in_module(globals())
