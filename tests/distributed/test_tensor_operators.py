"""Operators on tensors that are divided among ranks give the numbers and gradients of whole tensors."""

import contextlib

import numpy as np
import pytest

import retrograd as rg
import retrograd.distributed as dist
from retrograd import nn
from retrograd.core import Aval, registry
from retrograd.core.errors import OperandIndexError, OperandValueError
from retrograd.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor, propagation
from retrograd.distributed.tensor.placements import StridedShard
from retrograd.distributed.tensor.propagation import call_of
from retrograd.testing import samples_of

from ..tables import operators_on_arrays

F = nn.functional
CALLS = {
    "sum of products": lambda a, b: (a * b + 2 * a - b).sum(0),
    "quotient": lambda a, b: a / (1 + b * b),
    "broadcast": lambda a, b: a * b[:1] + b[:, :1],
    "matmul": lambda a, b: a @ b.T,
    "matmul of columns": lambda a, b: a.T @ b,
    "batches": lambda a, b: (a.reshape(2, 2, 6) @ b.reshape(2, 6, 2)).tanh(),
    "einsum": lambda a, b: rg.einsum("ij,kj->ik", a, b),
    "linear": lambda a, b: F.linear(a, b, a.sum(1)),
    "reductions": lambda a, b: a.sum() + b.mean(1).max() + (a * b).norm(),
    "softmax": lambda a, b: a.softmax(0) + b.log_softmax(1),
    "cumsum": lambda a, b: a.cumsum(0) * b.cumsum(1),
    "views": lambda a, b: a.T.unsqueeze(0).expand(2, 6, 4).permute(1, 2, 0).reshape(24, 2) * 3,
    "joined": lambda a, b: rg.cat([a, b], 1) + rg.stack([a, b], 1).flatten(1),
    "parts": lambda a, b: a.chunk(2, 1)[0] + b[:, 3:] + b[1, :3],
    "layer_norm": lambda a, b: F.layer_norm(a, (6,)) + F.gelu(b),
    "attention": lambda a, b: F.scaled_dot_product_attention(a.view(4, 2, 3), b.view(4, 2, 3), a.view(4, 2, 3)),
    "losses": lambda a, b: F.mse_loss(a, b) + F.cross_entropy(a, b.softmax(1).detach()),
    "masks": lambda a, b: rg.where(a > b, a, 0.5).masked_fill(b > 1, 2.0) + a.tril(),
    "sorted": lambda a, b: a.sort(0)[0] * b.flip(1),
    "in place": lambda a, b: (a * 1).add_(b).mul_(2).sub_(a),
    "written": lambda a, b: rg.zeros_like(a).copy_(a[0]) + b.clone(),
    "stack of operations": lambda a, b: ((a @ b.T).relu() @ a).sum(0) @ b.T,
}
KINDS = [Replicate(), Shard(0), Shard(1), Partial()]


def values(seed):
    return rg.from_numpy(np.random.default_rng(seed).standard_normal((4, 6)))


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("name", CALLS)
def test_results_and_gradients_are_those_of_whole_tensors(name, ranks):
    call, whole = CALLS[name], [values(seed).requires_grad_() for seed in (0, 1)]
    expected = call(*whole)
    weight = rg.from_numpy(np.random.default_rng(2).standard_normal(tuple(expected.shape)))
    gradients = rg.autograd.grad((expected * weight).sum(), whole, allow_unused=True)

    def script():
        mesh = dist.init_device_mesh("cpu", (ranks,))
        for first in KINDS:
            for second in KINDS:
                parts = [
                    distribute_tensor(x.detach(), mesh, [kind]).requires_grad_()
                    for x, kind in zip(whole, (first, second), strict=True)
                ]
                out = call(*parts)
                assert isinstance(out, DTensor)
                assert out.shape == expected.shape
                full = out.full_tensor()
                message = f"{first} {second} -> {out.placements}"
                np.testing.assert_allclose(full.detach(), expected.detach(), rtol=1e-12, atol=1e-13, err_msg=message)
                loss = (out * distribute_tensor(weight, mesh, [Replicate()])).sum()
                found = rg.autograd.grad(loss, parts, allow_unused=True)
                for g, e in zip(found, gradients, strict=True):
                    assert (g is None) == (e is None)
                    if g is not None:
                        np.testing.assert_allclose(g.full_tensor(), e, rtol=1e-12, atol=1e-12, err_msg=message)

    dist.run_threads(script, ranks)


