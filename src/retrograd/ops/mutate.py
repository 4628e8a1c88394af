"""In-place writes.  A write changes the memory and rebases the history of the tensor, or of the base of a view.

At ground level the values are written into the array.  At other levels nothing is overwritten: the tensor gets a new
value, and views of the same base are synced at their next use.
"""

import math

from retrograd import backend
from retrograd.backend.type_info import check_element_fits, check_number_fits
from retrograd.core import Aval, Internal, Tensor, call, current, graph_level, op, operator_named, registry
from retrograd.core import dtype as dtypes
from retrograd.core.dispatch import ground, write_plain, write_ufunc
from retrograd.core.errors import OperandValueError, raise_as_runtime_error
from retrograd.core.hooks import conjugate, share_tensor_hooks
from retrograd.core.op import composite_arrays, compound, is_foreign, takes_over
from retrograd.core.overrides import override_result
from retrograd.core.record import missing_rule, record, saved_version
from retrograd.core.state import is_recording
from retrograd.core.tensor import Version, alias, bump_version, make, needs_no_promotion, preserve_snapshots, version_of
from retrograd.core.views import (
    COPIED,
    base_of,
    copy_plain,
    fill_plain,
    is_differentiable_view,
    is_writable,
    rebase_history,
    refuse_view,
    replay_view,
    requires_grad_synced,
)
from retrograd.foundation.lazy_imports import add_attribute, late_attribute
from retrograd.ops.as_tensor import operand
from retrograd.ops.batching import broadcast_batch, unsqueeze_n
from retrograd.ops.create import arange, as_tensor, full_like
from retrograd.ops.family import broadcast_shapes, cast_to, sum_to
from retrograd.ops.functions import check_tensor, function, name_generated
from retrograd.ops.index import (
    IndexLayout,
    T,
    apply_index,
    check_mask,
    fill_slots,
    foreign_in_key,
    has_mixed_ranks,
    indexed_shape,
    is_separated,
    key_as_tuple,
    split_integers,
    split_scalars,
    static_index,
)
from retrograd.ops.layout import array_device, place
from retrograd.ops.pointwise import eq, scale_operand, where
from retrograd.ops.view import reshape


@op("view_scatter(Tensor base, Tensor src, *, any chain, any called='') -> Tensor")
class view_scatter(Internal, linear="base,src", elements="moved"):
    """base with src written to the view that `chain` selects: an in-place write as a function.

    `chain` is a tuple of (operator name, params); () is all of base.  src is broadcast and converted.  `called` is the
    name of nodes; "" is for an in-place write.
    """

    def impl(xp, base, src, *, chain, called=""):
        out = xp.array(base, copy=True, order="C")
        window = _view_of_array(out, chain)
        if xp.is_writable(window) and (not window.size or xp.may_share_memory(window, out)):
            window[...] = src
        else:  # a step of the chain copied in C order, or gave a read-only array, as expand does: write by indices
            out.reshape(-1)[_view_of_array(xp.arange(out.size).reshape(out.shape), chain)] = src
        return out

    def node_name(fn):
        if fn.params.get("called"):
            return fn.params["called"]
        return "CopySlices" if fn.params["chain"] else "CopyBackwards"

    def shape(base, src, *, chain, called=""):
        return base

    def vjp_base(g, chain):
        return view_scatter(g, 0.0, chain=chain)

    def vjp_src(g, src_aval, chain):
        g = conjugate(g)  # views of real and imaginary parts apply to the gradient, the conjugate of g
        for name, params in chain:
            g = operator_named(name)(g, **params)
        return cast_to(sum_to(conjugate(g), src_aval.shape), src_aval.dtype)

    def batch(batched, n, base, src, *, chain, called=""):
        base = base if batched[0] else broadcast_batch(base, n)
        example, stacked = base.aval, []
        for name, params in chain:
            steps = registry[name].definition.batched_views(example.shape, **params)
            for step, given in steps:
                example = registry[step].definition.shape(example, **given)
            stacked += steps
        src = unsqueeze_n(src, example.ndim - src.ndim) if batched[1] else src
        return view_scatter(base, src, chain=tuple(stacked), called=called)

    def oracle(np, base, src, chain, called=""):
        out = base.copy()
        if chain:  # of the one sample: column 1
            out[:, 1] = src
        else:
            out[:] = src
        return out

    def samples(r):
        yield (r(2, 3), r(2, 3)), {"chain": ()}
        yield (r(2, 3), r(3)), {"chain": ()}
        yield (r(2, 3), r(2)), {"chain": (("permute", {"dims": (1, 0)}), ("slice", {"spec": (1,)}))}


