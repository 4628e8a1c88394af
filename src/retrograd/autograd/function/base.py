"""`Function` and its context: run the user's forward, and record it as one node that calls the user's backward."""

import functools
import warnings
import weakref
from collections.abc import Callable
from typing import Any

from retrograd.autograd.function.arguments import check_keywords, with_defaults
from retrograd.autograd.function.batch_rule import VmapInfo, examples_in_front, generated
from retrograd.autograd.function.tangents import forward_levels, push, unseen
from retrograd.core import Aval, GradFn, Op, Tensor, at, current, graph_level, registry
from retrograd.core.dispatch import note_cut
from retrograd.core.dtype import is_differentiable
from retrograd.core.engine import edge_of
from retrograd.core.graph import Packed, node
from retrograd.core.hooks import conjugate
from retrograd.core.level import is_recording
from retrograd.core.record import kept_output, saved_version, stored
from retrograd.core.tensor import alias, bump_version, count_of, make, version_of
from retrograd.core.views import COPIED, View, requires_grad_synced
from retrograd.ops.family import cast_to, sum_to
from retrograd.ops.mutate import check_history, rebase_history_of

IN_FUNCTION = "custom Function"


class FunctionCtx:
    """The context passed from forward to backward: saved tensors, marks, and any attributes that the user sets."""

    needs_input_grad: tuple[bool, ...] = ()
    _inputs: list = []  # noqa: RUF012 (set per call): place, shape and dtype of each tensor among the arguments
    _outputs: list = []  # noqa: RUF012 (set per call): and among what forward returned
    _returned = 1  # how many outputs forward returned
    _saved: tuple = ()
    _saved_outputs: dict[int, int] = {}  # noqa: RUF012 (never written to): index among the saved -> number of the output
    _saved_for_forward: tuple = ()
    _dirty: tuple = ()
    _fixed: tuple = ()
    _materializes = True
    _node: Callable[[], GradFn | None] | None = None

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Save inputs, outputs or other tensors (or None) for backward, which reads them as `saved_tensors`.

        Unlike attributes they are checked for in-place changes, freed with the graph, and seen by
        `saved_tensors_hooks`.
        """
        for index, tensor in enumerate(tensors):
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(
                    f"save_for_backward: expected tensors or None, but argument {index} is of type "
                    f"{type(tensor).__name__}; set an attribute of ctx instead"
                )
        self._saved = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Save tensors for `jvp`."""
        for index, tensor in enumerate(tensors):
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(
                    f"save_for_forward: expected tensors, but argument {index} is of type {type(tensor).__name__}"
                )
        self._saved_for_forward = tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Mark inputs that forward has written to; each of them must be returned."""
        self._dirty = args

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Mark outputs that have no gradient."""
        self._fixed = args

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether backward gets zeros (the default) or None for outputs without cotangent."""
        self._materializes = bool(value)

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors of `save_for_backward`, connected to the graph."""
        if self._saved_for_forward:
            return self._saved_for_forward
        fn = None if self._node is None else self._node()
        return self._saved if fn is None else fn.op.saved(fn)

    saved_variables = saved_tensors


