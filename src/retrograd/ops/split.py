"""Operators that split tensors into views along a dimension."""

from retrograd.core import Aval, Internal, call, op, registry
from retrograd.core.dispatch import call_fast
from retrograd.core.errors import OperandIndexError
from retrograd.core.level import graph_level
from retrograd.core.state import is_recording
from retrograd.core.views import is_view_of, requires_grad_synced, set_view
from retrograd.ops.family import Composite, as_number, canonical_dim, shift_dims
from retrograd.ops.index import basic_slice
from retrograd.ops.view import cat, narrow, stack


def narrow_parts(name, x, sizes, dim):
    """A tuple of views of the given sizes, consecutive along `dim`."""
    return tuple([call(narrow, (x,), params) for params in _narrow_params(name, x, sizes, dim)])


def _narrow_params(name, x, sizes, dim):
    """The arguments of `narrow` for each part."""
    total = x.shape[dim]
    params, start, positive = [], 0, True
    for size in sizes:
        params.append({"dim": dim, "start": start, "length": size})
        start += size
        if size < 0:
            positive = False
    if start != total or not positive:
        raise ValueError(
            f"{name}: split_with_sizes expects split_sizes to sum exactly to {total} (input tensor's size at dimension "
            f"{dim}), but got split_sizes={list(sizes)}: sizes {list(sizes)} add up to {sum(sizes)}, but dimension "
            f"{dim} has {total}"
        )
    return params


@op("split_views(Tensor x, *, int[]? sizes, int dim) -> Tensor[]")
class split_views(Internal, linear="x", elements="moved"):
    """The parts of these sizes along dim, or its slices for None.  One node concatenates all their cotangents."""

    def impl(xp, x, *, sizes, dim):
        return tuple(x[(*(slice(None),) * dim, edge, ...)] for edge in _parts(x, sizes, dim))

    def node_name(fn):
        sizes = fn.params["sizes"]
        if sizes is None:
            return "UnbindBackward0"
        return "SplitBackward0" if len(set(sizes[:-1])) < 2 and sizes[-1] <= sizes[0] else "SplitWithSizesBackward0"

    def shape(x, *, sizes, dim):
        before, after = x.shape[:dim], x.shape[dim + 1 :]
        parts = [()] * x.shape[dim] if sizes is None else [(s.stop - s.start,) for s in _parts(x, sizes, dim)]
        return tuple(Aval((*before, *size, *after), x.dtype) for size in parts)

    def vjp_x(g, sizes, dim):
        return stack(g, dim=dim) if sizes is None else cat(g, dim=dim)

    def batch(batched, n, x, *, sizes, dim):
        return split_views(x, sizes=sizes, dim=shift_dims("split", dim, x.ndim - 1))

    exempt = {"views writes complex bfloat16": "`split` and its like make views of its results"}

    oracle = "retrograd.testing.references.split.split_views"

    def samples(r):
        yield (r(2, 5),), {"sizes": (1, 4), "dim": 1}
        yield (r(3, 2),), {"sizes": None, "dim": 0}

    def errors(r):
        yield (r(5),), {"sizes": (1, 2), "dim": 0}, ValueError, r"split_views: .*sizes \[1, 2\] add up to 3"


def _parts(x, sizes, dim):
    if sizes is None:
        return range(x.shape[dim])
    params = _narrow_params("split_views", x, sizes, dim)
    return [slice(param["start"], param["start"] + param["length"]) for param in params]


def _views_of_one_node(x, sizes, dim, steps):
    """Views returned together, each made by a step (operator, params); if recorded, they share one node.

    They may not be written to in a graph, because they share their history.  One node per view would create a cotangent
    as large as x for each of them.
    """
    transformed = graph_level() is not None or x.level is not None
    if not steps or transformed or not (is_recording() and requires_grad_synced(x)):
        return tuple([call_fast(step, (x,), params) for step, params in steps])
    out = split_views(x, sizes=sizes, dim=dim)
    for part, (step, params) in zip(out, steps, strict=True):
        if is_view_of(part.value, x.value):
            set_view(part, x, step, params, "")
    return out


