"""Writing in place.  A write gives the memory new numbers and the tensor, or the base it shows, a new history.

On the ground the numbers are written into the array.  Above it, where values are tensors of another level,
nothing is overwritten: the tensor gets a new value, and views of the same base follow when they are next used.
"""

import math

from retrograd.core import Aval, Definition, Tensor, call, current, graph_level, op, operator_named, registry
from retrograd.core import dtype as dtypes
from retrograd.core.dispatch import (
    base_of,
    compound,
    ground,
    is_foreign,
    passes,
    rebase_history,
    replay_view,
    requires_grad_synced,
)
from retrograd.core.hooks import conjugate
from retrograd.core.level import is_recording
from retrograd.core.op import composite_arrays
from retrograd.core.record import missing_rule, record, refuse_view, saved_version
from retrograd.core.tensor import COPIED, Version, alias, bump_version, make, plain, preserve_snapshots, version_of
from retrograd.ops.as_tensor import operand
from retrograd.ops.batching import broadcast_batch, unsqueeze_n
from retrograd.ops.create import arange, as_tensor, full_like
from retrograd.ops.family import broadcast_shapes, cast_to, sum_to
from retrograd.ops.index import (
    Places,
    T,
    as_tuple,
    check_mask,
    fill,
    indexed,
    indexed_shape,
    integers_first,
    separated,
    static_index,
)
from retrograd.ops.pointwise import eq, scaled, where
from retrograd.ops.view import reshape


@op("view_scatter(Tensor base, Tensor src, *, any chain) -> Tensor")
class view_scatter(Definition, linear="base,src", moves=True):
    """base with src in the place that a chain of view operators shows: what a write does, as a function.

    `chain` lists (name of the operator, params); () is all of base.  src is broadcast and converted.
    """

    public = False
    method = False

    def impl(xp, base, src, *, chain):
        out = xp.array(base, copy=True, order="C")
        window = _shown(out, chain)
        if xp.may_share_memory(window, out) or not window.size:
            window[...] = src
        else:  # the base lay in another order, of which alone a step of the chain shows the memory
            out.reshape(-1)[_shown(xp.arange(out.size).reshape(out.shape), chain)] = src
        return out

    def shape(base, src, *, chain):
        return base

    def vjp_base(g, chain):
        return view_scatter(g, 0.0, chain=chain)

    def vjp_src(g, src_aval, chain):
        g = conjugate(g)  # a view of the parts of complex numbers shows parts of the gradient, g's conjugate
        for name, params in chain:
            g = operator_named(name)(g, **params)
        return cast_to(sum_to(conjugate(g), src_aval.shape), src_aval.dtype)

    def batch(batched, n, base, src, *, chain):
        base = base if batched[0] else broadcast_batch(base, n)
        example, stacked = base.aval, []
        for name, params in chain:
            steps = registry[name].definition.stacked(example.shape, **params)
            for step, given in steps:
                example = registry[step].definition.shape(example, **given)
            stacked += steps
        src = unsqueeze_n(src, example.ndim - src.ndim) if batched[1] else src
        return view_scatter(base, src, chain=tuple(stacked))

    def samples(r):
        yield (r(2, 3), r(2, 3)), {"chain": ()}
        yield (r(2, 3), r(3)), {"chain": ()}
        yield (r(2, 3), r(2)), {"chain": (("permute", {"dims": (1, 0)}), ("slice", {"spec": (1,)}))}


def _shown(array, chain):
    """What a chain of view operators makes of an array."""
    for name, params in chain:
        array = operator_named(name).kernel_for((array,))(array, **params)
    return array


