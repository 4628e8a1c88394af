"""The fields of a tensor: a value at a level, and its place in that level's autograd graph."""

from numpy import ndarray

from retrograd.core.aval import Aval
from retrograd.core.source_location import user_line

compiled = not __file__.endswith(".py")


class Version:
    """How often a storage was written to; a base and its views share one.

    `rebased` counts the writes that gave the base a new history, which its views then take over; `saved` says
    that a node of some graph has saved the present content, `where` which line wrote over such content.  `snapshots`
    lists weak references to the snapshots of the present content that graphs hold, or is None.
    """

    __slots__ = ("count", "rebased", "saved", "snapshots", "where")

    def __init__(self):
        if not compiled:
            self.count = self.rebased = 0
            self.saved = False
            self.snapshots = self.where = None


INFERENCE = Version()  # of all tensors made in inference mode: nothing is counted for them
INFERENCE.count = -1


COPIED = "copied"  # `View.made` of a view that has a copy of the elements


class View:
    """What a tensor that shows another's memory knows: the base, and the view operators that lead from it.

    `seen` is the `rebased` of the base whose history the view has.  `made` says why a recorded write is refused:
    "" (it is not), "no_grad", "inference", or the name of the function that returned several views at once.
    COPIED is a view in name only: no array can show those elements, so the tensor has a copy of them.  It refuses
    every write, and is computed again when the memory of its base has changed (`seen` then encodes the version).
    """

    __slots__ = ("base", "chain", "made", "seen")

    def __init__(self, base, chain, made, seen):
        self.base = base
        self.chain = chain  # of (operator, params)
        self.made = made
        self.seen = seen


class TensorBase:
    """What the compiled core knows of a tensor.  `Tensor`, its one subclass, has the methods.

    `value` is an array on the ground and a tensor of the parent level above it; `tag` belongs to the level.  On
    the ground it is None or what a `Cut` is made of: where the value, or one that it came from, left its graph.
    """

    __slots__ = (
        "__weakref__",
        "_grad",
        "_grad_fn",
        "_hooks",
        "_requires_grad",
        "_saved",
        "_view",
        "level",
        "output_nr",
        "tag",
        "value",
        "version",
    )

    def __init__(self, value, level=None, tag=None, requires_grad=False):
        self.value = value
        self.level = level
        self.tag = tag
        self._requires_grad = requires_grad
        self._grad_fn = None
        self.output_nr = 0
        self._grad = None
        self.version = None
        self._view = None
        self._hooks = None
        self._saved = False  # by a node, while there is no version yet to say so

    @property
    def shape(self):
        """Sizes of the dimensions, as a tuple of ints."""
        return self.value.shape if self.level is None else self.level.shape(self)

    @property
    def ndim(self):
        """Number of dimensions."""
        return len(self.shape)

    @property
    def dtype(self):
        """The NumPy dtype of the elements."""
        return self.value.dtype

    @property
    def aval(self):
        """Shape and dtype, without the value."""
        return Aval(self.shape, self.value.dtype)


tensor_class = TensorBase


def set_tensor_class(cls):
    """Make `cls`, a subclass of TensorBase without fields of its own, the class of all results."""
    global tensor_class
    tensor_class = cls
    if compiled:
        pool_allocations(cls)  # noqa: F821 (declared in tensor.pxd)


def make(value, level, tag):
    """A fresh tensor outside any graph."""
    if compiled:
        out: TensorBase = known_tensor(tensor_new(tensor_class))  # noqa: F821 (declared in tensor.pxd)
        out.value = value
        out.level = level
        out.tag = tag
        return out
    return tensor_class(value, level, tag)


def alias(tensor, grad_fn):
    """The same value at the same level under another autograd identity."""
    out = make(tensor.value, tensor.level, tensor.tag)
    out.version = tensor.version
    if grad_fn is not None:
        out._grad_fn = grad_fn
        out.output_nr = tensor.output_nr
        out._requires_grad = True
    return out


