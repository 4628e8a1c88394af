"""Writing in place.  One operator writes, `copy_`; every other in-place method is a computation and a `copy_`."""

from retrograd.core import Tensor, current, registry
from retrograd.core import dtype as dtypes
from retrograd.core.tensor import plain, version_of
from retrograd.ops.create import as_tensor
from retrograd.ops.family import broadcast_shapes
from retrograd.ops.index import index


def copy_(x, src) -> Tensor:
    """Write `src`, broadcast and converted, into the memory of x, and return x.

    Nothing may record it: x is outside every graph, or gradients are off (`no_grad`), as in an optimizer.
    """
    src = as_tensor(src)
    check_write(x, src)
    if src.shape != x.shape and broadcast_shapes("copy_", [x.shape, src.shape]) != x.shape:
        raise ValueError(f"copy_: a value of shape {src.shape} does not fit into {x.shape}")
    x.value[...] = src.value if src.dtype == x.dtype else registry["to"](src.detach(), x.dtype).value
    version_of(x).count += 1
    return x


def check_write(x, src):
    """Refuse a write that autograd would have to record, before anything has changed."""
    if current().level is not None or x.level is not None:
        raise NotImplementedError("in-place writes inside a transform or trace are not supported yet; use x = x + y")
    if current().grad_enabled and x.requires_grad and x.grad_fn is None:
        raise RuntimeError("a leaf that requires grad can't be written to in place; use no_grad(), or x.detach()")
    if current().grad_enabled and (x.requires_grad or getattr(src, "requires_grad", False)):
        raise NotImplementedError("in-place writes that autograd must record are not supported yet; use x = x + y")
    if not x.value.flags.writeable:
        raise RuntimeError("copy_: this tensor's memory is read-only (expanded, or from a read-only array); clone it")


def _computed(name, x, other):
    """x = operator(x, other): straight into the memory of x where no dtype changes."""
    operator, operand = registry[name], getattr(other, "value", other)
    check_write(x, other)
    if not plain(x.value, operand) or x.dtype.kind not in "fc":
        result = operator(x, other)
        if dtypes.category(result.dtype) > dtypes.category(x.dtype):
            raise RuntimeError(f"{name}_: the result is {result.dtype}, which can't be written into {x.dtype}")
        return copy_(x, result)
    operator.kernel_for((x.value,))(x.value, operand, out=x.value)
    version_of(x).count += 1
    return x


def fill_(x, value) -> Tensor:
    """Write one value everywhere; returns x."""
    check_write(x, value)
    x.value[...] = value if isinstance(value, (bool, int, float, complex)) else as_tensor(value).item()
    version_of(x).count += 1
    return x


def zero_(x) -> Tensor:
    """Write zeros; returns x."""
    return fill_(x, 0)


def add_(x, other, *, alpha=1) -> Tensor:
    """x = x + alpha * other, in place."""
    return _computed("add", x, other if alpha == 1 else other * alpha)


def sub_(x, other, *, alpha=1) -> Tensor:
    """x = x - alpha * other, in place."""
    return _computed("sub", x, other if alpha == 1 else other * alpha)


def mul_(x, other) -> Tensor:
    """x = x * other, in place."""
    return _computed("mul", x, other)


def div_(x, other) -> Tensor:
    """x = x / other, in place."""
    return _computed("div", x, other)


def clamp_(x, min=None, max=None) -> Tensor:
    """x bounded by min and max, in place."""
    return copy_(x, registry["clamp"](x, min, max))


def set_item(x, key, value) -> None:
    """x[key] = value."""
    window = index(x, key)
    if window.version is not None and window.version is x.version:
        copy_(window, value)
        return
    check_write(x, value)
    raise NotImplementedError("x[mask] = v and x[indices] = v are not supported yet; use where() or index_add()")


Tensor.__iadd__, Tensor.__isub__, Tensor.__imul__, Tensor.__itruediv__ = add_, sub_, mul_, div_
for _method in (copy_, zero_, fill_, add_, sub_, mul_, div_, clamp_):
    setattr(Tensor, _method.__name__, _method)
Tensor.__setitem__ = set_item
