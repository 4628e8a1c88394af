"""`gradcheck` and `gradgradcheck`: compare derivatives with differences of function values."""

import warnings
from collections.abc import Callable
from typing import Any

from retrograd.autograd.backward import grad
from retrograd.autograd.grad_mode import enable_grad
from retrograd.autograd.gradcheck.backward_mode import (
    Input,
    Problem,
    Settings,
    check_undefined,
    check_zero_cotangents,
    named_leaves,
    random_like,
)
from retrograd.autograd.gradcheck.batches import check_batched_backward, check_batched_forward
from retrograd.autograd.gradcheck.comparison import (
    ATOL,
    DOUBLE_EPSILON,
    EPS,
    RTOL,
    check_jacobians,
    choose_method,
    projections_agree,
)
from retrograd.autograd.gradcheck.differences import Array, GradcheckError, Output, Probe, coarsest_epsilon, jacobians
from retrograd.autograd.gradcheck.forward_mode import check_undefined_tangents
from retrograd.core import Tensor, registry
from retrograd.core.dtype import is_bfloat16, is_differentiable
from retrograd.foundation.source_location import warn_user
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.levels.flatten_nested import NestedFlattener, flatten_nested
from retrograd.ops.create import from_numpy
from retrograd.ops.random import Generator

# ------------------------------------------------------------------------------------------------- what users call


