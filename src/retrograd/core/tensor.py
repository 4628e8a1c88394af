"""The fields of a tensor (a value at a level, and its position in that level's autograd graph), and versions."""

from numpy import ndarray

from retrograd.core.aval import make_aval
from retrograd.foundation.source_location import user_line

compiled = not __file__.endswith(".py")
if not compiled:  # compiled, this is a cast without a check: see tensor.pxd
    globals()["known_tensor"] = lambda tensor: tensor


class Version:
    """The version counter of a storage, which a base and its views share.

    `count` is the number of in-place writes. `rebases` is the number of writes that gave the base a new history, which
    its views have to take over. `saved` says that a graph node has saved the present content; `where` is the source
    line that overwrote such content. `snapshots` is a set of weak references to the graph's snapshots of the present
    content, or None. `inverses` has the steps, newest last, that lead from a base back to what it was before each
    in-place view operator, as `x.t_()`, each with a weak reference to that base: a `detach()` of it is another one with
    the same counter. It is None where there was no such operator.
    """

    __slots__ = ("count", "inverses", "rebases", "saved", "snapshots", "where")

    def __init__(self):
        if not compiled:
            self.count = self.rebases = 0
            self.saved = False
            self.snapshots = self.where = self.inverses = None


INFERENCE = Version()  # shared by all tensors made in inference mode, whose writes are not counted
INFERENCE.count = -1