@pytest.mark.parametrize("name", CALLS)
def test_meshes_of_two_dimensions_give_the_numbers_of_whole_tensors(name):
    call, whole = CALLS[name], [values(seed).requires_grad_() for seed in (0, 1)]
    expected = call(*whole)
    gradients = rg.autograd.grad(expected.square().sum(), whole, allow_unused=True)
    divisions = [
        (Shard(0), Shard(1)), (Partial(), Shard(0)), (Shard(1), Shard(1)), (StridedShard(0, split_factor=2), Shard(0)),
    ]  # fmt: skip

    def script():
        mesh = dist.init_device_mesh("cpu", (2, 2))
        for first in divisions:
            for second in divisions:
                parts = [
                    distribute_tensor(x.detach(), mesh, division).requires_grad_()
                    for x, division in zip(whole, (first, second), strict=True)
                ]
                out = call(*parts)
                message = f"{first} {second} -> {out.placements}"
                np.testing.assert_allclose(out.full_tensor().detach(), expected.detach(), 1e-12, 1e-13, err_msg=message)
                found = rg.autograd.grad(out.square().sum(), parts, allow_unused=True)
                for g, e in zip(found, gradients, strict=True):
                    assert (g is None) == (e is None)
                    if g is not None:
                        np.testing.assert_allclose(g.full_tensor(), e, rtol=1e-12, atol=1e-12, err_msg=message)

    dist.run_threads(script, 4)


def test_what_operators_cannot_combine_is_refused_with_the_way_out():
    dist.init_process_group()
    try:
        mesh = dist.init_device_mesh("cpu", (1,))
        x = distribute_tensor(rg.ones(2, 2), mesh, [Shard(0)])
        with pytest.raises(RuntimeError, match=r"add: got mixed torch\.Tensor and DTensor, need to convert"):
            x + rg.ones(2, 2)
        with pytest.raises(RuntimeError, match="cannot be combined"):
            x + distribute_tensor(rg.ones(2, 2), dist.init_device_mesh("cpu", (1, 1)))
        with pytest.raises(RuntimeError, match="add_: a DTensor cannot be written into a plain tensor"):
            rg.ones(2, 2).add_(x)
        for call in (x.numpy, x.tolist, x.__array__):
            with pytest.raises(RuntimeError, match=r"is not supported for tensor subclasses, got DTensor; call it on"):
                call()
        with pytest.raises(ValueError, match=r"matmul: shapes \(2, 2\) and \(3, 2\) do not fit"):
            x @ distribute_tensor(rg.ones(3, 2), mesh, [Shard(0)])
    finally:
        dist.destroy_process_group()


# Operators whose results are random, or depend on the strides of a tensor.
OTHERS = ("as_strided", "as_strided_scatter", "gumbel_softmax", "multinomial", "pca_lowrank", "svd_lowrank")


def names_of_operators():
    """Return the operators of this package whose results are the same in every call; other tests register more."""
    names = [name for name in operators_on_arrays() if name not in OTHERS and "::" not in name]
    schemas = {name: registry[name].schema for name in names}
    return [name for name, schema in schemas.items() if "generator" not in [p.name for p in schema.parameters]]


def run(op, args, params):
    """Return the result of an operator, given its flat inputs."""
    positional, keywords = op.call_arguments(tuple(args), {**op.params, **params})
    return op(*positional, **keywords)


def tensors_in(value):
    """Return the tensors of a result."""
    return [x for x in (value if isinstance(value, tuple | list) else (value,)) if isinstance(x, rg.Tensor)]


def over_leaves(change, value):
    """Return arguments with their tensors changed."""
    if isinstance(value, tuple | list):
        return type(value)([over_leaves(change, member) for member in value])
    return change(value) if isinstance(value, rg.Tensor) else value