def gradcheck(
    func: Callable,
    inputs: Any,
    *,
    eps: float = EPS,
    atol: float = ATOL,
    rtol: float = RTOL,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Return whether the gradients of `func(*inputs)` agree with differences of its values over 2 * `eps`.

    `inputs` is one tensor or a sequence of arguments, which may be pytrees; what requires grad in them is checked,
    entry by entry: `|numerical - analytical| <= atol + rtol * |numerical|`.  Their memory is shifted and restored.
    `func` returns a pytree; checked are its tensors that require grad.  `nondet_tol` is how far two backward
    passes may differ, `check_undefined_grad` compares missing cotangents with zeros, `check_grad_dtypes` requires
    gradients of the inputs' dtypes.  `fast_mode` compares random projections first, and Jacobians only
    where these differ.  `masked` concerns sparse tensors, which do not exist here.

    `check_forward_ad` checks forward mode in addition to backward passes or, with `check_backward_ad=False`, instead;
    tangents belong to the arguments, so the function must use these.  `check_batched_grad` compares two random
    cotangents at once, as `is_grads_batched`, `vectorize` and `vmap` give them, with one by one;
    `check_batched_forward_grad` is the same for tangents.

    Below double precision, with `eps` left as it is, steps follow from the measured rounding noise of `func`, which
    is tolerated in addition to `atol` and `rtol` (whose defaults then fit the dtype).  Errors below that noise are
    not found; a UserWarning says so.  bfloat16 is refused.  For the sources, see `autograd/gradcheck/differences.py`.

    Raises GradcheckError (or returns False, without `raise_exception`) with both Jacobians and the worst entry;
    RuntimeError for inputs whose entries share memory, ValueError if none requires grad, and for batches of what is
    not checked itself; NotImplementedError for what has no forward derivative.

    >>> import retrograd as rg
    >>> x = rg.tensor([0.5, 2.0], dtype=rg.float64, requires_grad=True)
    >>> gradcheck(lambda x: (x.sin(), x.prod()), x)
    True
    """
    _check_modes("gradcheck", check_forward_ad, check_backward_ad, check_batched_grad, check_batched_forward_grad)
    settings = Settings(
        eps=eps,
        atol=atol,
        rtol=rtol,
        nondet_tol=nondet_tol,
        undefined=check_undefined_grad,
        dtypes=check_grad_dtypes,
        fast=fast_mode,
        backward=check_backward_ad,
        forward=check_forward_ad,
        batched=check_batched_grad,
        batched_forward=check_batched_forward_grad,
    )
    flattened = NestedFlattener("gradcheck", func, _as_tuple(inputs))
    return _run_checks(flattened, flattened.args, settings, raise_exception)


def gradgradcheck(
    func: Callable,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = EPS,
    atol: float = ATOL,
    rtol: float = RTOL,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Return whether the gradients of `func`'s gradients are right: `gradcheck` of the map that backward computes.

    That map takes `inputs` and `grad_outputs`, cotangents of the outputs that require grad (default: random, in
    memory with gaps if `gen_non_contig_grad_outputs`), to the gradients of the inputs.  In messages the
    cotangents are numbered after the inputs.  Its derivatives are checked in reverse mode (`check_rev_over_rev`), in
    forward mode (`check_fwd_over_rev`), or in both.  Everything else is as in `gradcheck`.

    >>> import retrograd as rg
    >>> x = rg.tensor([0.5, 2.0], dtype=rg.float64, requires_grad=True)
    >>> gradgradcheck(lambda x: x.sin() * x.sum(), x)
    True
    """
    _check_modes("gradgradcheck", check_fwd_over_rev, check_rev_over_rev, check_batched_grad)
    flattened = NestedFlattener("gradgradcheck", func, _as_tuple(inputs))
    arguments = flattened.args
    gradients = _gradient_function(flattened, arguments)
    if grad_outputs is None:
        with enable_grad():
            outputs = _differentiable_outputs(flattened, arguments)
        cotangents = _random_cotangents([o.tensor for o in outputs], gen_non_contig_grad_outputs)
    else:
        cotangents = tuple([flatten_nested(g)[0] for g in _as_tuple(grad_outputs)])
    settings = Settings(
        eps=eps,
        atol=atol,
        rtol=rtol,
        nondet_tol=nondet_tol,
        undefined=check_undefined_grad,
        dtypes=check_grad_dtypes,
        fast=fast_mode,
        backward=check_rev_over_rev,
        forward=check_fwd_over_rev,
        batched=check_batched_grad,
        batched_forward=False,
    )
    return _run_checks(gradients, (*arguments, *cotangents), settings, raise_exception)


def _gradient_function(func: Callable, arguments: tuple) -> Callable[..., tuple[Tensor | None, ...]]:
    """Return the function from arguments and cotangents to the gradients of the inputs that require grad."""
    names = {x.name for x in _checked_inputs(arguments)}

    def gradients(*values: Any) -> tuple[Tensor | None, ...]:
        given, cotangents = values[: len(arguments)], values[len(arguments) :]
        outputs = [o.tensor for o in _differentiable_outputs(func, given)]
        tensors = [leaf for name, leaf in named_leaves("input", given) if name in names]
        return grad(outputs, tensors, cotangents, create_graph=True, allow_unused=True)

    return gradients


class NothingToCheckError(ValueError, AssertionError):
    """The error of a call that checks nothing; an AssertionError in PyTorch."""


def _check_modes(name: str, forward: bool, backward: bool, batched: bool, batched_forward: bool = False) -> None:
    if not (forward or backward):
        modes = (
            "check_forward_ad and check_backward_ad"
            if name == "gradcheck"
            else "check_fwd_over_rev and check_rev_over_rev"
        )
        raise NothingToCheckError(
            f"{name}: Expected at least one of {modes} to be True; with both False there is nothing to check"
        )
    if batched and not backward:
        raise ValueError(f"{name}: check_batched_grad=True compares backward passes, but these are not to be checked")
    if batched_forward and not forward:
        raise ValueError(f"{name}: check_batched_forward_grad=True needs check_forward_ad=True")


def _as_tuple(values: Any) -> tuple:
    return tuple(values) if isinstance(values, (tuple, list)) else (values,)


def _run_checks(func: Callable, arguments: tuple, settings: Settings, raise_exception: bool) -> bool:
    inputs = _checked_inputs(arguments)
    _check_precision(inputs)
    try:
        with enable_grad():
            _check_problem(Problem(func, arguments, inputs, _differentiable_outputs(func, arguments), settings))
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


# --------------------------------------------------------------------------------------------- inputs and outputs


def _checked_inputs(arguments: tuple) -> list[Input]:
    """Return the checked tensors that require grad."""
    found = [(name, t) for name, t in named_leaves("input", arguments) if isinstance(t, Tensor) and t.requires_grad]
    if not found:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have "
            "requires_grad=True: there is nothing to check"
        )
    return [Input(name, tensor, _input_memory(name, tensor)) for name, tensor in found]