def _view_of_array(array, chain):
    """The array after a chain of view operators."""
    for name, params in chain:
        array = operator_named(name).kernel_for((array,))(array, **params)
    return array


@op("index_put(Tensor x, Tensor values, Tensor[] ids, *, any spec) -> Tensor")
class index_put(Internal, linear="x,values", elements="moved", memory="images"):
    """x with values written at [spec], where each T in spec is the next index tensor; of duplicates one is written."""

    def impl(xp, x, values, *ids, spec):
        out = xp.array(x, copy=True)
        out[fill_slots(spec, ids)] = values
        return out

    def shape(x, values, *ids, spec):
        return x

    def vjp_x(g, ids, spec):
        return index_put(g, 0.0, ids, spec=spec)

    def vjp_values(g, values_aval, ids, spec):
        found = apply_index(g, ids, spec)
        if ids and found.shape != values_aval.shape:  # of values written to the same index, only the last one counts
            found = where(_is_last_write(g, ids, spec), found, 0)
        return cast_to(sum_to(found, values_aval.shape), values_aval.dtype)

    def batch(batched, n, x, values, *ids, spec):
        layout = IndexLayout(spec, x.ndim - batched[0], ids, batched[2:])
        x = x if batched[0] else broadcast_batch(x, n)
        if not hasattr(values, "shape"):
            ids, spec = layout.of_examples(n)
            return index_put(x, values, ids, spec=spec)
        shape_per_example = indexed_shape(Aval(x.shape[1:], x.dtype), layout.alone(), spec)
        values = unsqueeze_n(values, len(shape_per_example) + 1 - values.ndim) if batched[1] else values
        ids, spec = layout.of_examples(n)
        return index_put(x, layout.examples_last(registry["expand"](values, (n, *shape_per_example))), ids, spec=spec)

    def oracle(np, x, values, *ids, spec):
        out, rest = x.copy(), iter(ids)
        out[tuple(next(rest) if repr(s) == "T" else s for s in spec)] = values
        return out

    def samples(r):
        yield (r(4, 3), r(2, 3), as_tensor([3, 1])), {"spec": (T,)}
        yield (r(4, 3), r(), as_tensor([2, 0])), {"spec": (slice(None), T)}
        yield (r(4, 3), 2.5, as_tensor([2, 0])), {"spec": (slice(None), T)}
        yield (r(4, 3), r(3), as_tensor([2, 0, 2])), {"spec": (T,)}


def _is_last_write(x, ids, spec):
    """Whether each element written at x[spec] is the last one written to its index."""
    shape = indexed_shape(x, ids, spec)
    numbers = reshape(arange(math.prod(shape)), shape)
    last_writer = index_put(full_like(x, -1, dtype=dtypes.int64), numbers, ids, spec=spec)
    return eq(apply_index(last_writer, ids, spec), numbers)


# ---------------------------------------------------------------------------------------------------- writing


def copy_(x, src, non_blocking=False) -> Tensor:
    """Copy `src`, broadcast and converted, into x in place, and return x."""
    if x._overrides or is_foreign(src):
        foreign = [a for a in (x, src) if is_foreign(a)]
        if foreign:
            return override_result(Tensor.copy_, foreign, (x, src), {"non_blocking": True} if non_blocking else {})
    if isinstance(src, Tensor) and _copied_plain(x, src):
        return x
    return write_into("copy_", x, operand("copy_", src, x.dtype))