class TensorBase:
    """The fields of a tensor. `Tensor`, its only subclass, has the methods.

    `value` is an array on the ground, and a tensor of the parent level under a level. `tag` belongs to the level. On
    the ground it is None or the arguments of a `Cut`: where the value, or one that it was computed from, left its
    graph.
    """

    __slots__ = (
        "__weakref__",
        "_grad",
        "_grad_fn",
        "_hooks",
        "_overrides",
        "_requires_grad",
        "_saved",
        "_view",
        "level",
        "_output_nr",
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
        self._output_nr = 0
        self._grad = None
        self.version = None
        self._view = None
        self._hooks = None
        self._overrides = False  # whether its class overrides operators by `__tensor_function__`
        self._saved = False  # whether a node saved it, until there is a version counter to record that

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
        """Shape and dtype, without the values."""
        return aval_of_tensor(self)


tensor_class = tensor_base = TensorBase
TENSOR_SLOTS = () if compiled else ("__dict__",)  # the compiled base has a place for the attributes of users


def set_tensor_class(cls):
    """Set the class of all results to `cls`, a subclass of TensorBase without fields of its own."""
    global tensor_class, tensor_base
    tensor_class, tensor_base = cls, cls.__base__
    if compiled:
        set_base_new(tensor_base)  # noqa: F821 (declared in tensor.pxd)
        give_dict(cls, attributes_offset(TensorBase(None)))  # noqa: F821 (declared in tensor.pxd)
        pool_allocations(cls)  # noqa: F821 (declared in tensor.pxd)


def make(value, level, tag):
    """Return a new tensor outside any graph."""
    if compiled:
        out: TensorBase = known_tensor(tensor_new(tensor_class))  # noqa: F821 (declared in tensor.pxd)
        out.value = value
        out.level = level
        out.tag = tag
        return out
    return new_of_class(tensor_class, value, level, tag)


def new_of_class(kind, value, level=None, tag=None, requires_grad=False):
    """Return a new tensor of Tensor or a subclass of it, without calling its constructor."""
    out = tensor_base.__new__(kind)  # the class of results has a `__new__` for the calls of users
    TensorBase.__init__(out, value, level, tag, requires_grad)
    out._overrides = kind._class_overrides
    return out


def alias(tensor, grad_fn):
    """Return a tensor with the same value and level, and `grad_fn` as its history."""
    out = make(tensor.value, tensor.level, tensor.tag)
    out.version = tensor.version
    if grad_fn is not None:
        out._grad_fn = grad_fn
        out._output_nr = tensor._output_nr
        out._requires_grad = True
    return out


def attributes_of(tensor):
    """Return the dictionary of the attributes that users have set, or None if there are none."""
    if compiled and not has_dict(tensor):  # noqa: F821 (declared in tensor.pxd)
        return None
    return tensor.__dict__ or None


def aval_of_tensor(tensor):
    """Return shape and dtype of a tensor, without its values."""
    return make_aval(tensor.value.shape if tensor.level is None else tensor.level.shape(tensor), tensor.value.dtype)


def unwrap_all(tensor):
    """Return the array below all levels."""
    while tensor.level is not None:
        tensor = tensor.value
    return tensor.value


def version_of(tensor):
    """Return the version counter that a tensor shares with its views; it is created on first use."""
    if tensor.version is None:
        tensor.version = Version()
        tensor.version.saved = tensor._saved
    return tensor.version


def continue_version(version):
    """Return a version counter for new memory, which continues the count of the old memory; its views stay known."""
    new = Version()
    new.count, new.saved, new.inverses = version.count, version.saved, version.inverses
    return new


def bump_version(tensor):
    """Increment the version of a tensor whose storage was just written to."""
    version = version_of(tensor)
    if version.count >= 0:
        version.count += 1
        if version.saved:
            version.saved = False
            # Only a write over saved content can make a backward pass fail: only then is its line worth finding.
            version.where = user_line()


def preserve_snapshots(tensor):
    """Copy the content that graphs hold snapshots of, because the tensor's storage is about to be written to."""
    version = tensor.version
    if version is not None and version.snapshots is not None:
        for reference in list(version.snapshots):  # copying may free graphs, and with them snapshots
            snapshot = reference()
            if snapshot is not None:
                snapshot.preserve()
        version.snapshots = None


def count_of(tensor):
    """Return the version of a tensor: how often its storage was written to."""
    version = tensor.version
    return 0 if version is None else version.count


EXTENSION = 256  # the least number of a dtype that is not NumPy's own: bfloat16
FLOAT, DOUBLE = 11, 12  # the numbers of float32 and float64
HALF = 23  # the number of float16, the largest of NumPy's own


def needs_no_promotion(x, y):
    """Return whether two operands need no promotion, because NumPy's result dtype is PyTorch's."""
    if type(x) is ndarray:
        a: ndarray = x
        if type(y) is ndarray:
            b: ndarray = y
            return a.dtype is b.dtype and a.dtype.num < EXTENSION
        return is_weak_number(a, y)
    if type(y) is ndarray:
        return is_weak_number(y, x)
    return False


def share_real_dtype(operands, masks=0):
    """Return whether all operands, except for None and the first `masks`, are arrays of float32, or all of float64."""
    dtype = None
    for i, x in enumerate(operands):
        if x is None or i < masks:
            continue
        if type(x) is not ndarray:
            return False
        a: ndarray = x
        if dtype is None and (a.dtype.num == FLOAT or a.dtype.num == DOUBLE):
            dtype = a.dtype
        elif a.dtype is not dtype:
            return False
    return dtype is not None


def have_no_half(operands):
    """Return whether all operands are arrays or tensors on the ground of NumPy's other dtypes, numbers or None.

    Then none has half precision. The reverse need not hold: this is the first look of callers that look closer.
    """
    for a in operands:
        x = a
        if isinstance(a, TensorBase):
            t: TensorBase = known_tensor(a)  # noqa: F821
            x = t.value
        if type(x) is ndarray:
            array: ndarray = x
            if array.dtype.num >= HALF:
                return False
        elif x is not None and type(x) is not float and type(x) is not int:
            return False
    return True


def is_weak_number(array, number):
    """Return whether a Python number takes the dtype of the array operand."""
    if type(number) is float:
        # dtype.num orders NumPy's dtypes: 0 is bool, up to 10 integers, above 10 floating and complex.
        return array.dtype.num > 10 and array.dtype.num < EXTENSION
    return type(number) is int and array.dtype.num > 0 and array.dtype.num < EXTENSION


def has_numpy_dtype(x):
    """Return whether x is an array with a dtype of NumPy's own, so that NumPy's kernels compute with it."""
    if type(x) is ndarray:
        a: ndarray = x
        return a.dtype.num < EXTENSION
    return False


def is_floating_array(x):
    """Return whether x is an array of floating or complex dtype (float16 and bfloat16 have higher dtype numbers)."""
    if type(x) is ndarray:
        a: ndarray = x
        return a.dtype.num > 10
    return False


def is_real_array(x):
    """Return whether x is an array of float32 or float64."""
    if type(x) is ndarray:
        a: ndarray = x
        return a.dtype.num == FLOAT or a.dtype.num == DOUBLE
    return False


def is_integer_array(x):
    """Return whether x is an array of integers; booleans are none."""
    if type(x) is ndarray:
        a: ndarray = x
        return 0 < a.dtype.num <= 10
    return False


ANY_SIZE = 1 << 62  # a limit of elements that no array reaches


def is_plain(t, most):
    """Return whether a tensor is a ground array of floats in row-major order that can be written to, and no view.

    It has at most `most` elements, no snapshots, and its memory can be written to as its versions are counted.
    """
    if not has_plain_memory(t) or not is_real_array(t.value):
        return False
    a: ndarray = t.value
    size = 1
    for i in range(a.ndim):
        size *= a.shape[i]
    return size <= most


def has_plain_memory(t):
    """Return whether a tensor is plain, as `is_plain` says, except that it may have any size and any dtype."""
    if t.level is not None or t._view is not None or t._overrides:
        return False
    if t.version is not None and (t.version.count < 0 or t.version.snapshots is not None):
        return False
    if type(t.value) is not ndarray:
        return False
    a: ndarray = t.value
    return a.is_carray if compiled else a.flags.carray and a.dtype.isnative


def split_plain(tensors, most):
    """Return the tensors of which value and gradient are plain and of one kind, their gradients, and the others.

    Tensors without a gradient on the ground are left out.
    """
    plain = []
    grads = []
    others = []
    for tensor in tensors:
        t: TensorBase = tensor
        if t._grad is None:
            continue
        g: TensorBase = t._grad
        noted = t.tag is not None or g.tag is not None  # where it was detached, which a write passes on
        if (
            not noted
            and not g._requires_grad
            and is_plain(t, most)
            and is_plain(g, most)
            and same_kind(t.value, g.value)
        ):
            plain.append(t)
            grads.append(g)
        else:
            others.append(t)
    return plain, grads, others


def arrays_of(tensors):
    """Return the arrays of tensors on the ground."""
    arrays = []
    for tensor in tensors:
        t: TensorBase = tensor
        arrays.append(t.value)
    return arrays


def bump_versions(tensors):
    """Increment the versions of tensors whose storages were just written to."""
    for tensor in tensors:
        bump_version(tensor)


def drop_grads(tensors):
    """Set the gradients of tensors on the ground to None; return those whose class defines `grad` by itself."""
    last = None  # the class of the tensor before
    own = False
    others = []
    for tensor in tensors:
        if type(tensor) is not last:
            last = type(tensor)
            own = last.grad is tensor_class.grad
        if own:
            t: TensorBase = tensor
            t._grad = None
        else:
            others.append(tensor)
    return others


def same_kind(x, y):
    """Return whether two arrays agree in shape and dtype, so that a cotangent of one fits the other."""
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