def _input_memory(name: str, tensor: Tensor) -> Array:
    array = tensor.detach().numpy()
    if _overlaps(array):
        expanded = [n for n, stride in zip(array.shape, array.strides, strict=True) if n > 1 and stride == 0]
        kind = "has a dimension with stride 0" if expanded else "has overlapping memory"
        raise RuntimeError(
            f"gradcheck: The {name.removeprefix('input ')}th input {kind}: entries of {name}, of shape {tensor.shape}, "
            f"share memory, as after expand(), so that none can be shifted alone; pass a copy: .clone() or "
            f".contiguous()"
        )
    if not array.flags.writeable:
        raise RuntimeError(f"gradcheck: the memory of {name} can't be written to, so not shifted; pass a .clone()")
    return array


def _overlaps(array: Array) -> bool:
    """Return whether two entries may share memory: a stride within the extent of the smaller ones."""
    reach = 0
    for stride, size in sorted((abs(stride), n) for stride, n in zip(array.strides, array.shape, strict=True) if n > 1):
        if stride <= reach and array.size:
            return True
        reach += stride * (size - 1)
    return False


def _check_precision(inputs: list[Input]) -> None:
    for i in inputs:
        if is_bfloat16(i.tensor.dtype):
            raise ValueError(
                f"gradcheck: {i.name} is bfloat16, whose 8 digits in base 2 leave none to differences of values; "
                f"use .double()"
            )
    low = [i for i in inputs if coarsest_epsilon([i.tensor]) > DOUBLE_EPSILON]
    if low:
        named = [f"Input #{i.name.removeprefix('input ')}" for i in low]
        dtypes = ", ".join(dict.fromkeys(str(i.tensor.dtype) for i in low))
        warn_user(
            f"gradcheck: {', '.join(named)} requires gradient and is not a double precision floating point or complex: "
            f"of less than double precision, {dtypes}, differences of the function's values have few digits, and "
            f"errors that are smaller are not found"
        )


def _differentiable_outputs(func: Callable, arguments: tuple) -> list[Output]:
    """Return the outputs of `func` that require grad."""
    return [o for o in _output_tensors(func, arguments) if o.tensor.requires_grad]


def _output_tensors(func: Callable, arguments: tuple) -> list[Output]:
    """Return the tensors that `func` returns."""
    leaves = enumerate(named_leaves("output", _as_tuple(func(*arguments))))
    return [Output(name, index, leaf) for index, (name, leaf) in leaves if isinstance(leaf, Tensor)]


def _random_cotangents(outputs: list[Tensor], gaps: bool) -> tuple[Tensor, ...]:
    """Return random leaves shaped like the outputs, from a separate generator."""
    generator = Generator(0)
    drawn = [random_like(o.detach(), generator) for o in outputs]
    return tuple((_noncontiguous_copy(d) if gaps else d).requires_grad_() for d in drawn)


def _noncontiguous_copy(x: Tensor) -> Tensor:
    """Return a copy in non-contiguous memory."""
    return registry["stack"]([x, x], -1)[..., 0].detach()


# ----------------------------------------------------------------------------------------------------- the checks


def _check_problem(problem: Problem) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # shifted inputs may be outside the function's domain
        if not problem.outputs:
            _check_constant(problem)
            return
        if not (problem.settings.fast and projections_agree(problem)):
            check_jacobians(problem)
        if problem.settings.forward:
            check_undefined_tangents(problem)
        if problem.settings.batched_forward:
            check_batched_forward(problem)
        if problem.settings.batched:
            check_batched_backward(problem)
        if problem.settings.backward:
            check_zero_cotangents(problem)
            check_undefined(problem)


def _check_constant(problem: Problem) -> None:
    """Check that a function without outputs that require grad does not vary."""
    returned = [o for o in _output_tensors(problem.func, problem.arguments) if is_differentiable(o.tensor.dtype)]
    probe = Probe(problem.func, problem.arguments, returned)
    slope, _ = choose_method(problem, probe)
    for x in problem.inputs:
        for output, found in zip(returned, jacobians(probe, x.array, slope), strict=True):
            if not (abs(found.values) <= found.margins).all():
                raise GradcheckError(
                    f"Numerical gradient for function expected to be zero, because {output.name} does not require "
                    f"grad, but with respect to {x.name} it is\n{from_numpy(found.values[0])}"
                )


suggest_in_module(globals())