def _copied_plain(x, src):
    """Copy src into x if both are plain and nothing is recorded; return whether it did."""
    if current().level is not None or is_recorded(x, src):
        return False
    return not copy_plain(Tensor, [(x, _transpose_first(src, x))])


def _filled_plain(x, number, mask=None):
    """Fill x, where a mask of its shape says so, if x is plain and nothing is recorded; return whether it did."""
    return current().level is None and not is_recorded(x) and fill_plain(x, number, mask)


MANY = 10_000  # elements from which on a transposed copy is faster in two steps


def _transpose_first(src, x):
    """Return src, in row-major order if it is large and transposed: NumPy takes four times as long to write it so."""
    if src.numel() < MANY or src.level is not None or src.ndim < 2 or src.shape != x.shape:
        return src
    strides, step = getattr(src.value, "strides", (0, 0)), src.dtype.itemsize
    transposed = strides[-2] == step and strides[-1] > step and array_device(src) is None
    return src.contiguous() if transposed and x.is_contiguous() else src


def write_into(name, x, src):
    """Write a tensor into the memory of x for the function called `name`; return x."""
    if _copied_plain(x, src):
        return x
    parts = compound(x)
    if parts is not None:
        return parts.write(name, x, src)
    level = find_level_of_write(name, x, src)
    if level is not None:
        return _write_below(level, write_into, name, x, (src,))
    its = compound(src)
    src = src if its is None else its.to_dense(src, None, True)
    src = place(src, array_device(x))
    check_broadcasts_to(name, x, src)
    recorded = is_recorded(x, src)
    if x.level is not None:
        return _write_at_level(x, src)
    preserve_snapshots(x)
    x.value[...] = _array_to_write(src, x.dtype)
    inherit_detached(x, src)
    bump_version(x)
    if recorded:
        rebase(x, src)
    if current().level is not None:
        _notify_levels(x, src)
    return x


def check_write(name, x, *operands):
    """Refuse an invalid write before anything changes; also one that `find_level_of_write` would allow below."""
    if find_level_of_write(name, x, *operands) is not None:
        _refuse_captured(name, x)


def find_level_of_write(name, x, *operands):
    """Refuse an invalid write before anything changes; return None, or the level below which it has to run.

    That is the level of `vmap`, for a tensor from outside: all examples share it, so the write is made once.
    """
    base = x if x._view is None else x._view.base
    if x._view is not None and x._view.creation_meta == COPIED:
        refuse_copy(name, x)
    level = graph_level()
    if x.level is not level or base.level is not x.level:
        if level is None or level is not current().level or level.lower_write(name, x, operands) is None:
            _refuse_captured(name, x)
        return level
    if x.is_inference() and not current().inference:
        if is_recorded(x, *operands):
            check_history(x)
        check_inference(name, x)
    for other in operands:
        if x.level is None and isinstance(other, Tensor) and other.level is not None:
            raise other.level.escape_error(other)
    if is_recorded(x, *operands):
        check_history(x)
    if x.level is None and not is_writable(x):
        raise RuntimeError(
            f"{name}: this tensor's memory is read-only: it comes from a read-only array, or it is expanded, so that "
            f"more than one element of the written-to tensor refers to a single memory location. Please clone() it."
        )


def _refuse_captured(name, x):
    if x.level is not None and not x.level.active:
        raise x.level.escape_error(x)
    raise RuntimeError(
        f"{name}: the function provided attempted to call in-place operation ({name}) that would mutate a captured "
        f"Tensor. This is not supported: a tensor from outside a function transform or trace can't be written to "
        f"inside; clone it there, or make it an argument"
    )


def _write_below(level, write, name, x, operands):
    """Return x after `write(name, x, *operands)` one level below."""
    x_below, *operands_below = level.lower_write(name, x, operands)
    with level.below():
        write(name, x_below, *operands_below)
    return x


def check_inference(name, x):
    """Refuse to change, outside inference mode, a tensor that was made there."""
    if x.is_inference() and not current().inference:
        raise RuntimeError(
            f"{name}: Inplace update to inference tensor outside InferenceMode is not allowed; write to a clone() of "
            f"this tensor, of shape {x.shape}"
        )


