"""Complex gradients by PyTorch's convention: the direction of steepest ascent of a real function."""

import pytest

from .adapter import data, outcome, parity, refused

Z = [3 + 4j, -1 + 0.5j, 0.25 - 2j]
W = [1 - 1j, 2 + 0.5j, -0.5 - 0.75j]


def parts(value):
    """Return a complex or real tensor as pairs of real and imaginary parts, without the signs of zeros."""
    flat = value.detach().reshape(-1).tolist()
    return [[data(complex(v).real + 0.0), data(complex(v).imag + 0.0)] for v in flat]


def leaves(m, *lists, dtype="complex128"):
    """Return tensors that require grad."""
    return [m.tensor(values, dtype=getattr(m, dtype), requires_grad=True) for values in lists]


def ascent(m, f, *lists):
    """Return the value of f and its gradients, from a cotangent that differs in each part of each element."""
    inputs = leaves(m, *lists)
    out = f(m, *inputs)
    out.backward(cotangent(m, out))
    return out.dtype, parts(out), [(x.grad.dtype, parts(x.grad)) for x in inputs if x.grad is not None]


def cotangent(m, out):
    """Return different values in the dtype of out."""
    numbers = [k + (0.5j - k * 0.25j if out.is_complex() else 0) for k in range(1, out.numel() + 1)]
    return m.tensor(numbers, dtype=out.dtype).reshape(out.shape)


ONE = {
    "identity": lambda m, z: z * 1,
    "negation": lambda m, z: -z,
    "absolute value": lambda m, z: z.abs(),
    "real part": lambda m, z: z.real,
    "imaginary part": lambda m, z: z.imag,
    "conjugate": lambda m, z: z.conj(),
    "squared length": lambda m, z: z * z.conj(),
    "square": lambda m, z: z * z,
    "cube": lambda m, z: z**3,
    "complex power": lambda m, z: z ** (1.5 + 0.5j),
    "reciprocal": lambda m, z: z.reciprocal(),
    "one over": lambda m, z: 1 / z,
    "exp": lambda m, z: z.exp(),
    "log": lambda m, z: z.log(),
    "sqrt": lambda m, z: z.sqrt(),
    "sin": lambda m, z: z.sin(),
    "cos": lambda m, z: z.cos(),
    "tan": lambda m, z: z.tan(),
    "sinh": lambda m, z: z.sinh(),
    "cosh": lambda m, z: z.cosh(),
    "tanh": lambda m, z: z.tanh(),
    "sigmoid": lambda m, z: z.sigmoid(),
    "times a number": lambda m, z: z * (2 - 1j),
    "plus a number": lambda m, z: z + (2 - 1j),
    "times a real tensor": lambda m, z: z * m.tensor([1.0, 2.0, 3.0], dtype=m.float64),
    "sum": lambda m, z: z.sum(),
    "mean": lambda m, z: z.mean(),
    "product": lambda m, z: z.prod(),
    "running sum": lambda m, z: z.cumsum(0),
    "norm": lambda m, z: z.norm(),
    "index": lambda m, z: z[1:] * z[:-1],
    "repeated index": lambda m, z: z[m.tensor([0, 0, 2])] * 2,
    "flip": lambda m, z: z.flip(0) * z,
    "stack": lambda m, z: m.stack([z, z.conj()]),
    "where": lambda m, z: m.where(m.tensor([True, False, True]), z, z * z),
    "assignment": lambda m, z: assigned(z),
}


def assigned(z):
    """Return a vector with one element overwritten."""
    out = z * 1
    out[0] = out[1].clone() * z[2]
    return out


@pytest.mark.parametrize("name", ONE)
@parity
def test_functions_of_one_complex_tensor(m, name):
    return ascent(m, ONE[name], Z)


TWO = {
    "sum": lambda m, z, w: z + w,
    "difference": lambda m, z, w: z - w,
    "product": lambda m, z, w: z * w,
    "quotient": lambda m, z, w: z / w,
    "power": lambda m, z, w: z**w,
    "scalar product": lambda m, z, w: z @ w,
    "dot": lambda m, z, w: z.dot(w),
    "matrix product": lambda m, z, w: z[:, None] @ w[None, :],
    "einsum": lambda m, z, w: m.einsum("i,j->ij", z, w),
    "outer": lambda m, z, w: m.outer(z, w),
    "mixed parts": lambda m, z, w: z.real * w,
    "broadcast": lambda m, z, w: z[:1] * w,
}


@pytest.mark.parametrize("name", TWO)
@parity
def test_functions_of_two_complex_tensors(m, name):
    return ascent(m, TWO[name], Z, W)


