"""Results of custom operators under `vmap`: lists, and values that are no tensors."""

import pytest

import retrograd as rg
from retrograd.func import vmap
from retrograd.library import custom_op


@pytest.mark.parametrize("dims", [-1, [-1, -1], [-1, 1]], ids=["one", "each", "mixed"])
def test_a_batching_rule_returns_the_batch_dimension_of_each_tensor_of_a_list(dims):
    @custom_op("batches::both", mutates_args=())
    def both(x: rg.Tensor) -> list[rg.Tensor]:
        return [x * 1, x * 2]

    @both.register_vmap
    def rule(info, in_dims, x):
        x = x.movedim(in_dims[0], -1)
        return [x * 1, x * 2], dims

    x = rg.rand(3, 2)
    once, twice = vmap(both)(x)
    assert once.tolist() == x.tolist()
    assert twice.tolist() == (2 * x).tolist()


def test_a_rule_with_fewer_out_dims_than_tensors_in_a_list_is_refused():
    @custom_op("batches::three", mutates_args=())
    def three(x: rg.Tensor) -> list[rg.Tensor]:
        return [x * 1, x * 2, x * 3]

    three.register_vmap(lambda info, in_dims, x: ([x * 1, x * 2, x * 3], [0, 0]))
    with pytest.raises(
        RuntimeError, match=r"Expected out_dims=\[0, 0\] to be compatible with the structure of `output`"
    ):
        vmap(three)(rg.rand(3, 2))


def test_examples_one_by_one_must_agree_on_what_is_no_tensor():
    @custom_op("batches::counted", mutates_args=())
    def with_sum(x: rg.Tensor) -> tuple[rg.Tensor, int]:
        return x * 1, int(x.sum())

    assert vmap(with_sum, out_dims=(0, None))(rg.ones(3, 2))[1] == 2
    with pytest.raises(RuntimeError, match=r"returns \('Tensor', 1\) for example 0, but \('Tensor', 2\) for example 1"):
        vmap(with_sum, out_dims=(0, None))(rg.tensor([[1.0, 0.0], [1.0, 1.0]]))


def test_examples_one_by_one_must_agree_on_how_many_tensors_there_are():
    @custom_op("batches::repeated", mutates_args=())
    def repeated(x: rg.Tensor) -> list[rg.Tensor]:
        return [x * 1 for _ in range(int(x))]

    with pytest.raises(RuntimeError, match=r"returns \['Tensor'\] for example 0, but \['Tensor', 'Tensor'\]"):
        vmap(repeated)(rg.tensor([1.0, 2.0]))


def test_a_list_as_default_is_read_off_the_annotations():
    @custom_op("batches::scaled", mutates_args=())
    def scaled(x: rg.Tensor, *, by: list[float] = [2.0, 3.0]) -> rg.Tensor:  # noqa: B006
        return x * by[0] * by[1]

    assert scaled(rg.ones(1)).item() == 6


def test_an_operator_with_a_number_named_generator_draws_no_random_numbers():
    @custom_op("batches::power", mutates_args=())
    def power(x: rg.Tensor, generator: int) -> rg.Tensor:
        return x**generator

    power.register_vmap(lambda info, in_dims, x, generator: (x**generator, in_dims[0]))
    x = rg.rand(3, 2)
    assert vmap(lambda row: power(row, 2))(x).tolist() == (x**2).tolist()