def refuse_copy(name, x):
    """Refuse a write to a copy that is a view in PyTorch, because it would not reach the base."""
    source = x._view.base.shape
    raise RuntimeError(
        f"{name}: this tensor of shape {x.shape} is a view in PyTorch, but here a copy, made by "
        f"{x._view.chain[-1][0].name}, of elements of a tensor of shape {source}, which the write would not reach. "
        f"Write to that tensor, e.g. by base[index] = value, or to a clone() of this one."
    )


def check_history(x):
    """Raise RuntimeError if a recorded write to x is not allowed: to a leaf, or to certain views."""
    if x._view is not None:
        if x._view.creation_meta:
            refuse_view(x, x._view.creation_meta)
        if base_of(x._view).version is not x.version:
            raise RuntimeError(
                "in-place write to a view of a tensor that was resized in place since, or data was assigned to it, so "
                "that they no longer share memory; write under no_grad(), or to a clone"
            )
        if _is_view_of_leaf(x):
            raise RuntimeError(
                "a view of a leaf Variable that requires grad is being used in an in-place operation. Write under "
                "no_grad(), or to a clone"
            )
    if requires_grad_synced(x) and x._grad_fn is None:
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation. Write under no_grad(), or to "
            "x.detach() or x.clone()"
        )


def _is_view_of_leaf(x):
    """Whether x is a view of a leaf that requires grad: of its base, or of another view on the way to it."""
    base = base_of(x._view)
    return base._grad_fn is None if requires_grad_synced(base) else requires_grad_synced(x) and x._grad_fn is not None


def check_broadcasts_to(name, x, src):
    """Raise RuntimeError unless src broadcasts to the shape of x."""
    if src.shape == x.shape or src.shape == ():
        return
    reason = f"a value of shape {src.shape} does not fit into shape {x.shape}"
    try:
        if broadcast_shapes(name, [x.shape, src.shape]) == x.shape:
            return
    except OperandValueError as error:
        reason += f": {error}"
    raise OperandValueError(f"{name}: {_expand_words(src.shape, x.shape)}: shape mismatch, {reason}")


def _expand_words(shape, into):
    """Return PyTorch's words for a shape that does not expand to another."""
    lead = len(into) - len(shape)
    if lead < 0:
        return (
            f"the number of sizes provided ({len(into)}) must be greater or equal to the number of dimensions in the "
            f"tensor ({len(shape)})"
        )
    at = next(d for d, size in enumerate(shape) if size not in (1, into[d + lead])) + lead
    return (
        f"The expanded size of the tensor ({into[at]}) must match the existing size ({shape[at - lead]}) at "
        f"non-singleton dimension {at}"
    )


def is_recorded(x, *operands):
    """Whether a write to x is recorded in a graph."""
    if not is_recording() or not dtypes.is_differentiable(x.dtype):
        return False
    # No short circuit: this syncs the history of each view.
    require_grad = [requires_grad_synced(a) for a in (x, *operands) if isinstance(a, Tensor)]
    if any(require_grad):
        return True
    return x._view is not None and is_differentiable_view(x._view) and requires_grad_synced(base_of(x._view))


def inherit_detached(x, *operands):
    """Copy to x the note where a written operand was detached from a graph."""
    for a in operands:
        if isinstance(a, Tensor) and a.tag is not None:
            x.tag = a.tag
            if x._view is not None:
                x._view.base.tag = a.tag


def _array_to_write(src, dtype):
    """The array to write, in the given dtype."""
    return src.value if src.dtype == dtype else registry["to"](src.detach(), dtype).value


def _notify_levels(x, src):
    """Notify levels that keep state per tensor of a write to x; None says that x left its graph."""
    for level in stateful_levels():
        level.on_write(x, src)


def stateful_levels():
    """The transparent levels that keep state per tensor; they see only what operators compute."""
    found, level = [], current().level
    while level is not None and level.transparent:
        if level.on_write is not None:
            found.append(level)
        level = level.parent
    return found