@op("index_put(Tensor x, Tensor values, Tensor[] ids, *, any spec) -> Tensor")
class index_put(Definition, linear="x,values", moves=True, row_major=True):
    """x with values at [spec], where each T in spec stands for the next index tensor; a place named twice has one."""

    public = False
    method = False

    def impl(xp, x, values, *ids, spec):
        out = xp.array(x, copy=True)
        out[fill(spec, ids)] = values
        return out

    def shape(x, values, *ids, spec):
        return x

    def vjp_x(g, ids, spec):
        return index_put(g, 0.0, ids, spec=spec)

    def vjp_values(g, values_aval, ids, spec):
        found = indexed(g, ids, spec)
        if ids and found.shape != values_aval.shape:  # a value that is written twice to a place is there once
            found = where(_written_last(g, ids, spec), found, 0)
        return cast_to(sum_to(found, values_aval.shape), values_aval.dtype)

    def batch(batched, n, x, values, *ids, spec):
        places = Places(spec, x.ndim - batched[0], ids, batched[2:])
        x = x if batched[0] else broadcast_batch(x, n)
        if not hasattr(values, "shape"):
            ids, spec = places.of_examples(n)
            return index_put(x, values, ids, spec=spec)
        alone = indexed_shape(Aval(x.shape[1:], x.dtype), places.alone(), spec)
        values = unsqueeze_n(values, len(alone) + 1 - values.ndim) if batched[1] else values
        ids, spec = places.of_examples(n)
        return index_put(x, places.examples_last(registry["expand"](values, (n, *alone))), ids, spec=spec)

    def samples(r):
        yield (r(4, 3), r(2, 3), as_tensor([3, 1])), {"spec": (T,)}
        yield (r(4, 3), r(), as_tensor([2, 0])), {"spec": (slice(None), T)}
        yield (r(4, 3), 2.5, as_tensor([2, 0])), {"spec": (slice(None), T)}
        yield (r(4, 3), r(3), as_tensor([2, 0, 2])), {"spec": (T,)}


def _written_last(x, ids, spec):
    """Whether each of the elements that are written at x[spec] is the last for its place."""
    shape = indexed_shape(x, ids, spec)
    numbers = reshape(arange(math.prod(shape)), shape)
    there = index_put(full_like(x, -1, dtype=dtypes.int64), numbers, ids, spec=spec)
    return eq(indexed(there, ids, spec), numbers)


# ---------------------------------------------------------------------------------------------------- writing


def copy_(x, src, non_blocking=False) -> Tensor:
    """Write `src`, broadcast and converted, into the memory of x, and return x."""
    return write_into("copy_", x, operand("copy_", src, x.dtype))


def write_into(name, x, src):
    """Write a tensor into the memory of x for the function of that name; returns x."""
    parts = compound(x)
    if parts is not None:
        return parts.write(name, x, src)
    check_write(name, x, src)
    check_fits(name, x, src)
    recorded = is_recorded(x, src)
    if x.level is not None:
        return _write_above(x, src)
    announce(x)
    x.value[...] = _numbers(src, x.dtype)
    inherit_cut(x, src)
    bump_version(x)
    if recorded:
        rebase(x, src)
    if current().level is not None:
        _tell(x, src)
    return x


def check_write(name, x, *operands):
    """Refuse a write that would go wrong, before anything has changed."""
    base = x if x._view is None else x._view.base
    if x._view is not None and x._view.made == COPIED:
        refuse_copy(name, x)
    if x.level is not graph_level() or base.level is not x.level:
        raise RuntimeError(
            f"{name}: a tensor from outside a function transform or trace can't be written to inside; clone it there"
        )
    if x.is_inference() and not current().inference:
        raise RuntimeError(
            f"{name}: Inplace update to inference tensor of shape {x.shape}, which only inference_mode() allows; write "
            f"to its clone()"
        )
    for other in operands:
        if x.level is None and isinstance(other, Tensor) and other.level is not None:
            raise other.level.escape(other)
    if is_recorded(x, *operands):
        check_history(x)
    if x.level is None and not x.value.flags.writeable:
        raise RuntimeError(
            f"{name}: this tensor's memory is read-only: it comes from a read-only array, or it is expanded, so that "
            f"more than one element lies in one place. Clone it first."
        )


def refuse_copy(name, x):
    """Refuse a write to a view in name only, which would not reach its base."""
    source = x._view.base.shape
    raise RuntimeError(
        f"{name}: this tensor of shape {x.shape} is a view in PyTorch, but here a copy, made by "
        f"{x._view.chain[-1][0].name}, of elements of a tensor of shape {source}, which the write would not reach. "
        f"Write to that tensor, e.g. by base[index] = value, or to a clone() of this one."
    )


def check_history(x):
    """The rules for what may be part of a graph and be written to."""
    if x._view is not None:
        if x._view.made:
            refuse_view(x._view.made, "this tensor is a view and is being modified")
        if base_of(x._view).version is not x.version:
            raise RuntimeError(
                "in-place write to a view of a tensor that was resized in place since: what it shows is unknown; write "
                "under no_grad(), or to a clone"
            )
        if _of_a_leaf(x):
            raise RuntimeError(
                "in-place write to a view of a leaf Variable that requires grad; write under no_grad(), or to a clone"
            )
    if requires_grad_synced(x) and x._grad_fn is None:
        raise RuntimeError(
            "in-place write to a leaf Variable that requires grad; write under no_grad(), or to x.detach() or x.clone()"
        )