def first_sample(op):
    """Return the operands, as tensors, and the parameters of an operator's first sample."""
    args, params = next(iter(samples_of(op)))
    return [rg.as_tensor(a) if isinstance(a, np.ndarray) else a for a in args], params


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dim", [0, 1])
def test_every_operator_gives_the_result_of_whole_tensors(dim):
    samples = {name: first_sample(registry[name]) for name in names_of_operators()}

    def script():
        mesh = dist.init_device_mesh("cpu", (2,))

        def part(x):
            return distribute_tensor(x.detach(), mesh, [Shard(dim) if x.ndim > dim else Replicate()])

        results = {}
        for name, (args, params) in samples.items():
            try:
                found = tensors_in(run(registry[name], over_leaves(part, args), params))
                whole = [x.full_tensor() if isinstance(x, DTensor) else x for x in found]
            except Exception as error:
                error.add_note(name)
                raise
            results[name] = whole, sum(isinstance(x, DTensor) and x.placements[0].is_shard() for x in found)
        return results

    wrong, divided = [], 0
    for name, (found, parts) in dist.run_threads(script, 2)[0].items():
        divided += parts
        for x, whole in zip(found, tensors_in(run(registry[name], *samples[name])), strict=True):
            if not np.allclose(x.detach().numpy(), whole.detach().numpy(), 1e-5, 1e-6, equal_nan=True):
                wrong.append(name)
    assert not wrong
    assert divided > 200  # these are computed by parts


def calls_of(name):
    """Yield the calls of an operator in its samples, with avals in place of tensors."""
    op = registry[name]
    for args, params in samples_of(op):
        args = [rg.as_tensor(a) if isinstance(a, np.ndarray) else a for a in args]
        positional, keywords = op.call_arguments(tuple(args), {**op.params, **params})
        operands, params = op.schema.bind(positional, keywords)
        yield call_of(op, [a.aval if isinstance(a, rg.Tensor) else a for a in operands], params)


def divisions_of(call, dim):
    """Yield placements in which a dimension is divided: of all operands, and of each of them alone."""
    divided = [i for i, a in enumerate(call.operands) if isinstance(a, Aval) and a.ndim > dim]
    for chosen in [divided, *[[i] for i in divided if len(divided) > 1]]:
        yield tuple([
            (Shard(dim) if i in chosen else Replicate()) if isinstance(a, Aval) else None
            for i, a in enumerate(call.operands)
        ])  # fmt: skip


def test_only_operators_with_sizes_as_params_refuse_parts(monkeypatch):
    refused, run_on_meta = set(), propagation._run_on_meta

    def run_noting_errors(call, shapes):
        try:
            return run_on_meta(call, shapes)
        except NotImplementedError:  # the shape of the result depends on values
            raise
        except Exception as error:
            refused.add((call.op.name, type(error)))
            raise

    monkeypatch.setattr(propagation, "_run_on_meta", run_noting_errors)
    calls = [call for name in names_of_operators() if not registry[name].composite for call in calls_of(name)]
    calls.append(call_of(registry["narrow"], [Aval((3, 4), rg.float64)], {"dim": 0, "start": 0, "length": 3}))
    for call in calls:
        for dim in range(3):
            for given in divisions_of(call, dim):
                for ranks in (2, 3):
                    with contextlib.suppress(NotImplementedError):
                        propagation.plan_for.__wrapped__(call, given, (ranks,))
    assert refused == {
        ("convolution", OperandValueError), ("convolution_weight", OperandValueError), ("narrow", OperandIndexError),
    }  # fmt: skip


@pytest.mark.parametrize("shape", [(), (1,), (1, 3)])
def test_a_tensor_of_fewer_elements_than_ranks_is_divided_by_its_operators(shape):
    def script():
        mesh = dist.init_device_mesh("cpu", (3,))
        x = distribute_tensor(rg.full(shape, 2.0), mesh, [Shard(0)])
        x.detach().mul_(3)
        y = (x + 1).tanh() * x
        return y.placements, x.full_tensor().sum().item() / x.numel(), tuple(y.full_tensor().shape)

    for placements, mean, found in dist.run_threads(script, 3):
        assert placements == (Shard(0),)
        assert (mean, found) == (6, shape)