def rebase(x, src):
    """Record the write of `src` to x as the new history of x, or of its base if x is a view."""
    base, chain = _base_and_chain(x)
    shadow = make(base.value, base.level, None)
    shadow.version = version_of(base)
    record(view_scatter, (base, src), {"chain": chain}, shadow, base.level)
    rebase_history(base, shadow)
    base.version.rebases += 1


def _base_and_chain(x):
    if x._view is None:
        return x, ()
    return base_of(x._view), tuple((step.name, params) for step, params in x._view.chain)


def _write_at_level(x, src):
    """Write at a level other than ground: the base gets a new value, and its views are synced."""
    base, chain = _base_and_chain(x)
    notify = base.level.on_write  # for a level that records the history of tensors itself
    recorded = current().grad_enabled
    if x._view is None or is_differentiable_view(x._view):
        merged = view_scatter(base, src, chain=chain)
    else:  # a view through detach(): values change, but no graph records it
        differentiable_chain = tuple([step for step in chain if registry[step[0]].differentiable])
        merged = view_scatter(base.detach(), src.detach(), chain=differentiable_chain)
        merged, recorded = merged if notify else _replace_values(base, merged), False
    if notify and not recorded:
        notify(base, merged)
    base.value, base.tag = merged.value, merged.tag
    if current().grad_enabled:
        rebase_history(base, merged)
    bump_version(base)
    base.version.rebases += 1
    return x


def _replace_values(base, numbers):
    """The values `numbers` with the derivatives of base, which keeps its position in every graph."""
    if not dtypes.is_differentiable(base.dtype):
        return numbers
    nothing = where(registry["isfinite"](base.detach()), base - base.detach(), 0)
    return numbers + nothing


# ------------------------------------------------------------------------------------ operators that write


def in_place(operator, x, others, params):
    """Compute operator(x, *others, **params) and write the result into x."""
    if not params and write_plain(operator, x, (x, *others)):
        return x
    name = f"{operator.name}_"
    if x._overrides or any(map(is_foreign, others)):
        overriding = [a for a in (x, *others) if is_foreign(a)]
        if overriding:
            return override_result(getattr(Tensor, name, operator), overriding, (x, *others), params)
    level = find_level_of_write(name, x, *others)
    if level is not None:
        return _write_below(level, lambda _, x, *others: in_place(operator, x, others, params), name, x, others)
    straight = x.level is None and operator.differentiable and not operator.composite
    for a in (x, *others):
        straight = straight and (not isinstance(a, Tensor) or type(a.value) not in composite_arrays)
    if not straight or (current().level and stateful_levels()):
        return _write_by_copy(operator, x, others, params)
    # The node that records the write has x before the write as its input; x then gets that node as its grad_fn.
    recorded = is_recorded(x, *others)
    inherit_detached(x, *others)
    if recorded:
        _check_rules(operator, (x, *others))
    if not recorded and _write_directly(operator, x, others, params):
        return x
    before = _input_before_write(operator, x, others) if recorded else x
    args = (before, *_others(x, before, others))
    result = ground(operator, args, params)
    _check_result(name, x, result)
    preserve_snapshots(x)
    x.value[...] = result.value
    bump_version(x)
    if recorded:
        _record_write(operator, x, args, params)
    return x


def _check_rules(operator, args):
    """Refuse before the write what recording would refuse: a missing rule, or a value that can't be saved."""
    needed = 0
    for i, a in enumerate(args):
        if isinstance(a, Tensor) and requires_grad_synced(a):
            rule = operator.rules[min(i, operator.last)]
            if rule is None:
                missing_rule(operator, i)
            needed |= rule.needs_values
    for i, a in enumerate(args):
        if needed >> i & 1:
            saved_version(operator, a)


