"""Gradients pass from one division of a tensor to another, and are those of the tensor on one rank."""

import itertools

import numpy as np
import pytest

import retrograd as rg
import retrograd.distributed as dist
from retrograd.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

KINDS = [Replicate(), Shard(0), Shard(1), Partial()]
MESHES = [(1,), (3,), (2, 2), (1, 3)]


def values(seed, *shape):
    return rg.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def pairs_of(shape):
    """Return all pairs of divisions over a mesh."""
    kinds = list(itertools.product(KINDS, repeat=len(shape)))
    return list(itertools.product(kinds, repeat=2))


@pytest.mark.parametrize("mesh_shape", MESHES)
def test_gradients_through_a_redistribution_are_those_of_the_whole_tensor(mesh_shape):
    whole, weight = values(0, 5, 3), values(1, 5, 3)

    def script():
        mesh = dist.init_device_mesh("cpu", mesh_shape)
        for source, target in pairs_of(mesh_shape):
            x = distribute_tensor(whole, mesh, source).requires_grad_()
            moved = x.redistribute(placements=target)
            assert moved.placements == target
            assert moved.to_local().shape == distribute_tensor(whole, mesh, target).to_local().shape
            full = moved.full_tensor()
            np.testing.assert_allclose(full.detach().numpy(), whole.numpy(), rtol=1e-14)
            (full.sin() * weight).sum().backward()
            expected = whole.cos() * weight
            mine = [Replicate() if p.is_partial() else p for p in source]
            own = distribute_tensor(expected, mesh, mine).to_local()
            np.testing.assert_allclose(x.grad.to_local().numpy(), own.numpy(), rtol=1e-12, err_msg=f"{source} {target}")

    dist.run_threads(script, int(np.prod(mesh_shape)))


@pytest.mark.parametrize("source", KINDS)
@pytest.mark.parametrize("target", KINDS)
def test_third_derivatives_pass_through_redistributions(source, target):
    whole = values(0, 4, 3)

    def script():
        mesh = dist.init_device_mesh("cpu", (2,))
        x = distribute_tensor(whole, mesh, [source]).requires_grad_()
        g = x.redistribute(placements=[target]).full_tensor(grad_placements=[Partial()])
        # a term of the loss on each rank: the gradients below are exchanged in all orders
        g = (g**4 * (1.0 + dist.get_rank())).sum() / 3
        for _ in range(3):
            whole_of = DTensor.from_local(g, mesh, [Partial()]).full_tensor()
            (of_x,) = rg.autograd.grad(whole_of.sum(), x, create_graph=True)
            g = of_x.to_local()
            own = Replicate() if source.is_partial() else source
            g = DTensor.from_local(g, mesh, [own], grad_placements=[source])
            g = g.full_tensor(grad_placements=[Partial()]).sum() / 2
        total = DTensor.from_local(g, mesh, [Partial()]).full_tensor()
        np.testing.assert_allclose(total.item(), (24 * whole).sum().item(), rtol=1e-12)

    dist.run_threads(script, 2)


@pytest.mark.parametrize("kind", [Replicate(), Shard(0), Partial(), Partial("avg")])
def test_the_gradient_of_a_local_tensor_is_the_part_of_that_of_the_whole_one(kind):
    def script():
        mesh = dist.init_device_mesh("cpu", (2,))
        local = values(dist.get_rank() * (not kind.is_replicate()), 3, 2).requires_grad_()
        whole = DTensor.from_local(local, mesh, [kind]).full_tensor()
        whole.square().sum().backward()
        gradient = 2 * whole.detach()
        own = gradient.chunk(2)[dist.get_rank()] if kind.is_shard() else gradient
        np.testing.assert_allclose(local.grad.numpy(), own.numpy(), rtol=1e-12)

    dist.run_threads(script, 2)


def test_a_caller_says_how_a_gradient_is_divided():
    def script():
        mesh, rank = dist.init_device_mesh("cpu", (2,)), dist.get_rank()
        x = distribute_tensor(rg.ones(4), mesh, [Replicate()]).requires_grad_()
        local = x.to_local(grad_placements=[Partial()])
        assert local.data_ptr() == x.to_local().data_ptr()
        (local * (rank + 1)).sum().backward()  # another term of the loss on each rank
        assert x.grad.to_local().tolist() == [3.0] * 4
        y = rg.ones(4, requires_grad=True)
        DTensor.from_local(y, mesh, [Replicate()], grad_placements=[Partial()]).full_tensor().sum().backward()
        assert y.grad.tolist() == [float(rank == 0)] * 4  # a term of the gradient

    dist.run_threads(script, 2)


@pytest.mark.parametrize("reduce_op", ["sum", "avg", "product", "min", "max"])
def test_terms_are_combined_by_their_operation(reduce_op):
    def script():
        mesh = dist.init_device_mesh("cpu", (3,))
        terms = rg.arange(1.0, 5.0) * (dist.get_rank() + 1)
        found = DTensor.from_local(terms, mesh, [Partial(reduce_op)])
        return [found.full_tensor().tolist(), found.redistribute(placements=[Shard(0)]).full_tensor().tolist()]

    combine = {"sum": np.sum, "avg": np.mean, "product": np.prod, "min": np.min, "max": np.max}[reduce_op]
    expected = combine([np.arange(1.0, 5.0) * k for k in (1, 2, 3)], axis=0).tolist()
    assert dist.run_threads(script, 3) == [[expected] * 2] * 3


@pytest.mark.parametrize("gradient_dtype", [None, rg.bfloat16, rg.float32])
@pytest.mark.parametrize("dtype", [None, rg.bfloat16, rg.float32])
def test_parts_and_gradients_are_exchanged_in_the_given_dtypes(dtype, gradient_dtype):
    whole = rg.tensor([1.0, 1 + 2**-20])

    def script():
        mesh = dist.init_device_mesh("cpu", (2,))
        x = distribute_tensor(whole, mesh, [Shard(0)]).requires_grad_()
        y = x.redistribute(placements=[Replicate()], forward_dtype=dtype, backward_dtype=gradient_dtype)
        assert rg.equal(y.to_local(), whole.to(dtype or whole.dtype))
        grad = distribute_tensor(whole, mesh, [Replicate()]).to(y.dtype)
        y.backward(grad)
        expected = whole.to(y.dtype).to(gradient_dtype or y.dtype).to(rg.float32)
        assert rg.equal(x.grad.full_tensor(), expected)

    dist.run_threads(script, 2)
