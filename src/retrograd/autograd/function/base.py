"""`Function`: run the user's forward, and record it as one node that calls the user's backward."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from retrograd.autograd.function.arguments import bind_arguments, check_keywords, find_foreign
from retrograd.autograd.function.batch_rule import VmapInfo, make_batched_function, move_batch_dims_first
from retrograd.autograd.function.context import FunctionCtx, explain_unset, flag
from retrograd.autograd.function.cotangents import align_with_outputs, check_gradient, zero_cotangent
from retrograd.autograd.function.node_class import BackwardCFunction, make_backward_class
from retrograd.autograd.function.outputs import attach_outputs, check_dirty, make_outputs
from retrograd.autograd.function.schema import FunctionSchema
from retrograd.autograd.function.tangents import pause_levels, set_output_tangents, tangent_levels
from retrograd.core import Aval, GradFn, Level, Op, Tensor, at, current, graph_level, registry
from retrograd.core.dtype import is_differentiable
from retrograd.core.function_node import (
    contains_tensor,
    cotangents_for_users,
    describe_tensors,
    fits_input,
    function_node,
)
from retrograd.core.hooks import grad_dtype_of
from retrograd.core.overrides import override_result
from retrograd.core.state import is_recording
from retrograd.core.views import requires_grad_synced
from retrograd.foundation.describe_value import note_call
from retrograd.levels.batch import VmapOperands

_MISSING_BACKWARD = (
    "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward "
    "mode AD."
)
_MISSING_JVP = "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."


class FunctionOp(Op):
    """The operator of a user's Function: the interface that the engine, the levels and graphs use.

    It is the target of a node that calls the Function, and pickles as the name of the class.
    """

    calls_user_code = True

    def __init__(self, cls: Any) -> None:
        self.cls: type[Function] = cls
        self.name = self.__name__ = cls.__name__
        self.schema = FunctionSchema(cls.__name__)
        self.definition = self
        self.rules = self.result_class = None
        self.differentiable = self.composite = self.accepts_nested = True
        self.reduces_cotangent = self.several_views = self.view = self.random = self.impure = False
        self.simple, self.unary = 0, False
        self._generated = functools.lru_cache(maxsize=64)(self._generate)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the Function."""
        return self.cls.apply(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Function {self.cls.__module__}.{self.cls.__qualname__}>"

    def __reduce__(self) -> tuple:
        if self.cls.batched_from is None:
            return operator_of, (self.cls,)
        cls, *batch = self.cls.batched_from
        return _batched_operator_of, (cls, *batch)

    def _generate(self, batched: tuple[bool, ...], n: int, randomness: str) -> type["Function"]:
        cls: type[Function] = make_batched_function(Function, self.cls, batched, n, randomness)
        return cls

    def generated(self, batched: tuple[bool, ...], n: int, randomness: str) -> type["Function"]:
        """Return the Function that runs this one on n examples, by the rule generated from its other methods."""
        cls: type[Function] = self._generated(batched, n, randomness)
        return cls

    def work(self, avals: Any, out: Any) -> int:
        """Return the approximate number of multiplications of a call: one for each element of the results."""
        return math.prod(out.shape) if isinstance(out, Aval) else sum(math.prod(o.shape) for o in out)

    def compose(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function one level below the calling one."""
        return self.cls.apply(*args, **kwargs)

    def batch(self, batched: tuple[bool, ...], n: int, *args: Any, vmap_operands: VmapOperands) -> Any:
        """Run the function on n examples at once, by the user's vmap or a rule generated from its other methods."""
        has_rule = self.cls.vmap is not Function.vmap
        if has_rule and self.cls.generate_vmap_rule:
            raise RuntimeError(
                f"You tried to vmap over {self.name}, but it has both generate_vmap_rule=True and an overridden vmap "
                f"staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod"
            )
        if self.cls.generate_vmap_rule:
            return self.generated(batched, n, vmap_operands.level.randomness).apply(*args)
        if not has_rule:
            raise RuntimeError(
                f"You tried to vmap over {self.name}, but it does not have vmap support. Please override and implement "
                f"the vmap staticmethod or set generate_vmap_rule=True"
            )
        given, in_dims = vmap_operands.as_given(trees=True)
        result = self.cls.vmap(VmapInfo(n, vmap_operands.level.randomness), tuple(in_dims), *given)
        return move_batch_dims_first(self.name, n, result, vmap_operands)

    def jvp(self, op: Op, primals: tuple, tangents: tuple, out: Any, params: dict) -> Any:
        """Return the tangents of the outputs, where the function is processed as an operator."""
        ctx = self.cls._backward_cls()
        self.cls.setup_context(ctx, primals, out)
        return self.run_jvp(ctx, primals, tangents)

    def run_jvp(self, ctx: FunctionCtx, primals: tuple, tangents: tuple) -> Any:
        """Return the tangents of the outputs of one call, by the user's jvp."""
        if self.cls.jvp is Function.jvp:
            raise NotImplementedError(f"{self.name}: {_MISSING_JVP}")
        pairs = zip(primals, tangents, strict=True)
        if ctx.materialize_grads:
            tangents = tuple([_zeros_tangent(p) if t is None else t for p, t in pairs])
        try:
            return self.cls.jvp(ctx, *tangents)
        except AttributeError as error:
            explain_unset(ctx, error)
            raise

    def backward_functions(self) -> list[Callable]:
        """Return the user's functions that a backward pass calls."""
        return [self.cls._backward_method()]

    def gradients(self, fn: GradFn, cotangents: tuple, needs_input_grad: list[bool]) -> list:
        """Return the gradient of each edge, by the user's backward."""
        ctx = fn.params["ctx"]
        grad_outputs = cotangents_for_users(cotangents)
        if ctx.materialize_grads:
            skipped = () if ctx._materialize_non_diff_grads else ctx._fixed_outputs
            for i in range(len(grad_outputs)):
                if grad_outputs[i] is None and i not in skipped:
                    grad_outputs[i] = zero_cotangent(*ctx._outputs[i])
        given = align_with_outputs(grad_outputs, ctx)
        try:
            results = self.cls._run_backward(ctx, given)
        except Exception as error:
            note_call(error, f"the backward of {self.name}", given)
            raise
        if not isinstance(results, tuple):
            results = (results,)
        if len(results) != len(ctx.needs_input_grad):
            self._check_count(results, len(ctx.needs_input_grad))
        if len(results) != len(needs_input_grad):
            self._check_non_tensors(results, [index for index, _, _ in ctx._inputs])
        grads: list[Tensor | None] = []
        for i in range(len(needs_input_grad)):
            index, shape, dtype = ctx._inputs[i]
            result = results[index]
            if result is None or not needs_input_grad[i]:
                grads.append(None)
            elif fits_input(result, shape, dtype):
                grads.append(result)  # the common case
            else:
                edge = fn.edges[i]
                kept = grad_dtype_of(edge) if isinstance(edge, Tensor) else dtype
                grads.append(check_gradient(f"Function {self.name}Backward", index, result, shape, kept))
        return grads

    def _check_count(self, results: tuple, count: int) -> None:
        extra = results[count:]
        if len(results) < count or any(r is not None for r in extra):
            raise RuntimeError(
                f"function {self.name}Backward returned an incorrect number of gradients (expected {count}, got "
                f"{len(results)}): one for each argument of forward, None where there is none"
            )

    def _check_non_tensors(self, results: tuple, inputs: list[int]) -> None:
        for index, result in enumerate(results):
            if result is not None and index not in inputs:
                raise RuntimeError(
                    f"function {self.name}Backward returned a gradient different than None at position {index + 1}, "
                    f"but the corresponding forward input was not a Variable, that is a Tensor"
                )


def _zeros_tangent(value: Any) -> Tensor | None:
    """Return the zero tangent of an argument of jvp that has no tangent; None for a value that can have none."""
    return registry["zeros_like"](value) if isinstance(value, Tensor) and is_differentiable(value.dtype) else None


def operator_of(cls: type["Function"]) -> FunctionOp:
    """Return the operator of a Function."""
    return cls._operator


def _batched_operator_of(cls: type["Function"], batched: tuple[bool, ...], n: int, randomness: str) -> FunctionOp:
    """Return the operator that runs a Function on n examples, by a generated rule."""
    return cls._operator.generated(batched, n, randomness)._operator


class FunctionMeta(type):
    """The metaclass of Function: makes the operator of each, and the class of its ctx, `_backward_cls`."""

    def __init__(cls, name: str, bases: tuple, attrs: dict, **kwargs: Any) -> None:
        super().__init__(name, bases, attrs)
        cls._operator = FunctionOp(cls)
        cls._backward_cls = make_backward_class(cls)


class Function(metaclass=FunctionMeta):
    """The base class of functions with a derivative of their own.

    Define static methods `forward(ctx, *args)` and `backward(ctx, *grad_outputs)`, or `forward(*args)` together with
    `setup_context(ctx, inputs, output)`; call the function by `apply`.  backward returns one gradient per argument of
    forward, None for arguments without gradient.  `vjp` is another name of backward.  With `setup_context`, every
    function transform uses the derivatives of the class, `jvp(ctx, *tangents)` in forward mode; without, the innermost
    uses backward, and it is refused where something else differentiates an argument too.

    Raises RuntimeError, naming the class and the position, when backward returns too few gradients, or one that does
    not fit its input; NotImplementedError when it is needed and not there.

    >>> import retrograd as rg
    >>> class Cube(rg.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x**3
    ...     @staticmethod
    ...     def backward(ctx, grad_output):
    ...         (x,) = ctx.saved_tensors
    ...         return grad_output * 3 * x**2
    >>> x = rg.tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad
    tensor(12.)
    """

    _operator: FunctionOp
    _backward_cls: type[BackwardCFunction]
    batched_from: tuple | None = None  # of a generated Function: the one that it runs on a batch, and the batch

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args or kwargs:
            self(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise: Functions are not instantiated."""
        raise RuntimeError(
            f"Legacy autograd function with non-static forward method is deprecated: call "
            f"{type(self).__name__}.apply(...), with a static forward method, not an instance"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the result; operators inside are not recorded."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: FunctionCtx, inputs: tuple, output: Any) -> Any:
        """Save tensors for backward, if forward takes no ctx."""
        raise NotImplementedError("setup_context is not implemented; a Function whose forward takes no ctx defines it")

    @staticmethod
    def backward(ctx: FunctionCtx, *grad_outputs: Tensor | None) -> Any:
        """Return the gradients of the inputs, given those of the outputs."""
        raise NotImplementedError(_MISSING_BACKWARD)

    @staticmethod
    def vjp(ctx: FunctionCtx, *grad_outputs: Tensor | None) -> Any:
        """Alias of backward."""
        raise NotImplementedError(_MISSING_BACKWARD)

    @staticmethod
    def jvp(ctx: FunctionCtx, *grad_inputs: Tensor | None) -> Any:
        """Return the tangents of the outputs, given those of the inputs."""
        raise NotImplementedError(_MISSING_JVP)

    @classmethod
    def _backward_method(cls) -> Callable:
        """Return the method that the class defines: backward or vjp."""
        has_backward = cls.backward is not Function.backward
        has_vjp = cls.vjp is not Function.vjp
        if has_backward and has_vjp:
            raise RuntimeError(
                f"{cls.__name__}: Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
                f"should only implement one of them: they are two names of one thing"
            )
        if not has_backward and not has_vjp:
            raise NotImplementedError(f"{cls.__name__}: {_MISSING_BACKWARD}")
        return cls.vjp if has_vjp else cls.backward

    @classmethod
    def _run_backward(cls, ctx: FunctionCtx, grad_outputs: Sequence) -> Any:
        """Return what the user's backward returns."""
        backward = cls._backward_method()
        try:
            if cls.boxed_grads_call is False or not flag(cls, "boxed_grads_call"):
                return backward(ctx, *grad_outputs)
            return backward(ctx, list(grad_outputs))
        except AttributeError as error:
            explain_unset(ctx, error)
            raise

    generate_vmap_rule = False
    clear_saved_tensors_on_access = False  # if True, `ctx.saved_tensors` can be read once: the graph keeps no reference
    boxed_grads_call = False  # if True, backward takes the gradients in one list, which it may empty

    @staticmethod
    def vmap(info: Any, in_dims: tuple, *args: Any) -> Any:
        """Run the function on a batch: return the outputs and their batch dimensions."""
        raise NotImplementedError(
            "a Function that is to run under vmap defines the static method vmap, or sets generate_vmap_rule = True"
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward, and record its outputs as those of one node.

        With `setup_context`, keyword arguments and defaults of forward become positional, also for `setup_context`,
        backward and `needs_input_grad`.  A forward with ctx accepts keyword arguments that are not tensors.
        """
        if cls.setup_context is not Function.setup_context:
            args, kwargs = bind_arguments(cls, args, kwargs), {}
        elif kwargs:
            check_keywords(cls, kwargs)
        state = current()
        foreign = find_foreign(args)
        if foreign:
            return override_result(cls._operator, foreign, args, kwargs)
        if state.level is not None:
            level = recording_level(args)
            if level is not None:
                return level.record_call(cls._operator, args, kwargs)
            _check_transforms(cls, args, state.grad_enabled)
        levels = [] if state.level is None else tangent_levels()
        ctx = cls._backward_cls()
        ctx.needs_input_grad = tuple([isinstance(a, Tensor) and requires_grad_synced(a) for a in args])
        recorded = True in ctx.needs_input_grad and is_recording()
        fn = _node(cls, ctx, args) if recorded else None  # before forward runs, which may write to the inputs
        recording = state.grad_enabled
        try:
            with at(None, False) if state.level is None else pause_levels(levels):
                if cls.setup_context is Function.setup_context:
                    result = cls.forward(ctx, *args, **kwargs)
                else:
                    result = _run_forward(cls, args, recording)
                    cls.setup_context(ctx, args, result)
        except Exception as error:
            note_call(error, f"the forward of {cls.__name__}", (*args, *kwargs.values()))
            raise
        results = result if isinstance(result, tuple) else (result,)
        if ctx.dirty_tensors:
            check_dirty(cls, ctx, args, results, recorded)
        outputs = make_outputs(cls, ctx, args, results, recorded)
        if ctx.non_differentiable:  # an input that was returned has become another tensor
            fixed = ctx.non_differentiable
            pairs = zip(outputs, results, strict=True)
            ctx.non_differentiable = tuple([out for out, r in pairs if contains_tensor(r, fixed)])
        try:
            if fn is not None:
                attach_outputs(fn, ctx, outputs)
            if levels:
                set_output_tangents(levels, cls.__name__, cls._operator.run_jvp, args, outputs, ctx)
        finally:  # They may contain outputs, which hold the node. A checkpoint that stops early raises in a pack hook.
            if ctx.to_save:
                ctx.to_save = ()
            if ctx.dirty_tensors or ctx.non_differentiable or ctx.saved_for_forward:
                ctx.dirty_tensors = ctx.non_differentiable = ctx.saved_for_forward = ()
        return tuple(outputs) if isinstance(result, tuple) else outputs[0]


def recording_level(args: Sequence) -> Level | None:
    """Return the level that records a call as one node; None if the level above the ground must run its forward."""
    level = graph_level()
    if level is None or not level.traces or tangent_levels():
        return None
    own = [a for a in args if isinstance(a, Tensor) and a.level is level]
    return None if is_recording() and any(map(requires_grad_synced, own)) else level


def _check_transforms(cls: type[Function], args: tuple, recording: bool) -> None:
    """Raise if the gradient of a forward that takes ctx would be lost."""
    if cls.setup_context is not Function.setup_context:
        return
    if any(isinstance(a, Tensor) and _is_differentiated_outside(a) for a in args):
        outside = "something else differentiates an argument"
    elif recording and _is_traced(graph_level()):
        outside = "a trace around it records the forward, which later runs differentiate"
    else:
        return
    raise RuntimeError(
        f"{cls.__name__}: In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, "
        f"...), it must override the setup_context staticmethod: forward takes ctx, so that only the innermost "
        f"function transform can use its gradient, and {outside}; define setup_context, and a forward without ctx"
    )


def _is_traced(level: Level | None) -> bool:
    """Return whether a level, or one below it, records calls."""
    while level is not None and not level.traces:
        level = level.parent
    return level is not None


def _is_differentiated_outside(x: Tensor) -> bool:
    """Return whether tangents or outer graphs, besides the innermost graph, depend on a tensor."""
    while x.level is not None:
        if x.level.forward_mode and x.tag is not None:
            return True
        x = x.value
        if requires_grad_synced(x):
            return True
    return False


def _run_forward(cls: type[Function], args: tuple, recording: bool) -> Any:
    """Return the result: by forward on the ground, else by the function one level below.

    `recording` is the grad mode of the call, which a graph keeps.
    """
    level = graph_level()
    if level is None:
        return cls.forward(*args)
    if level.traces:
        with at(current().level, recording):
            return level.record_call(cls._operator, args, {})
    with level.below():
        result = level.process(cls._operator, args, {})
    written = [a for a in args if isinstance(a, Tensor) and a.level is level]
    return (
        tuple([_reuse_argument(r, written) for r in result])
        if isinstance(result, tuple)
        else _reuse_argument(result, written)
    )


def _reuse_argument(result: Any, args: list[Tensor]) -> Any:
    """Return the argument for a result that forward wrote to and returned; else the result."""
    for a in args:
        if isinstance(result, Tensor) and result.value is a.value:
            a.tag = result.tag
            return a
    return result


def _node(cls: type[Function], ctx: FunctionCtx, args: tuple) -> GradFn:
    """Return the node of a call, with an edge to each tensor argument."""
    ctx._inputs = describe_tensors(args)
    if len(ctx._inputs) == len(args):
        return function_node(cls._operator, ctx, args, list(ctx.needs_input_grad))
    tensors = [a for a in args if isinstance(a, Tensor)]
    return function_node(cls._operator, ctx, tensors, [a._requires_grad for a in tensors])


class InplaceFunction(Function):
    """Legacy name of Function; inputs that it writes to are marked by `ctx.mark_dirty`."""

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace
