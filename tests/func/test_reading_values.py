"""Reading the value of a differentiated tensor inside a transform requires an explicit call."""

import array
import math
import warnings

import numpy as np
import optree
import pytest

import retrograd as rg
from retrograd.func import grad, jacobian_sparsity, jet, jvp, linearize, vjp, vmap
from retrograd.testing import assert_close

from ..case_groups import group_cases

POINT = 0.5


def tensor(value):
    return rg.tensor(value, dtype=rg.float64)


def pattern(f):
    pytest.importorskip("scipy")
    return jacobian_sparsity(lambda x: f(x[0]).reshape(1))(tensor([POINT]))


# Each runs a function of one scalar under a transform.
TRANSFORMS = {
    "grad": lambda f: grad(f)(tensor(POINT)),
    "rg.grad": lambda f: rg.grad(f)(POINT),
    "value_and_grad": lambda f: rg.value_and_grad(f)(POINT),
    "jacobian": lambda f: rg.jacobian(f)(POINT),
    "vjp": lambda f: vjp(f, tensor(POINT)),
    "jvp": lambda f: jvp(f, (tensor(POINT),), (tensor(1.0),)),
    "jet": lambda f: jet(f, (tensor(POINT),), ([tensor(1.0)],)),
    "linearize": lambda f: linearize(f, tensor(POINT)),
    "grad of grad": lambda f: grad(grad(f))(tensor(POINT)),
    "jvp of grad": lambda f: jvp(grad(f), (tensor(POINT),), (tensor(1.0),)),
    "grad around vmap": lambda f: grad(lambda x: vmap(lambda y: f(x) * y)(tensor([1.0, 2.0])).sum())(tensor(POINT)),
    "jvp around vmap": lambda f: jvp(
        lambda x: vmap(lambda y: f(x) * y)(tensor([1.0, 2.0])), (tensor(POINT),), (tensor(1.0),)
    ),
    "sparsity": pattern,
}


def written(x):
    y = np.zeros(3)
    y[0] = x
    return y[0]


def filled(x):
    y = np.zeros(3)
    y.fill(x)
    return y[0]


def sliced(x):
    y = np.zeros(3)
    y[1:] = x
    return y[2]


# Each makes plain data of a tensor without saying so: its derivative would be lost.
SILENT = {
    "float": float,
    "complex": complex,
    "math.sin": math.sin,
    "math.floor": math.floor,
    "math.fsum": lambda x: math.fsum([x, x]),
    "percent": lambda x: f"{x:.3f}" and "%.3f" % x,  # noqa: UP031
    "np.float64": np.float64,
    "np.array": np.array,
    "np.asarray": np.asarray,
    "list to array": lambda x: np.array([x, 1.0]),
    "list to float array": lambda x: np.array([x, x], dtype=float),
    "list to tensor": lambda x: rg.tensor([x, 1.0]),
    "numpy()": lambda x: x.numpy(),
    "element": written,
    "fill": filled,
    "slice": sliced,
    "np.full": lambda x: np.full(2, x),
    "array.array": lambda x: array.array("d", [x]),
    "apply_": lambda x: x.clone().apply_(math.sin),
    "map_": lambda x: rg.zeros_like(x.detach()).map_(x, lambda a, b: b),
    "dlpack": np.from_dlpack,
}

# Each asks for a number explicitly, or has derivative zero, so that no derivative is lost.
EXPLICIT = {
    "item": lambda x: x.item(),
    "tolist": lambda x: x.tolist(),
    "int": lambda x: int(x),
    "bool": lambda x: bool(x > 0),
    "format": lambda x: float(f"{x:.1f}"),
    "detach": lambda x: float(x.detach()),
    "detached array": lambda x: x.detach().numpy()[()],
    "forced array": lambda x: x.numpy(force=True)[()],
    "detached element": lambda x: written(x.detach()),
}


@group_cases
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("way", SILENT)
def test_a_derivative_is_not_lost_in_plain_data(transform, way):
    def f(x):
        SILENT[way](x * 1)
        return x * x

    with pytest.raises((RuntimeError, BufferError), match=r"(x|tensor)\.detach\(\)"):
        TRANSFORMS[transform](f)


@group_cases
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("way", EXPLICIT)
def test_a_value_that_is_requested_is_a_constant(transform, way):
    constant = EXPLICIT[way](tensor(POINT))

    def leaves(found):
        return [leaf for leaf in optree.tree_leaves(found) if isinstance(leaf, (rg.Tensor, np.ndarray, np.generic))]

    found = TRANSFORMS[transform](lambda x: x * x * EXPLICIT[way](x))
    expected = TRANSFORMS[transform](lambda x: x * x * constant)
    for a, b in zip(leaves(found), leaves(expected), strict=True):
        assert_close(a, b)


@pytest.mark.parametrize("way", ["float", "complex", "element", "math.sin"])
def test_outside_of_transforms_a_number_warns_as_in_pytorch(way):
    x = tensor(POINT).requires_grad_()
    with pytest.warns(UserWarning, match=r"requires grad became a Python number.*x\.detach\(\)"):
        SILENT[way](x)
    with rg.autograd.forward_ad.dual_level():
        dual = rg.autograd.forward_ad.make_dual(tensor(POINT), tensor(1.0))
        with pytest.warns(UserWarning, match="has a tangent became a Python number"):
            SILENT[way](dual)
        with pytest.raises(RuntimeError, match="has a tangent"):
            np.asarray(dual)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SILENT[way](tensor(POINT))


def test_a_parameter_around_a_transform_that_it_does_not_differentiate_may_be_read():
    w = tensor(3.0).requires_grad_()
    with pytest.warns(UserWarning, match="requires grad"):
        assert grad(lambda x: x * float(w))(tensor(POINT)) == 3.0


def test_numpys_own_error_does_not_hide_the_reason_for_which_a_batch_is_not_read():
    def f(x):
        return tensor(written(x)) * x

    with pytest.raises(rg.core.NotBatchedError, match="differs between examples"):
        vmap(f)(tensor([1.0, 2.0]))
    with pytest.warns(rg.func.batch.PerformanceWarning):
        assert vmap(f, fallback="loop")(tensor([1.0, 2.0])).tolist() == [1.0, 4.0]


def test_an_error_that_the_program_makes_of_a_refusal_stays_its_own():
    class RefusedError(Exception):
        pass

    def f(x):
        try:
            float(x)
        except RuntimeError as error:
            raise RefusedError from error

    with pytest.raises(RefusedError):
        grad(f)(tensor(POINT))
