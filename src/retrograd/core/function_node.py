"""Nodes of a user's functions, which compute all gradients at once: what calls save, and what the functions return."""

import weakref
from functools import partial

from numpy import ndarray

from retrograd.core.graph import GradFn, Packed, node
from retrograd.core.hooks import conjugate
from retrograd.core.record import map_saved, saved_output, saved_version
from retrograd.core.state import current
from retrograd.core.tensor import INFERENCE, TensorBase, alias, count_of, is_real_array, make
from retrograd.core.views import synced_grad_fn
from retrograd.foundation.describe_value import note_call


def run_on_plain(op, kernel, operands):
    """Return the result of a custom operator by a user's kernel for all arrays; None if an operand is not plain.

    This is `call` for the most common case: one result, and operands that are arrays on the ground, no views, and left
    no graph at a known line.
    """
    state = current()
    if state.level is not None or state.device is not None:
        return None
    recorded = False
    for a in operands:
        if not isinstance(a, TensorBase):
            return None
        t: TensorBase = a
        if t.level is not None or t._view is not None or t.tag is not None or t._overrides:
            return None
        if type(t.value) is not ndarray:
            return None
        recorded = recorded or t._requires_grad
    mode = state.grad_enabled
    if recorded and (state.inference or not mode):
        return None  # `call` notes where the result leaves the graph
    given = operands
    if recorded:  # the kernel gets no history
        given = tuple([make(a.value, None, None) for a in operands])
    state.grad_enabled = False
    try:
        result = kernel(*given)
    except Exception as error:
        note_call(error, f"the kernel of {op.name}", given)
        raise
    finally:
        state.grad_enabled = mode
    value = result.value if is_separate(result, given) else op._check_result(given, result)
    out: TensorBase = make(value, None, None)
    if recorded:
        op.definition.record(op, operands, op.params, out, None)
    elif state.inference:
        out.version = INFERENCE
    return out


def is_separate(result, operands):
    """Return whether a kernel's result is a tensor with its own memory, as far as that is known at once."""
    if not isinstance(result, TensorBase):
        return False
    t: TensorBase = result
    for a in operands:
        u: TensorBase = a
        if u.value is t.value:
            return False
    return t.value.base is None


def shapes_and_dtypes(inputs):
    """Return shape and dtype of each input of a call; None for one that is no tensor."""
    return [(a.shape, a.dtype) if isinstance(a, TensorBase) else None for a in inputs]


def describe_tensors(values):
    """Return index, shape and dtype of each tensor among the arguments or the results of a function."""
    found = []
    for i in range(len(values)):
        a = values[i]
        if isinstance(a, TensorBase):
            found.append((i, a.shape, a.dtype))
    return found


def cotangents_for_users(cotangents):
    """Return the cotangents of a node in the convention of users."""
    found = []
    for g in cotangents:
        if g is not None:
            t: TensorBase = g
            if not is_real_array(t.value):
                g = conjugate(g)
        found.append(g)
    return found


def needed_inputs(inputs, level):
    """Return whether each input of a call at a level needs a gradient."""
    return [isinstance(a, TensorBase) and a._requires_grad and a.level is level for a in inputs]


def function_node(op, ctx, inputs, needed):
    """Return the node of a call with a ctx; the inputs that need a gradient are at the ends of its edges."""
    edges = []
    numbers = []
    several = False
    for i in range(len(inputs)):
        edge = None
        number = 0
        if needed[i]:
            t: TensorBase = inputs[i]
            edge = synced_grad_fn(t)
            if edge is None:
                edge = t
            else:
                number = t._output_nr
                several = several or number != 0
        edges.append(edge)
        numbers.append(number)
    fn: GradFn = node(op, None, {"ctx": ctx}, tuple(edges), False)
    if several:
        fn.numbers = tuple(numbers)
    ctx._node = weakref.ref(fn)
    return fn


def save_tensors(fn, ctx, outputs):
    """Save the tensors of `save_for_backward`; outputs without history, so that the node does not hold itself."""
    saved = []
    versions = []
    changed = False
    for tensor in ctx.to_save:
        number = index_of(tensor, outputs)
        if number >= 0 and (tensor._grad_fn is fn or contains_tensor(tensor, ctx.dirty_tensors)):
            ctx._saved_outputs = {**ctx._saved_outputs, len(saved): number}
            version = count_of(tensor)
            tensor = saved_output(tensor)
        else:
            version = saved_version(fn.op, tensor)
        changed = changed or version != 0
        saved.append(tensor)
        versions.append(version)
    state = current()
    fn.saved = tuple(saved) if state.saving is None else map_saved(tuple(saved), partial(Packed, state.saving))
    fn.versions = tuple(versions) if changed else None


def index_of(tensor, tensors):
    """Return the index of an object among some tensors; -1 if it is none of them."""
    for i in range(len(tensors)):  # `in` would compare elements
        if tensors[i] is tensor:
            return i
    return -1


def contains_tensor(tensor, tensors):
    """Return whether one of some tensors is this object."""
    return index_of(tensor, tensors) >= 0


def unpack_saved(fn):
    """Return the tensors that a call saved with its ctx, with its outputs connected to its node again."""
    if fn.freed:
        fn.value(0)  # raises the error that it was freed
    if fn.saved is None:
        return ()
    outputs = fn.params["ctx"]._saved_outputs
    found = []
    for i in range(len(fn.saved)):
        tensor = fn.restore(fn.saved[i], 0 if fn.versions is None else fn.versions[i])
        if i in outputs:
            tensor = alias(tensor, fn)
            tensor._output_nr = outputs[i]
        found.append(tensor)
    return tuple(found)


def select_fitting(grads, avals, needed):
    """Return the gradients that are needed, None for the others; only None if one of all does not fit its input."""
    found = []
    for i in range(len(avals)):
        g = grads[i]
        if g is not None:
            aval = avals[i]
            if aval is None or not fits_input(g, aval[0], aval[1]):
                return None
            if not needed[i]:
                g = None
        found.append(g)
    return found


def fits_input(g, shape, dtype):
    """Return whether a gradient that a user's function returned has the shape of an input, and its real dtype."""
    if not isinstance(g, TensorBase):
        return False
    t: TensorBase = g
    if t.level is not None or not is_real_array(t.value):
        return t.dtype is dtype and dtype.kind == "f" and t.shape == shape
    return t.value.dtype is dtype and t.value.shape == shape