def _of_a_leaf(x):
    """Whether a view shows a leaf that requires gradients: its base, or a view of that on the way to it."""
    base = base_of(x._view)
    return base._grad_fn is None if requires_grad_synced(base) else requires_grad_synced(x) and x._grad_fn is not None


def check_fits(name, x, src):
    """A value may be broadcast to the shape of x, not the other way round."""
    if src.shape != x.shape and broadcast_shapes(name, [x.shape, src.shape]) != x.shape:
        raise RuntimeError(f"{name}: a value of shape {src.shape} does not fit into shape {x.shape}")


def is_recorded(x, *operands):
    """Whether a write to x becomes part of a graph."""
    if not is_recording() or not dtypes.is_differentiable(x.dtype):
        return False
    # Ask all of them: this brings the history of each view up to date.
    wanted = [requires_grad_synced(a) for a in (x, *operands) if isinstance(a, Tensor)]
    return any(wanted) or (x._view is not None and passes(x._view) and requires_grad_synced(base_of(x._view)))


def inherit_cut(x, *operands):
    """What is written into x brings along where it was cut off from a graph."""
    for a in operands:
        if isinstance(a, Tensor) and a.tag is not None:
            x.tag = a.tag
            if x._view is not None:
                x._view.base.tag = a.tag


def _numbers(src, dtype):
    """The array of what is written, in the dtype that it is written in."""
    return src.value if src.dtype == dtype else registry["to"](src.detach(), dtype).value


def announce(x):
    """Tell those who keep the content of x that a write to its memory follows."""
    preserve_snapshots(x)
    listener = current().on_write
    if listener is not None:
        listener(x)


def _tell(x, src):
    """Levels that keep something beside tensors hear what was written where; None says that x left its graph."""
    for level in keepers():
        level.wrote(x, src)


def keepers():
    """The levels that keep something beside tensors on the ground, and so see only what operators compute."""
    found, level = [], current().level
    while level is not None and level.transparent:
        if level.wrote is not None:
            found.append(level)
        level = level.parent
    return found


def rebase(x, src):
    """The new history after `src` was written to x: of the base that x shows, if it is a view."""
    base, chain = _target(x)
    shadow = make(base.value, base.level, None)
    shadow.version = version_of(base)
    record(view_scatter, (base, src), {"chain": chain}, shadow, base.level)
    rebase_history(base, shadow)
    base.version.rebased += 1


def _target(x):
    if x._view is None:
        return x, ()
    return base_of(x._view), tuple((step.name, params) for step, params in x._view.chain)


def _write_above(x, src):
    """Above the ground: a new value for the base; its views follow."""
    base, chain = _target(x)
    told = base.level.wrote  # of a level that keeps the history of tensors itself
    recorded = current().grad_enabled
    if x._view is None or passes(x._view):
        merged = view_scatter(base, src, chain=chain)
    else:  # by way of detach(): the numbers change, and no graph hears of it
        shown = tuple([step for step in chain if registry[step[0]].differentiable])
        merged = view_scatter(base.detach(), src.detach(), chain=shown)
        merged, recorded = merged if told else _with_derivatives_of(base, merged), False
    if told and not recorded:
        told(base, merged)
    base.value, base.tag = merged.value, merged.tag
    if current().grad_enabled:
        rebase_history(base, merged)
    bump_version(base)
    base.version.rebased += 1
    return x


def _with_derivatives_of(base, numbers):
    """Other numbers in the place of those of the base, which keeps its place in every graph."""
    if not dtypes.is_differentiable(base.dtype):
        return numbers
    nothing = where(registry["isfinite"](base.detach()), base - base.detach(), 0)
    return numbers + nothing


# ------------------------------------------------------------------------------------ operators that write