def _write_directly(operator, x, others, params):
    """Let NumPy write into the memory of x if dtype and shape allow; return whether it did."""
    arrays = [getattr(a, "value", a) for a in others]
    if params or operator.ufunc is None or x.dtype.kind not in "fc" or dtypes.is_extension(x.dtype):
        return False
    if any(not needs_no_promotion(x.value, a) or getattr(a, "ndim", 0) > x.ndim for a in arrays):
        return False
    if any(getattr(a, "shape", ()) not in ((), x.shape) for a in arrays):
        return False
    if not backend.writes_over(operator.ufunc, x.value):
        return False
    preserve_snapshots(x)
    return write_ufunc(operator, x, (x.value, *arrays))


def _input_before_write(operator, x, others):
    """x before the write, for the graph; its values are copied if a rule needs them."""
    before = _recorded_input(x)
    rules = zip(operator.rules, (x, *others), strict=False)
    if any(r is not None and r.needs_values & 1 for r, a in rules if isinstance(a, Tensor) and requires_grad_synced(a)):
        _save_values(before, x)
    return before


def _recorded_input(x):
    """x before the write, as the input of the recorded node; for a view without the hooks on it."""
    return alias(x, x._grad_fn) if x._view is None else replay_view(x._view)


def _others(x, before, others):
    """The other operands before the write; a view among them that is x too keeps the hooks on it."""
    if x._view is None or before is x or not any(a is x for a in others):
        return [before if a is x else a for a in others]
    also = alias(x, x._grad_fn)
    also.value, also.tag, also.version = before.value, before.tag, before.version
    return [also if a is x else a for a in others]


def _save_values(before, x):
    """Give `before` its own version and values, so that the write to x does not change it.

    At levels other than ground nothing is overwritten.
    """
    before.version, before._view = Version(), None
    if x.level is None:
        before.value = registry["clone"](x if stateful_levels() else x.detach()).value


def _record_write(operator, x, args, params):
    """Record that x was computed from its value before the write."""
    shadow = make(x.value, None, x.tag)
    shadow.version = x.version
    record(operator, args, params, shadow, None)
    adopt_history(x, shadow)


def adopt_history(x, new):
    """Give x, which was written to, the history of another tensor; also its base if x is a view."""
    if x._view is not None:
        rebase(x, new)
    else:
        rebase_history(x, new)
        version_of(x).rebases += 1


def _write_by_copy(operator, x, others, params):
    """Compute out of place, then copy into x: for operators without a kernel that writes."""
    before = x
    if is_recorded(x, *others):
        before = _recorded_input(x)
        _save_values(before, x)
    elif operator.name in _SIGNS and _add_parts(x, others[0], _SIGNS[operator.name]):
        return x
    result = call(operator, (before, *_others(x, before, others)), params)
    _check_result(f"{operator.name}_", x, result)
    return write_into(f"{operator.name}_", x, result)


_SIGNS = {"add": 1, "sub": -1}


def _add_parts(x, other, sign):
    """Add a composite tensor to the plain tensor x by its parts, if it can do that; return whether it did."""
    parts = compound(other) if isinstance(other, Tensor) and compound(x) is None else None
    return parts is not None and parts.add_to(x, other, sign)


def _check_result(name, x, result):
    if result.shape != x.shape:
        raise RuntimeError(
            f"{name}: output with shape {list(x.shape)} doesn't match the broadcast shape {list(result.shape)}: the "
            f"other operand may not be larger"
        )
    if dtypes.category(result.dtype) > dtypes.category(x.dtype):
        kinds = [dtypes.scalar_name(dtype) for dtype in (result.dtype, x.dtype)]
        raise RuntimeError(
            f"{name}: result type {kinds[0]} can't be cast to the desired output type {kinds[1]}: {result.dtype} to "
            f"{x.dtype}; use an out-of-place operator"
        )


def add_in_place(named, home):
    """Add a method `<name>_` for each operator of the module `home` that keeps the shape of its first input."""
    for name, operator in named.items():
        definition = operator.definition
        if definition.in_place and definition.method and _lacks_method(f"{name}_", home):
            add_attribute(Tensor, f"{name}_", name_generated(inplace_function(operator), f"Tensor.{name}_"))


def _lacks_method(name, home):
    """Return whether no tensor has the method, and the module `home` is the one that may add it."""
    late = late_attribute(Tensor, name)
    return not hasattr(Tensor, name) if late is None else late.home == home and late.member is None