class _FunctionOp(Op):
    """The operator of a user's Function: the interface that the engine and the levels use."""

    def __init__(self, cls: type["Function"]) -> None:
        self.cls = cls
        self.name = cls.__name__
        self.definition = self
        self.differentiable = self.composite = self.accepts_nested = True
        self.reduces_cotangent = self.several_views = self.view = self.random = False
        self.simple = 0
        self._generated = functools.lru_cache(maxsize=64)(functools.partial(generated, Function, cls))

    def compose(self, *args: Any) -> Any:
        """Run the function one level below the calling one."""
        return self.cls.apply(*args)

    def batch(self, batched: tuple[bool, ...], n: int, *args: Any, randomness: str) -> Any:
        """Run the function on n examples at once, by the user's vmap or a rule generated from its other methods."""
        has_rule = self.cls.vmap is not Function.vmap
        if has_rule and self.cls.generate_vmap_rule:
            raise RuntimeError(
                f"{self.name}: defines both the static method vmap and generate_vmap_rule = True; keep one"
            )
        if self.cls.generate_vmap_rule:
            return self._generated(batched, n, randomness).apply(*args)
        if not has_rule:
            raise RuntimeError(
                f"{self.name}: a Function that is to run under vmap defines the static method vmap, or sets "
                f"generate_vmap_rule = True"
            )
        in_dims = tuple([0 if b else None for b in batched])
        return examples_in_front(self.name, n, self.cls.vmap(VmapInfo(n, randomness), in_dims, *args))

    def jvp(self, op: Op, primals: tuple, tangents: tuple, out: Any, params: dict) -> Any:
        """Return the tangents of the outputs, where the function is processed as an operator."""
        ctx = FunctionCtx()
        self.cls.setup_context(ctx, primals, out)
        return self.pushed(ctx, primals, tangents)

    def pushed(self, ctx: FunctionCtx, primals: tuple, tangents: tuple) -> Any:
        """Return the tangents of the outputs of one call, by the user's jvp."""
        if self.cls.jvp is Function.jvp:
            raise NotImplementedError(
                f"{self.name}: You must implement the jvp function for a custom Function to use it in forward mode"
            )
        pairs = zip(primals, tangents, strict=True)
        if ctx._materializes:
            zeros_like = registry["zeros_like"]
            tangents = tuple([zeros_like(p) if t is None and isinstance(p, Tensor) else t for p, t in pairs])
        return self.cls.jvp(ctx, *tangents)

    def saved(self, fn: GradFn) -> tuple[Tensor | None, ...]:
        """Return the saved tensors of a node, with its outputs connected to it again."""
        return saved_of(fn)

    def gradients(self, fn: GradFn, cotangents: tuple, wanted: list[bool]) -> list:
        """Return the gradient of each edge, by the user's backward."""
        ctx = fn.params["ctx"]
        shown = [g if g is None or g.dtype.kind == "f" else conjugate(g) for g in cotangents]
        if ctx._materializes:
            for i, g in enumerate(shown):
                if g is None:
                    shown[i] = _zeros(*ctx._outputs[i])
        results = _rule(self.cls)(ctx, *_spread_out(shown, ctx))
        if not isinstance(results, tuple):
            results = (results,)
        if len(results) != len(ctx.needs_input_grad):
            self._check_count(results, len(ctx.needs_input_grad))
        if len(results) != len(wanted):
            self._check_others(results, [place for place, _, _ in ctx._inputs])
        grads: list[Tensor | None] = []
        for want, (place, shape, dtype) in zip(wanted, ctx._inputs, strict=True):
            result = results[place]
            if result is None or not want:
                grads.append(None)
            elif isinstance(result, Tensor) and result.dtype is dtype and dtype.kind == "f" and result.shape == shape:
                grads.append(result)  # the common case
            else:
                grads.append(fitted(f"{self.name}Backward", place, result, shape, dtype))
        return grads

    def _check_count(self, results: tuple, count: int) -> None:
        extra = results[count:]
        if len(results) < count or any(r is not None for r in extra):
            raise RuntimeError(
                f"{self.name}Backward returned an incorrect number of gradients: one for each argument of forward, "
                f"None where there is none, so expected {count}, got {len(results)}"
            )

    def _check_others(self, results: tuple, inputs: list[int]) -> None:
        for place, result in enumerate(results):
            if result is not None and place not in inputs:
                raise RuntimeError(
                    f"function {self.name}Backward returned a gradient different from None at position {place + 1}, "
                    f"but the corresponding forward input was not a Tensor"
                )


def saved_of(fn: GradFn) -> tuple[Tensor | None, ...]:
    """Return the tensors that a call saved with its ctx, with its outputs connected to its node again."""
    if fn.freed:
        fn.value(0)  # raises the error that it was freed
    if fn.saved is None:
        return ()
    versions, outputs = fn.versions, fn.params["ctx"]._saved_outputs
    found = []
    for index, saved in enumerate(fn.saved):
        tensor = fn.restored(saved, 0 if versions is None else versions[index])
        if index in outputs:
            tensor = alias(tensor, fn)
            tensor.output_nr = outputs[index]
        found.append(tensor)
    return tuple(found)


def fitted(name: str, place: Any, result: Any, shape: tuple[int, ...], dtype: Any) -> Tensor:
    """Return a user's gradient reduced to the input's shape and dtype, in the engine's convention."""
    if not isinstance(result, Tensor):
        raise TypeError(
            f"function {name} returned a {type(result).__name__} as gradient at position {place}: "
            f"expected a Tensor or None"
        )
    if result.shape != shape and not _expandable(shape, result.shape):
        raise RuntimeError(
            f"{name} returned an invalid gradient at index {place}, of shape {list(result.shape)}, "
            f"which does not fit the argument's shape {list(shape)}"
        )
    if result.dtype != dtype and result.dtype.kind == "c" and dtype.kind != "c":
        raise RuntimeError(
            f"{name} returned an invalid gradient at index {place}: expected {dtype} but got {result.dtype}"
        )
    return cast_to(sum_to(conjugate(result), shape), dtype)