def split_dim(name, x, dim):
    """`dim` as a nonnegative number; OperandIndexError for a tensor without dimensions."""
    if x.ndim == 0:
        raise OperandIndexError(
            f"{name}: {name} expects at least a 1-dimensional tensor: a tensor without dimensions can't be split; it "
            f"has no dimension {dim}"
        )
    return canonical_dim(name, dim, x.ndim)


def equal_sizes(name, total, size):
    """Equal sizes that sum to the total; the last may be smaller."""
    if size < 0 or (size == 0 and total):
        raise ValueError(f"{name}: the size must be at least 1, got {size}")
    if type(total) is int and total and total % size == 0:
        return [size] * (total // size)
    return [min(size, total - start) for start in range(0, total, size or 1)] or [0]


def _sizes(name, x, size, dim):
    if isinstance(size, int):
        return equal_sizes(name, x.shape[dim], size)
    _check_integers(name, size)
    return tuple(size)


def _check_integers(name, listed):
    """Refuse what is neither a number of parts nor a list of integers."""
    if isinstance(listed, str) or not all(hasattr(n, "__index__") for n in _as_sequence(listed)):
        raise TypeError(f"{name}: expected an integer or a list of integers, got {listed!r}")


def _as_sequence(listed):
    return listed if hasattr(listed, "__iter__") else (listed,)


def _split(name, x, size, dim):
    at = split_dim(name, x, dim)
    return _parts_of_sizes(name, x, _sizes(name, x, size, at), at)


def _parts_of_sizes(name, x, sizes, dim):
    steps = [(narrow, params) for params in _narrow_params(name, x, sizes, dim)]
    return _views_of_one_node(x, tuple(sizes), dim, steps)


def _unsafe_split(name, x, size, dim):
    at = split_dim(name, x, dim)
    return narrow_parts(name, x, _sizes(name, x, size, at), at)


def chunk_sizes(name, x, chunks, dim):
    """The sizes of at most `chunks` equal parts, the last possibly smaller; exactly `chunks` zeros if x is empty."""
    if chunks < 1:
        raise ValueError(
            f"{name}: chunk expects `chunks` to be greater than 0, got: {chunks}: expected at least 1 chunk, got "
            f"{chunks}"
        )
    total = x.shape[split_dim(name, x, dim)]
    return equal_sizes(name, total, -(-total // chunks)) if total else [0] * chunks


def _chunk_samples(r):
    yield (r(5, 2),), {"chunks": 2}
    yield (r(2, 3),), {"chunks": 4, "dim": -1}


@op("split(Tensor tensor, any split_size_or_sections, int dim=0) -> Tensor[]")
class split(Composite, view="several"):
    """A tuple of views along `dim`: of one size (the last may be smaller), or of the sizes listed.

    >>> import retrograd as rg
    >>> [part.tolist() for part in rg.split(rg.arange(5), 2)]
    [[0, 1], [2, 3], [4]]
    """

    def compose(tensor, *, split_size_or_sections, dim):
        return _split("split", tensor, as_number(split_size_or_sections), dim)

    oracle = "retrograd.testing.references.split.split"

    def samples(r):
        yield (r(5, 2),), {"split_size_or_sections": 2}
        yield (r(2, 5),), {"split_size_or_sections": (1, 4), "dim": 1}

    def errors(r):
        yield (r(5),), {"split_size_or_sections": (2, 2)}, ValueError, r"split: .*sizes \[2, 2\] add up to 4"
        yield (r(5),), {"split_size_or_sections": 0}, ValueError, "split: the size must be at least 1"
        yield (r(),), {"split_size_or_sections": 1}, ValueError, "split: .*a tensor without dimensions"


@op("split_with_sizes(Tensor x, int[] split_sizes, int dim=0) -> Tensor[]")
class split_with_sizes(Composite, view="several"):
    """A tuple of views of the sizes listed along `dim`."""

    def compose(x, *, split_sizes, dim):
        return _split("split_with_sizes", x, split_sizes, dim)

    oracle = "retrograd.testing.references.split.split_with_sizes"

    def samples(r):
        yield (r(2, 5),), {"split_sizes": (1, 4), "dim": 1}


@op("chunk(Tensor x, int chunks, int dim=0) -> Tensor[]")
class chunk(Composite, view="several"):
    """A tuple of at most `chunks` views of equal size along `dim`; the last may be smaller.

    >>> import retrograd as rg
    >>> [part.tolist() for part in rg.chunk(rg.arange(5), 3)]
    [[0, 1], [2, 3], [4]]
    """

    def compose(x, *, chunks, dim):
        return _parts_of_sizes("chunk", x, chunk_sizes("chunk", x, chunks, dim), canonical_dim("chunk", dim, x.ndim))

    oracle = "retrograd.testing.references.split.chunks"

    samples = _chunk_samples

    def errors(r):
        yield (r(5),), {"chunks": 0}, ValueError, "chunk: .*expected at least 1 chunk"


@op("unsafe_split(Tensor x, int split_size, int dim=0) -> Tensor[]")
class unsafe_split(Composite, view="parts"):
    """`split` into equal views that may be written to individually; here their histories stay correct."""

    def compose(x, *, split_size, dim):
        return _unsafe_split("unsafe_split", x, split_size, dim)

    oracle = "retrograd.testing.references.split.unsafe_split"

    def samples(r):
        yield (r(2, 5),), {"split_size": 2, "dim": 1}


@op("unsafe_split_with_sizes(Tensor x, int[] split_sizes, int dim=0) -> Tensor[]")
class unsafe_split_with_sizes(Composite, view="parts"):
    """`split_with_sizes` into views that may be written to individually; here their histories stay correct."""

    def compose(x, *, split_sizes, dim):
        return _unsafe_split("unsafe_split_with_sizes", x, split_sizes, dim)

    oracle = "retrograd.testing.references.split.unsafe_split_with_sizes"

    def samples(r):
        yield (r(2, 5),), {"split_sizes": (1, 4), "dim": 1}


@op("unsafe_chunk(Tensor x, int chunks, int dim=0) -> Tensor[]")
class unsafe_chunk(Composite, view="parts"):
    """`chunk` into views that may be written to individually; here their histories stay correct."""

    def compose(x, *, chunks, dim):
        return _unsafe_split("unsafe_chunk", x, chunk_sizes("unsafe_chunk", x, chunks, dim), dim)

    oracle = "retrograd.testing.references.split.chunks"

    samples = _chunk_samples


@op("tensor_split(Tensor x, any indices_or_sections, int dim=0) -> Tensor[]")
class tensor_split(Composite, view="parts"):
    """A tuple of views along `dim`: a number of nearly equal parts, or the parts between the indices listed.

    >>> import retrograd as rg
    >>> [part.tolist() for part in rg.tensor_split(rg.arange(5), (1, 3))]
    [[0], [1, 2], [3, 4]]
    """

    def compose(x, *, indices_or_sections, dim):
        return _tensor_split("tensor_split", x, indices_or_sections, dim)

    oracle = "retrograd.testing.references.split.tensor_split"

    def samples(r):
        yield (r(7, 2),), {"indices_or_sections": 3}
        yield (r(2, 7),), {"indices_or_sections": (2, -1, 9), "dim": 1}

    def errors(r):
        yield (r(5),), {"indices_or_sections": 0}, ValueError, "tensor_split: expected at least 1 section"


def _tensor_split(name, x, sections, dim):
    at = split_dim(name, x, dim)
    sections = sections.tolist() if hasattr(sections, "tolist") else sections
    if isinstance(sections, int):
        if sections < 1:
            raise ValueError(f"{name}: expected at least 1 section, got {sections}")
        least, remainder = divmod(x.shape[at], sections)
        return narrow_parts(name, x, [least + (i < remainder) for i in range(sections)], at)
    _check_integers(name, sections)
    edges = [slice(a, b).indices(x.shape[at]) for a, b in zip((0, *sections), (*sections, None), strict=True)]
    return tuple(narrow(x, at, start, max(stop - start, 0)) for start, stop, _ in edges)


def _equal_sections(name, x, sections, dim, ndim):
    if x.ndim < ndim:
        raise ValueError(f"{name}: expected at least {ndim} dimensions, got shape {x.shape}")
    if isinstance(sections, int) and (sections < 1 or x.shape[dim] % sections):
        raise ValueError(f"{name}: dimension {dim} of shape {x.shape} does not divide into {sections} equal sections")
    return _tensor_split(name, x, sections, dim)


@op("hsplit(Tensor x, any indices_or_sections) -> Tensor[]")
class hsplit(Composite, view="parts"):
    """`tensor_split` along the second dimension, or the only one; a number of parts must divide its size."""

    def compose(x, *, indices_or_sections):
        return _equal_sections("hsplit", x, indices_or_sections, min(x.ndim - 1, 1), 1)

    def oracle(np, x, indices_or_sections):
        return np.hsplit(x, indices_or_sections)

    def samples(r):
        yield (r(2, 4),), {"indices_or_sections": 2}
        yield (r(4),), {"indices_or_sections": (1, 2)}

    def errors(r):
        yield (r(2, 3),), {"indices_or_sections": 2}, ValueError, "hsplit: dimension 1 of .* 2 equal sections"


@op("vsplit(Tensor x, any indices_or_sections) -> Tensor[]")
class vsplit(Composite, view="parts"):
    """`tensor_split` along the first of two or more dimensions; a number of parts must divide its size."""

    def compose(x, *, indices_or_sections):
        return _equal_sections("vsplit", x, indices_or_sections, 0, 2)

    def oracle(np, x, indices_or_sections):
        return np.vsplit(x, indices_or_sections)

    def samples(r):
        yield (r(4, 2),), {"indices_or_sections": 2}

    def errors(r):
        yield (r(4),), {"indices_or_sections": 2}, ValueError, "vsplit: expected at least 2 dimensions"


@op("dsplit(Tensor x, any indices_or_sections) -> Tensor[]")
class dsplit(Composite, view="parts"):
    """`tensor_split` along the third of three or more dimensions; a number of parts must divide its size."""

    def compose(x, *, indices_or_sections):
        return _equal_sections("dsplit", x, indices_or_sections, 2, 3)

    def oracle(np, x, indices_or_sections):
        return np.dsplit(x, indices_or_sections)

    def samples(r):
        yield (r(2, 1, 4),), {"indices_or_sections": (3,)}

    def errors(r):
        yield (r(4, 4),), {"indices_or_sections": 2}, ValueError, "dsplit: expected at least 3 dimensions"


@op("unbind(Tensor x, int dim=0) -> Tensor[]")
class unbind(Composite, view="several"):
    """A tuple of views, the slices along `dim`, without that dimension."""

    def compose(x, *, dim):
        at = split_dim("unbind", x, dim)
        specs = [{"spec": (*(slice(None),) * at, i)} for i in range(x.shape[at])]
        return _views_of_one_node(x, None, at, [(basic_slice, spec) for spec in specs])

    def oracle(np, x, dim):
        return list(np.moveaxis(x, dim, 0))

    def samples(r):
        yield (r(3, 2),), {}
        yield (r(3, 2),), {"dim": -1}


@op("narrow_copy(Tensor x, int dim, int start, int length) -> Tensor")
class narrow_copy(Composite):
    """A copy of `narrow`."""

    def compose(x, *, dim, start, length):
        return registry["row_major"](narrow(x, dim, start, length))

    def oracle(np, x, dim, start, length):
        return np.take(x, range(start, start + length), axis=dim)

    def samples(r):
        yield (r(2, 5),), {"dim": 1, "start": 1, "length": 3}