def in_place(operator, x, others, params):
    """x = operator(x, *others, **params), written into x."""
    name = f"{operator.name}_"
    check_write(name, x, *others)
    straight = x.level is None and operator.differentiable and not operator.composite
    straight = straight and type(x.value) not in composite_arrays
    if not straight or (current().level and keepers()):
        return _through_a_copy(operator, x, others, params)
    recorded = is_recorded(x, *others)
    inherit_cut(x, *others)
    if recorded:
        _check_rules(operator, (x, *others))
    if not recorded and _straight(operator, x, others, params):
        return x
    before = _before(operator, x, others) if recorded else x
    args = (before, *[before if a is x else a for a in others])
    result = ground(operator, args, params)
    _check_result(name, x, result)
    announce(x)
    x.value[...] = result.value
    bump_version(x)
    if recorded:
        _new_history(operator, x, args, params)
    return x


def _check_rules(operator, args):
    """What recording would refuse is refused before anything is written: no rule, or a value that can't be saved."""
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


def _straight(operator, x, others, params):
    """Let NumPy write into the memory of x, where no dtype or shape changes; whether it did."""
    kernel = operator.kernel_for((x.value,))
    arrays = [getattr(a, "value", a) for a in others]
    if params or not hasattr(kernel, "nin") or x.dtype.kind not in "fc":
        return False
    if any(not plain(x.value, a) or getattr(a, "ndim", 0) > x.ndim for a in arrays):
        return False
    if any(getattr(a, "shape", ()) not in ((), x.shape) for a in arrays):
        return False
    announce(x)
    kernel(x.value, *arrays, out=x.value)
    bump_version(x)
    return True


def _before(operator, x, others):
    """x as it is, for the graph; with a copy of its numbers if a rule will ask for them."""
    before = _as_it_was(x)
    rules = zip(operator.rules, (x, *others), strict=False)
    if any(r is not None and r.needs_values & 1 for r, a in rules if isinstance(a, Tensor) and requires_grad_synced(a)):
        _keep_numbers(before, x)
    return before


def _as_it_was(x):
    """x for the graph of a write to it, without the hooks on it if it is a view."""
    return alias(x, x._grad_fn) if x._view is None else replay_view(x._view)


def _keep_numbers(before, x):
    """The write to x shall not reach what stands for it as it was; above the ground nothing is overwritten."""
    before.version, before._view = Version(), None
    if x.level is None:
        before.value = registry["clone"](x if keepers() else x.detach()).value


def _new_history(operator, x, args, params):
    """x was computed from what it was: record that."""
    shadow = make(x.value, None, x.tag)
    shadow.version = x.version
    record(operator, args, params, shadow, None)
    rebase_history_of(x, shadow)


def rebase_history_of(x, new):
    """x, which was written to, gets the history of another tensor; if it is a view, so does its base."""
    if x._view is not None:
        rebase(x, new)
    else:
        rebase_history(x, new)
        version_of(x).rebased += 1


def _through_a_copy(operator, x, others, params):
    """Where the operator has no kernel to write with: compute, then copy."""
    before = x
    if is_recorded(x, *others):
        before = _as_it_was(x)
        _keep_numbers(before, x)
    result = call(operator, (before, *[before if a is x else a for a in others]), params)
    _check_result(f"{operator.name}_", x, result)
    return write_into(f"{operator.name}_", x, result)


def _check_result(name, x, result):
    if result.shape != x.shape:
        raise RuntimeError(
            f"{name}: shape {x.shape} doesn't match the broadcast shape {result.shape}: the other operand may "
            f"not be larger"
        )
    if dtypes.category(result.dtype) > dtypes.category(x.dtype):
        raise RuntimeError(f"{name}: the result is {result.dtype} and can't be cast to {x.dtype}, the dtype written to")


def add_in_place(named):
    """Every operator that keeps the shape of its first input becomes a method `<name>_` that writes into it."""
    for name, operator in named.items():
        of = operator.definition
        if of.in_place and of.method and not hasattr(Tensor, f"{name}_"):
            setattr(Tensor, f"{name}_", writer(operator))


def written(operator, x, others, params):
    """`in_place`; an object of another class, which answers for operators itself, is asked to copy the result."""
    if not isinstance(x, Tensor) and is_foreign(x):
        return x.copy_(operator(x.clone(), *others, **params))
    return in_place(operator, x, others, params)


def writer(operator):
    """The function that writes what the operator answers into its first input."""

    def write(x, *args, **kwargs) -> Tensor:
        inputs, params = operator.schema.bind((x, *args), kwargs)
        return written(operator, x, inputs[1:], params)

    write.writes = operator
    write.__name__ = f"{operator.name}_"
    write.__doc__ = f"`{operator.name}`, written into the tensor; returns it."
    return write


