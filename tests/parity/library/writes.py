"""Parity cases of operators that write to their arguments."""

from .common import leaf, newer, plain

ADD = "(Tensor(a0!) x, Tensor y) -> ()"


def add_(m):
    def kernel(x, y):
        x.numpy()[...] += y.numpy()

    return newer(m, ADD, kernel, mutates=("x",))


def versions(m):
    x, y = plain(m, 1.0), plain(m, 2.0)
    result = add_(m)(x, y)
    return result, x, x._version, y._version


def listed(m):
    def kernel(xs, y):
        for x in xs:
            x.numpy()[...] *= 3
        return len(xs)

    op = newer(m, "(Tensor(a0!)[] xs, Tensor y) -> int", kernel, mutates=("xs",))
    a, b, c = plain(m, 1.0), plain(m, 2.0), plain(m, 3.0)
    return op([a, b], c), a, b, a._version, b._version, c._version


def two(m):
    def kernel(x, y):
        x.numpy()[...] += 1
        y.numpy()[...] += 2
        return x * y

    op = newer(m, "(Tensor(a0!) x, Tensor(a1!) y) -> Tensor", kernel, mutates=("x", "y"))
    x, y = plain(m, 1.0), plain(m, 2.0)
    return op(x, y), x, y, x._version, y._version


def optional(m):
    def kernel(x, log=None):
        if log is not None:
            log.numpy()[...] = 5
        return x * 2

    op = newer(m, "(Tensor x, Tensor(a1!)? log=None) -> Tensor", kernel, mutates=("log",))
    log = plain(m, 0.0)
    return op(plain(m, 1.0)), op(plain(m, 1.0), log), log, log._version


def view(m):
    base = plain(m, 1.0, 2.0)
    add_(m)(base[1:], plain(m, 5.0))
    return base, base._version


def under_no_grad(m):
    x = leaf(m, 1.0)
    with m.no_grad():
        newer(m, ADD, lambda x, y: x.detach().numpy().__iadd__(y.numpy()) and None, mutates=("x",))(x, plain(m, 2.0))
    return x, x._version, x.requires_grad, x.is_leaf


def noticed(m):
    x, y = leaf(m, 2.0), plain(m, 3.0)
    out = x * y
    add_(m)(y, plain(m, 1.0))
    out.sum().backward()


def on_a_leaf(m):
    add_(m)(leaf(m, 1.0), plain(m, 1.0))


def returned(m):
    newer(m, "(Tensor(a0!) x) -> Tensor", lambda x: x, mutates=("x",))(plain(m, 1.0))


def formula(m):
    add_(m).register_autograd(lambda ctx, g: (g, g))


def in_a_graph(m):
    """Differentiate through a buffer that an operator with a formula wrote to; the buffer requires no grad."""
    x, buffer = leaf(m, 2.0), plain(m, 0.0)
    add_(m)(buffer, plain(m, 3.0))
    (x * buffer).sum().backward()
    return x.grad, buffer


def omitted_write(m):
    """Write through PyTorch, whose history omits the write: the derivative of the written value is lost."""
    x, y = leaf(m, 2.0), plain(m, 0.0)

    def kernel(x, y):
        x.mul_(y + 3)

    op = newer(m, ADD, kernel, mutates=("x",))
    z = x * 1
    op(z, y)
    z.sum().backward()
    return x.grad


WRITES = {
    "versions": versions,
    "a list": listed,
    "two and a result": two,
    "an optional": optional,
    "a view": view,
    "under no_grad": under_no_grad,
    "a saved tensor": noticed,
    "a leaf that requires grad": on_a_leaf,
    "the argument returned": returned,
    "a formula": formula,
    "a buffer in a graph": in_a_graph,
    "a tensor with a history": omitted_write,
}