def call_in_place(operator, x, others, params):
    """`in_place`, or for a foreign object that handles operators itself, a copy of the result into it."""
    if not isinstance(x, Tensor) and is_foreign(x):
        return x.copy_(operator(x.clone(), *others, **params))
    return in_place(operator, x, others, params)


def inplace_function(operator):
    """The function that writes an operator's result into its first input."""
    real = getattr(operator.definition, "result", "") == "real"

    def write(x, *args, **kwargs) -> Tensor:
        if not kwargs and write_plain(operator, x, (x, *args)):
            return x
        check_tensor(f"{operator.name}_", x)
        if real and x.dtype.kind == "c":
            raise RuntimeError(f"{operator.name}_: the result is real, and x complex; use x = {operator.name}(x)")
        try:
            inputs, params = operator.schema.bind((x, *args), kwargs)
        except TypeError:
            today = operator.definition.older_form(f"{operator.name}_", (x, *args), kwargs)
            if today is None:
                raise
            return write(*today[0], **today[1])
        return call_in_place(operator, x, inputs[1:], params)

    write.writes = operator  # type: ignore[attr-defined]
    write.__name__ = f"{operator.name}_"
    write.__doc__ = f"`{operator.name}`, written into the tensor; returns it."
    return write


def _older_alpha(name, x, other, further):
    """Return `other` and `alpha` of the deprecated call `x.add_(alpha, other)`."""
    today = registry["add"].definition.older_form(name, (x, other, *further), {})
    if today is None or len(today[0]) != 2:
        raise TypeError(f"{name}() takes 2 positional arguments but {2 + len(further)} were given")
    return today[0][1], today[1]["alpha"]


def add_(x, other, *further, alpha=1) -> Tensor:
    """Add alpha * other to x in place."""
    if further:
        other, alpha = _older_alpha("add_", x, other, further)
    return in_place(registry["add"], x, (other if alpha == 1 else scale_operand("add_", x, other, alpha),), {})


def sub_(x, other, *further, alpha=1) -> Tensor:
    """Subtract alpha * other from x in place."""
    if further:
        other, alpha = _older_alpha("sub_", x, other, further)
    return in_place(registry["sub"], x, (other if alpha == 1 else scale_operand("sub_", x, other, alpha),), {})


def mul_(x, other) -> Tensor:
    """Multiply x by other in place."""
    return in_place(registry["mul"], x, (other,), {})


def div_(x, other, *, rounding_mode=None) -> Tensor:
    """Divide x by other in place, rounded as in `div`."""
    if rounding_mode is not None:
        return in_place(registry["divide"], x, (other,), {"rounding_mode": rounding_mode})
    return in_place(registry["div"], x, (other,), {})


def fill_(x, value) -> Tensor:
    """Fill x with one value in place; return x."""
    if isinstance(value, Tensor) and value.ndim:
        raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions")
    if x.numel() != 1:
        check_number_fits("fill_", value, x.dtype)
        if _filled_plain(x, value):
            return x
    return write_into("fill_", x, operand("fill_", value, x.dtype))


def zero_(x) -> Tensor:
    """Fill x with zeros in place; return x."""
    if _filled_plain(x, 0):
        return x
    return write_into("zero_", x, operand("zero_", 0, x.dtype))


def detach_(x) -> Tensor:
    """Detach the tensor from its graph in place, so that it becomes a leaf without gradient; return it."""
    if x._view is not None:
        raise RuntimeError("Can't detach views in-place. Use detach() instead: the graph of a view is its base's")
    if x.level is not None:  # also detach its value from graphs and tangents
        now = registry["detach"](x)
        x.value, x.tag = now.value, now.tag
    share_tensor_hooks(x, x._grad_fn, x._output_nr)
    x._grad_fn, x._output_nr, x._requires_grad = None, 0, False
    _notify_levels(x, None)
    return x