def add_(x, other, *, alpha=1) -> Tensor:
    """x = x + alpha * other, in place."""
    return in_place(registry["add"], x, (other if alpha == 1 else scaled("add_", x, other, alpha),), {})


def sub_(x, other, *, alpha=1) -> Tensor:
    """x = x - alpha * other, in place."""
    return in_place(registry["sub"], x, (other if alpha == 1 else scaled("sub_", x, other, alpha),), {})


def mul_(x, other) -> Tensor:
    """x = x * other, in place."""
    return in_place(registry["mul"], x, (other,), {})


def div_(x, other, *, rounding_mode=None) -> Tensor:
    """x = x / other, rounded as `div` does, in place."""
    if rounding_mode is not None:
        return in_place(registry["divide"], x, (other,), {"rounding_mode": rounding_mode})
    return in_place(registry["div"], x, (other,), {})


def fill_(x, value) -> Tensor:
    """Write one value everywhere; returns x."""
    if isinstance(value, Tensor) and value.ndim:
        raise RuntimeError(f"fill_: only supports a value without dimensions, got one of shape {value.shape}")
    return write_into("fill_", x, operand("fill_", value, x.dtype))


def zero_(x) -> Tensor:
    """Write zeros; returns x."""
    return write_into("zero_", x, operand("zero_", 0, x.dtype))


def detach_(x) -> Tensor:
    """Take the tensor out of its graph, as if it were a leaf without gradient; returns it."""
    if x._view is not None:
        raise RuntimeError("detach_: can't detach views in-place, their graph is their base's; use x = x.detach()")
    if x.level is not None:  # and the graphs and tangents of its value
        now = registry["detach"](x)
        x.value, x.tag = now.value, now.tag
    x._grad_fn, x.output_nr, x._requires_grad = None, 0, False
    _tell(x, None)
    return x


def without_leading_ones(value, ndim):
    """A value with more dimensions than its place may have ones in front."""
    extra = value.ndim - ndim
    if extra > 0 and value.shape[:extra] == (1,) * extra:
        return registry["reshape"](value, value.shape[extra:])
    return value


def is_mask(key):
    """Whether an index is one tensor of booleans."""
    return isinstance(key, Tensor) and key.dtype == dtypes.bool_ and key.ndim > 0


def in_front_of(mask, x):
    """A mask of the first dimensions of x so that it broadcasts against x."""
    check_mask(mask, x, 0)
    return unsqueeze_n(mask, x.ndim - mask.ndim, mask.ndim)


def set_item(x, key, value) -> None:
    """x[key] = value."""
    name = "x[...] = value"
    if key is False:  # PyTorch looks at neither x nor the value
        return
    parts = compound(x)
    if parts is not None:
        parts.write_item(x, key, value)
        return
    if x.level is not None and is_mask(key) and not getattr(value, "ndim", 0):
        write_into(name, x, where(in_front_of(key, x), value, x))  # which elements are chosen need not be known
        return
    spec, ids = static_index(x, as_tuple(key))
    if separated(spec):
        selection, spec = integers_first(spec)
        set_item(indexed(x, (), selection), fill(spec, ids), value)
        return
    value = operand(name, value, x.dtype)
    if not ids and not any(isinstance(s, bool) for s in spec):
        window = indexed(x, ids, spec)
        write_into(name, window, without_leading_ones(value, window.ndim))
        return
    value = without_leading_ones(value, len(indexed_shape(x, ids, spec)))
    check_write(name, x, value)
    if x.level is not None or (current().level and keepers()):
        write_into(name, x, index_put(x, value, ids, spec=spec))
        return
    recorded = is_recorded(x, value)
    announce(x)
    x.value[fill(spec, [i.value for i in ids])] = _numbers(value, x.dtype)
    bump_version(x)
    if recorded:
        _new_history(index_put, x, (alias(x, x._grad_fn), value, *ids), {"spec": spec})


Tensor.__iadd__, Tensor.__isub__, Tensor.__imul__, Tensor.__itruediv__ = add_, sub_, mul_, div_
for _write in (copy_, zero_, fill_, add_, sub_, mul_, div_, detach_):
    setattr(Tensor, _write.__name__, _write)
Tensor.__setitem__ = set_item