def unwrap_all(tensor):
    """The array below all levels."""
    while tensor.level is not None:
        tensor = tensor.value
    return tensor.value


def version_of(tensor):
    """The version counter that a tensor shares with its views, made when first asked for."""
    if tensor.version is None:
        tensor.version = Version()
        tensor.version.saved = tensor._saved
    return tensor.version


def bump_version(tensor):
    """The tensor's storage was just written to."""
    version = version_of(tensor)
    if version.count >= 0:
        version.count += 1
        if version.saved:
            version.saved = False
            version.where = user_line()


def preserve_snapshots(tensor):
    """Copy the content that graphs hold snapshots of: the tensor's storage is about to be written to."""
    version = tensor.version
    if version is not None and version.snapshots is not None:
        for reference in version.snapshots:
            snapshot = reference()
            if snapshot is not None:
                snapshot.preserve()
        version.snapshots = None


def is_view_of(array, source):
    """Whether one array shows the memory of the other, which it was computed from."""
    if array is source:
        return True
    if type(array) is not ndarray or type(source) is not ndarray:
        return is_view_of_composite(array, source)
    a: ndarray = array
    b: ndarray = source
    return a.base is not None and (a.base is b or a.base is b.base)


def memory_of(array):
    """The plain array that holds the numbers of a compound one; other arrays themselves."""
    return getattr(array, "memory", array)


def is_view_of_composite(array, source):
    """`is_view_of`, where one is no plain array: of compounds the array that holds their numbers tells."""
    mine, its = memory_of(array), memory_of(source)
    if mine is array and its is source:
        return type(array) is type(source)
    return is_view_of(mine, its)


def set_view(out, source, op, params, made):
    """The result of a view operator: it shares the version counter, and remembers how to be made again."""
    out.version = version_of(source)
    known: View = source._view
    step = ((op, params),)
    if known is None:
        out._view = View(source, step, made, out.version.rebased)
    else:
        seen = known.seen if known.made == COPIED else out.version.rebased
        out._view = View(known.base, known.chain + step, known.made or made, seen)


def set_view_copy(out, source, op, params):
    """The result of a view operator whose elements had to be copied: it follows its base, and refuses writes."""
    out.version = version_of(source)
    known: View = source._view
    chain = ((op, params),) if known is None else (*known.chain, (op, params))
    out._view = View(source if known is None else known.base, chain, COPIED, copied_at(out.version))


def copied_at(version):
    """The `View.seen` of a copy made at this version: negative, and so never a count of histories."""
    return -2 - version.count


def count_of(tensor):
    """How often the tensor's storage was written to."""
    version = tensor.version
    return 0 if version is None else version.count


def plain(x, y):
    """Whether two operands need no promotion: NumPy would do what PyTorch does."""
    if type(x) is ndarray:
        a: ndarray = x
        if type(y) is ndarray:
            b: ndarray = y
            return a.dtype is b.dtype
        return weak(a, y)
    if type(y) is ndarray:
        return weak(y, x)
    return False


def weak(array, number):
    """Whether a Python number takes the dtype of the array that it meets."""
    if type(number) is float:
        return array.dtype.num > 10
    return type(number) is int and array.dtype.num > 0


def floating(x):
    """Whether x is a NumPy array of floating or complex dtype (half precision has a number of its own)."""
    if type(x) is ndarray:
        a: ndarray = x
        return a.dtype.num > 10
    return False


def same_kind(x, y):
    """Whether two arrays agree in shape and dtype, so that a cotangent for one fits the other."""
    if type(x) is ndarray and type(y) is ndarray:
        a: ndarray = x
        b: ndarray = y
        if a.dtype is not b.dtype or a.ndim != b.ndim:
            return False
        for i in range(a.ndim):
            if a.shape[i] != b.shape[i]:
                return False
        return True
    return False