def _zeros(place: int, shape: tuple[int, ...], dtype: Any) -> Tensor:
    return registry["zeros"](shape, dtype=dtype)


def _spread_out(cotangents: list, ctx: FunctionCtx) -> list:
    """Return cotangents in the positions that their tensors had among the results of forward."""
    if len(cotangents) == ctx._returned:
        return cotangents
    row: list = [None] * ctx._returned
    for (place, _, _), g in zip(ctx._outputs, cotangents, strict=True):
        row[place] = g
    return row


def _expandable(shape: tuple[int, ...], larger: tuple[int, ...]) -> bool:
    """Return whether a gradient of the larger shape can be summed to an input of `shape`."""
    lead = len(larger) - len(shape)
    return lead >= 0 and all(s in (1, n) for s, n in zip(shape, larger[lead:], strict=True))


def _rule(cls: type["Function"]) -> Callable:
    """Return the method that the class defines: backward or vjp."""
    has_backward = cls.backward is not Function.backward
    has_vjp = cls.vjp is not Function.vjp
    if has_backward and has_vjp:
        raise RuntimeError(
            f"{cls.__name__}: defines both 'backward' and 'vjp', which are two names of one thing; keep one"
        )
    if not has_backward and not has_vjp:
        raise NotImplementedError(f"{cls.__name__}: has no gradient: define its static method backward or vjp")
    return cls.vjp if has_vjp else cls.backward