REAL_TO_COMPLEX = {
    "times i": lambda m, x: x * 1j,
    "plus i": lambda m, x: (x + 1j) ** 2,
    "times a complex tensor": lambda m, x: x * m.tensor(Z, dtype=m.complex128),
    "over a complex tensor": lambda m, x: x / m.tensor(Z, dtype=m.complex128),
    "converted": lambda m, x: x.to(m.complex128) ** 2,
}


@pytest.mark.parametrize("name", REAL_TO_COMPLEX)
@parity
def test_a_real_tensor_gets_a_real_gradient(m, name):
    (x,) = leaves(m, [0.5, 1.25, 2.0], dtype="float64")
    out = REAL_TO_COMPLEX[name](m, x)
    out.backward(cotangent(m, out))
    return out.dtype, parts(out), x.grad.dtype, x.grad


@parity
def test_at_zero(m):
    (z,) = leaves(m, [0j, 0j])
    return [parts(g) for g in m.autograd.grad(z.abs().sum(), z)]


@parity
def test_the_gradient_points_uphill(m):
    (z,) = leaves(m, Z)
    (z.abs() ** 2).sum().backward()
    return parts(z.grad), parts(z.detach() * 2)


@parity
def test_a_step_against_the_gradient_descends(m):
    (z,) = leaves(m, [2 + 1j])
    target = m.tensor([-1 + 3j], dtype=m.complex128)
    for _ in range(20):
        loss = ((z - target).abs() ** 2).sum()
        (g,) = m.autograd.grad(loss, z)
        with m.no_grad():
            z.sub_(g * 0.25)
    return parts(z)


@parity
def test_a_complex_output_needs_a_cotangent(m):
    (z,) = leaves(m, [1 + 1j])
    return outcome((z * z).backward, "complex"), outcome(lambda: (z * z).sum().backward())


@parity
def test_a_cotangent_of_one_and_of_i(m):
    (z,) = leaves(m, Z)
    y = z * (2 - 1j)
    seen = [m.autograd.grad(y, z, m.ones(3, dtype=m.complex128) * c, retain_graph=True)[0] for c in (1, 1j)]
    return [parts(g) for g in seen]


@parity
def test_a_real_cotangent_of_a_complex_output(m):
    (z,) = leaves(m, Z)
    return outcome(lambda: (z * 2).backward(m.ones(3, dtype=m.float64)))


@parity
def test_a_complex_cotangent_of_a_real_output(m):
    (z,) = leaves(m, Z)
    return outcome(lambda: z.abs().backward(m.ones(3, dtype=m.complex128)))


@parity
def test_complex64_stays(m):
    (z,) = leaves(m, [1 + 1j], dtype="complex64")
    (z * z.conj()).abs().sum().backward()
    return z.grad.dtype, parts(z.grad)


@parity
def test_two_derivatives(m):
    (z,) = leaves(m, Z)
    (g,) = m.autograd.grad((z.abs() ** 3).sum(), z, create_graph=True)
    (h,) = m.autograd.grad(g.abs().sum(), z)
    return parts(g), parts(h)


@parity
def test_two_derivatives_of_a_holomorphic_function(m):
    (z,) = leaves(m, Z)
    (g,) = m.autograd.grad((z**3).real.sum(), z, create_graph=True)
    (h,) = m.autograd.grad(g.imag.sum(), z)
    return parts(g), parts(h)


@parity
def test_matrices(m):
    a, b = leaves(m, [Z, W], [[1j], [2 + 1j], [-1 - 1j]])
    out = a @ b
    out.backward(cotangent(m, out))
    return parts(out), parts(a.grad), parts(b.grad)


@parity
def test_a_transpose_and_a_conjugate_transpose(m):
    (a,) = leaves(m, [Z, W])
    out = a.transpose(0, 1).conj() @ a
    out.backward(cotangent(m, out))
    return parts(out), parts(a.grad)


@parity
def test_gradients_accumulate(m):
    (z,) = leaves(m, Z)
    for _ in range(2):
        (z * 1j).abs().sum().backward()
    return parts(z.grad)


@parity
def test_a_conversion_of_the_real_part(m):
    (z,) = leaves(m, Z)
    return outcome(lambda: z.real.double().sum().backward()), parts(z.grad)


@parity
def test_a_gradient_hook_sees_complex_numbers(m):
    log, (z,) = [], leaves(m, [1 + 2j])
    y = z * z
    y.register_hook(lambda g: log.append(parts(g)))
    y.abs().sum().backward()
    return log, parts(z.grad)


@parity
def test_comparisons_of_complex_tensors(m):
    (z,) = leaves(m, Z)
    return data(z == z), [refused(f) for f in (lambda: z < z, lambda: z.clamp(0, 1), lambda: z.max())]
