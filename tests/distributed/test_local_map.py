"""Functions of plain tensors compute with the parts of divided ones, and gradients pass through them."""

import pytest

import retrograd as rg
import retrograd.distributed as dist
from retrograd.distributed.tensor import Partial, Replicate, Shard, distribute_tensor
from retrograd.distributed.tensor.experimental import implicit_replication, local_map


def mesh():
    return dist.init_device_mesh("cpu", (2,))


def numbers(*shape):
    return rg.arange(1.0 * rg.ones(*shape).numel()).reshape(shape)


def test_a_function_gets_the_parts_and_returns_those_of_the_results():
    def script():
        x, w = numbers(5, 2).requires_grad_(), numbers(2, 3).requires_grad_()
        parts = [distribute_tensor(x, mesh(), [Shard(0)]), distribute_tensor(w, mesh())]
        shapes = []

        @local_map(out_placements=[Shard(0)], in_grad_placements=(None, [Partial()]))
        def product(x, w):
            shapes.append(x.shape)
            return x @ w

        y = product(*parts)
        (y * y).sum().backward()
        (x @ w).square().sum().backward()
        assert y.placements == (Shard(0),)
        assert shapes == [(3, 2) if dist.get_rank() == 0 else (2, 2)]
        assert rg.equal(y.full_tensor(), x @ w)
        assert rg.allclose(parts[0].grad.full_tensor(), x.grad)
        assert rg.allclose(parts[1].grad.full_tensor(), w.grad)

    dist.run_threads(script, 2)


def test_arguments_and_results_may_be_nested_and_no_tensors():
    def script():
        x = distribute_tensor(numbers(4), mesh(), [Shard(0)])
        call = local_map(lambda d, n: {"a": d["x"] * n, "b": n}, ([Shard(0)], None), ([Shard(0)], None))
        found = call({"x": x}, 3)
        assert found["b"] == 3
        assert found["a"].full_tensor().tolist() == [0.0, 3.0, 6.0, 9.0]
        assert call({"x": rg.ones(2)}, 3)["a"].tolist() == [3.0, 3.0]

    dist.run_threads(script, 2)


def test_arguments_of_other_placements_are_redistributed_or_refused():
    def script():
        x = distribute_tensor(numbers(4, 2), mesh(), [Shard(0)])
        columns = [Shard(1)]
        doubled = local_map(lambda x: 2 * x, columns, (columns,), redistribute_inputs=True)(x)
        assert doubled.placements == (Shard(1),)
        assert rg.equal(doubled.full_tensor(), 2 * x.full_tensor())
        with pytest.raises(ValueError, match="instead of"):
            local_map(lambda x: 2 * x, columns, (columns,))(x)

    dist.run_threads(script, 2)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"out_placements": ([Shard(0)], None)}, "out_placements has 2 entries, and there are 1"),
        ({"out_placements": [Shard(0)], "in_placements": ()}, "in_placements has 0 entries, and there are 1"),
        ({}, "out_placements are for results that are tensors"),
    ],
)
def test_other_numbers_of_placements_are_refused(options, told):
    def script():
        with pytest.raises(ValueError, match=told):
            local_map(lambda x: x * 2, **options)(distribute_tensor(numbers(4), mesh(), [Shard(0)]))

    dist.run_threads(script, 2)


def test_plain_tensors_are_copies_within_the_block_only():
    def script():
        x = distribute_tensor(numbers(4, 2), mesh(), [Shard(0)])
        with implicit_replication():
            added = rg.ones(2) + x
        assert added.placements == (Shard(0),)
        assert rg.equal(added.full_tensor(), 1 + numbers(4, 2))
        assert (x + distribute_tensor(rg.ones(2), mesh(), [Replicate()])).placements == (Shard(0),)
        with pytest.raises(RuntimeError, match=r"mixed torch\.Tensor and DTensor"):
            rg.ones(2) + x

    dist.run_threads(script, 2)