def strip_leading_ones(value, ndim):
    """The value without leading dimensions of size 1 in excess of `ndim`."""
    extra = value.ndim - ndim
    if extra > 0 and value.shape[:extra] == (1,) * extra:
        return registry["reshape"](value, value.shape[extra:])
    return value


def is_mask(key):
    """Whether an index is a single boolean tensor."""
    return isinstance(key, Tensor) and key.dtype == dtypes.bool_ and key.ndim > 0


def unsqueeze_mask(mask, x):
    """A mask of the first dimensions of x, unsqueezed to broadcast against x."""
    check_mask(mask, x, 0)
    return unsqueeze_n(mask, x.ndim - mask.ndim, mask.ndim)


def set_item(x, key, value) -> None:
    """Assign x[key] = value."""
    name = "x[...] = value"
    if x._overrides or is_foreign(value):
        foreign = [a for a in (x, value) if is_foreign(a)]
        if foreign:
            override_result(Tensor.__setitem__, foreign, (x, key, value), {})
            return
    if key is False:  # PyTorch looks at neither x nor the value
        return
    parts = compound(x)
    if parts is not None:
        parts.write_item(x, key, value)
        return
    if type(value) in (int, float) and is_mask(key) and key.shape == x.shape:
        check_element_fits(name, value, x.dtype)
        if _filled_plain(x, value, key):
            return
    if x.level is not None and is_mask(key) and not getattr(value, "ndim", 0):
        write_into(name, x, where(unsqueeze_mask(key, x), value, x))  # valid for any number of selected elements
        return
    try:
        spec, ids = static_index(x, key_as_tuple(key))
    except (TypeError, IndexError):
        if foreign := foreign_in_key(key):
            override_result(Tensor.__setitem__, foreign, (x, key, value), {})
            return
        raise
    if is_separated(spec):
        selection, spec = split_integers(spec)
        set_item(apply_index(x, (), selection), fill_slots(spec, ids), value)
        return
    if has_mixed_ranks(ids):  # only under a level: what the first step reads is a copy there, to be written back
        (first, numbers), (spec, ids) = split_scalars(spec, ids)
        part = apply_index(x, numbers, first)
        set_item(part, fill_slots(spec, ids), value)
        spec, ids, value = first, numbers, part
    value = place(operand(name, value, x.dtype), array_device(x))
    if not ids and not any(isinstance(s, bool) for s in spec):
        window = apply_index(x, ids, spec)
        write_into(name, window, strip_leading_ones(value, window.ndim))
        return
    value = strip_leading_ones(value, len(indexed_shape(x, ids, spec)))
    level = find_level_of_write(name, x, value, *ids)
    if level is not None:
        _write_below(level, lambda _, x, value, *ids: set_item(x, fill_slots(spec, ids), value), name, x, (value, *ids))
        return
    if x.level is not None or (current().level and stateful_levels()):
        write_into(name, x, index_put(x, value, ids, spec=spec))
        return
    recorded = is_recorded(x, value)
    before = _recorded_input(x) if recorded else x
    preserve_snapshots(x)
    try:
        x.value[fill_slots(spec, [i.value for i in ids])] = _array_to_write(value, x.dtype)
    except ValueError as error:  # NumPy's, if the shapes do not fit
        raise_as_runtime_error(error)
        raise
    bump_version(x)
    if recorded:
        _record_write(index_put, x, (before, value, *ids), {"spec": spec})


def _augmented_assignment(operator, reflected):
    """Return the method for `x += other` and the like."""

    def write(x, other) -> Tensor:
        return NotImplemented if takes_over(other, reflected) else in_place(operator, x, (other,), {})

    return write


for _symbol, _name in (("add", "add"), ("sub", "sub"), ("mul", "mul"), ("truediv", "div")):
    setattr(Tensor, f"__i{_symbol}__", _augmented_assignment(registry[_name], f"__r{_symbol}__"))
for _write in (copy_, zero_, fill_, add_, sub_, mul_, div_, detach_):
    setattr(Tensor, _write.__name__, _write)
Tensor.__setitem__ = set_item
for _write in (zero_, fill_, detach_):
    function()(_write)