class Function:
    """The base class of functions with a derivative of their own.

    Define static methods `forward(ctx, *args)` and `backward(ctx, *grad_outputs)`, or `forward(*args)` together with
    `setup_context(ctx, inputs, output)`; call the function by `apply`.  backward returns one gradient per argument of
    forward, None for what has none.  `vjp` is another name of backward.  With `setup_context`, every function
    transform uses the derivatives of the class, `jvp(ctx, *tangents)` in forward mode; without, the innermost uses
    backward, and it is refused where something else differentiates an argument too.

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

    _operator: _FunctionOp

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._operator = _FunctionOp(cls)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise: Functions are not instantiated."""
        raise RuntimeError(
            f"{type(self).__name__}: a Function is not called on an instance (the legacy way), but by "
            f"{type(self).__name__}.apply(...), with a static forward"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the result; operators inside are not recorded."""
        raise NotImplementedError("a Function defines the static method forward")

    @staticmethod
    def setup_context(ctx: FunctionCtx, inputs: tuple, output: Any) -> Any:
        """Save tensors for backward, if forward takes no ctx."""
        raise NotImplementedError("a Function whose forward takes no ctx defines setup_context")

    @staticmethod
    def backward(ctx: FunctionCtx, *grad_outputs: Tensor | None) -> Any:
        """Return the gradients of the inputs, given those of the outputs."""
        raise NotImplementedError("a Function defines backward")

    @staticmethod
    def vjp(ctx: FunctionCtx, *grad_outputs: Tensor | None) -> Any:
        """Alias of backward."""
        raise NotImplementedError("a Function defines vjp, or backward")

    @staticmethod
    def jvp(ctx: FunctionCtx, *grad_inputs: Tensor | None) -> Any:
        """Return the tangents of the outputs, given those of the inputs."""
        raise NotImplementedError("a Function defines jvp to be used in forward mode")

    generate_vmap_rule = False

    @staticmethod
    def vmap(info: Any, in_dims: tuple, *args: Any) -> Any:
        """Run the function on a batch: return the outputs and their batch dimensions."""
        raise NotImplementedError(
            "a Function that is to run under vmap defines the static method vmap, or sets generate_vmap_rule = True"
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward, and record its outputs as those of one node.

        Where there is `setup_context`, arguments given by name and defaults of forward become positional: it, backward
        and `needs_input_grad` have them too.  A forward with ctx gets values by name as they are, but no tensors.
        """
        if cls.setup_context is not Function.setup_context:
            args, kwargs = with_defaults(cls, args, kwargs), {}
        elif kwargs:
            check_keywords(cls, kwargs)
        state = current()
        levels = [] if state.level is None else forward_levels()
        if state.level is not None:
            _check_place(cls, args, state.grad_enabled)
        ctx = FunctionCtx()
        ctx.needs_input_grad = tuple([isinstance(a, Tensor) and requires_grad_synced(a) for a in args])
        recorded = True in ctx.needs_input_grad and is_recording()
        fn = _node(cls, ctx, args) if recorded else None  # before forward runs, which may write to the inputs
        with at(None, False) if state.level is None else unseen(levels):
            if cls.setup_context is Function.setup_context:
                result = cls.forward(ctx, *args, **kwargs)
            else:
                result = _forward(cls, args)
                cls.setup_context(ctx, args, result)
        results = result if isinstance(result, tuple) else (result,)
        if ctx._dirty:
            _check_dirty(cls, ctx, args, results, recorded)
        outputs = [_output(ctx, args, r) if isinstance(r, Tensor) else r for r in results]
        if fn is not None:
            _attach(fn, ctx, outputs)
        if levels:
            push(levels, cls.__name__, cls._operator.pushed, args, outputs, ctx)
        ctx._saved = ctx._dirty = ctx._fixed = ctx._saved_for_forward = ()  # outputs, maybe, and they hold the node
        return tuple(outputs) if isinstance(result, tuple) else outputs[0]


def _check_place(cls: type[Function], args: tuple, recording: bool) -> None:
    level = graph_level()
    if cls.setup_context is Function.setup_context and any(isinstance(a, Tensor) and _is_followed(a) for a in args):
        raise RuntimeError(
            f"{cls.__name__}: forward takes ctx, so that only the innermost function transform can use its "
            "gradient, and "
            f"something else differentiates an argument; define setup_context, and a forward without ctx"
        )
    if recording and level is not None and level.traces:
        raise NotImplementedError(
            f"{cls.__name__}: a graph holds registered operators only, and would lose the derivative of this Function. "
            f"Make it an operator with that derivative, see retrograd.library.custom_op and register_autograd; or call "
            f"it under no_grad() if no gradient is needed."
        )


def _is_followed(x: Tensor) -> bool:
    """Return whether tangents or outer graphs, besides the innermost graph, depend on a tensor."""
    while x.level is not None:
        if x.level.pushes and x.tag is not None:
            return True
        x = x.value
        if requires_grad_synced(x):
            return True
    return False


def _forward(cls: type[Function], args: tuple) -> Any:
    """Return the result: by forward on the ground, else by the function one level below."""
    level = graph_level()
    if level is None or level.traces:
        return cls.forward(*args)
    with level.below():
        result = level.process(cls._operator, args, {})
    written = [a for a in args if isinstance(a, Tensor) and a.level is level]
    return tuple([_again(r, written) for r in result]) if isinstance(result, tuple) else _again(result, written)


def _again(result: Any, args: list[Tensor]) -> Any:
    """Return the argument for a result that forward wrote to and returned; else the result."""
    for a in args:
        if isinstance(result, Tensor) and result.value is a.value:
            a.tag = result.tag
            return a
    return result


def _node(cls: type[Function], ctx: FunctionCtx, args: tuple) -> GradFn:
    """Return the node of a call, with an edge to each tensor argument."""
    inputs, edges, numbers = [], [], []
    for place, a in enumerate(args):
        if isinstance(a, Tensor):
            inputs.append((place, a.shape, a.dtype))
            edge, number = edge_of(a) if a._requires_grad else (None, 0)
            edges.append(edge)
            numbers.append(number)
    ctx._inputs = inputs
    fn = node(cls._operator, None, {"ctx": ctx}, tuple(edges), False)
    if any(numbers):
        fn.numbers = tuple(numbers)
    ctx._node = weakref.ref(fn)
    return fn


def _is_among(tensor: Any, tensors: tuple) -> bool:
    for other in tensors:  # noqa: SIM110 (twice as quick; `in` would compare elements)
        if other is tensor:
            return True
    return False


def _output(ctx: FunctionCtx, args: tuple, result: Tensor) -> Tensor:
    """Return an output for the caller: an input that is returned unchanged becomes a new tensor."""
    if ctx._dirty and _is_among(result, ctx._dirty):
        return result
    if result._requires_grad or _is_among(result, args):
        return _shown(result)
    if result._view is not None and result._view.made != COPIED:
        result._view.made = IN_FUNCTION
    return result


def _shown(tensor: Tensor) -> Tensor:
    """Return a view of all of a tensor, outside its graph, that refuses recorded writes."""
    out = make(tensor.value, tensor.level, tensor.tag)
    out.version = version_of(tensor)
    base = tensor if tensor._view is None else tensor._view.base
    chain = () if tensor._view is None else tensor._view.chain
    out._view = View(base, chain, IN_FUNCTION, out.version.rebased)
    return out


def _check_dirty(cls: type[Function], ctx: FunctionCtx, args: tuple, results: tuple, recorded: bool) -> None:
    """Bump the versions of inputs marked as dirty, after checking that they may be written to."""
    tensors = sum(isinstance(r, Tensor) for r in results)
    for tensor in ctx._dirty:
        if not _is_among(tensor, results):
            raise RuntimeError(
                f"{cls.__name__}: a tensor of shape {tensor.shape} that forward marked as dirty was not returned; "
                f"return every input that it writes to"
            )
        bump_version(tensor)
        if not recorded:
            continue
        if not _is_among(tensor, args):
            warnings.warn(
                f"{cls.__name__}: Only input Tensors need ctx.mark_dirty(); that of shape {tensor.shape} is none",
                stacklevel=4,
            )
        check_history(tensor)
        if tensor._view is not None and tensors > 1:
            raise RuntimeError(
                f"{cls.__name__}: forward writes in place to an input that is a view of another Tensor, so it may not "
                f"return more than one tensor"
            )


def _attach(fn: GradFn, ctx: FunctionCtx, outputs: list) -> None:
    """Make the tensors that forward returned the outputs of the node."""
    made = [(place, out.shape, out.dtype) for place, out in enumerate(outputs) if isinstance(out, Tensor)]
    ctx._outputs, ctx._returned = made, len(outputs)
    if len(made) > 1:
        fn.out_avals = tuple([Aval(shape, dtype) for _, shape, dtype in made])  # type: ignore[attr-defined]
    for number, (place, _, dtype) in enumerate(made):
        out = outputs[place]
        if not is_differentiable(dtype) or (ctx._fixed and _is_among(out, ctx._fixed)):
            if out.level is None:
                note_cut(out, "mark_non_differentiable")
        elif ctx._dirty and _is_among(out, ctx._dirty):
            _rebase(fn, number, out)
        else:
            out._grad_fn, out.output_nr, out._requires_grad = fn, number, True
    if ctx._saved:
        save(fn, ctx, tuple([outputs[place] for place, _, _ in made]))
    for watcher in current().watchers or ():
        watcher.recorded(fn)


def _rebase(fn: GradFn, number: int, out: Tensor) -> None:
    """Give a tensor that was written to, and if it is a view its base, a new history."""
    target = make(out.value, out.level, None)
    target._grad_fn, target.output_nr, target._requires_grad = fn, number, True
    rebase_history_of(out, target)


def _number(tensor: Tensor | None, outputs: tuple) -> int | None:
    for number, out in enumerate(outputs):
        if out is tensor:
            return number
    return None


def save(fn: GradFn, ctx: FunctionCtx, outputs: tuple) -> None:
    """Save the tensors of `save_for_backward`; outputs without history, so that the node does not hold itself."""
    saved: list[Any] = []
    versions = []
    for tensor in ctx._saved:
        number = _number(tensor, outputs)
        if number is not None and (tensor._grad_fn is fn or _is_among(tensor, ctx._dirty)):
            ctx._saved_outputs = {**ctx._saved_outputs, len(saved): number}
            versions.append(count_of(tensor))
            tensor = kept_output(tensor)
        else:
            versions.append(0 if tensor is None else saved_version(fn.op, tensor))
        saved.append(tensor)
    state = current()
    fn.saved = tuple(saved) if state.saving is None else stored(tuple(saved), functools.partial(Packed, state.saving))
    fn.versions = tuple(versions) if any(versions) else None  # type: ignore[attr-defined]


# -------------------------------------------------------------------------------------------------- variations


class _Once:
    """The operator of the results of a once_differentiable backward: it has no derivative."""

    name = "Error"
    reduces_cotangent = False

    @staticmethod
    def gradients(fn: GradFn, cotangents: tuple, wanted: list[bool]) -> list:
        """Raise."""
        raise RuntimeError("this backward is marked @once_differentiable: it can't be differentiated a second time")


def once_differentiable(fn: Callable) -> Callable:
    """Mark a backward as not differentiable: it runs unrecorded, and a double backward raises RuntimeError."""

    @functools.wraps(fn)
    def backward(ctx: FunctionCtx, *args: Any) -> Any:
        state = current()
        twice = state.grad_enabled and any(isinstance(a, Tensor) and requires_grad_synced(a) for a in args)
        with at(state.level, False):
            results = fn(ctx, *args)
        if not twice:
            return results
        edges = tuple([edge_of(a)[0] for a in args if isinstance(a, Tensor) and requires_grad_synced(a)])
        refusal = node(_Once, None, {}, edges, False)
        if isinstance(results, tuple):
            return tuple([_refusing(r, refusal) for r in results])
        return _refusing(results, refusal)

    return backward


def _refusing(result: Any, refusal: GradFn) -> Any:
    if not isinstance(result, Tensor):
        return result
    out = alias(result, refusal)
    out.output_nr = 0
    return out


class InplaceFunction(Function):
    """Legacy name of Function; inputs that it writes to are marked by `ctx.mark_dirty`."""
