"""Random operators under vmap: different values for each example, or the same, as `randomness` says."""

import numpy as np
import pytest

import retrograd as rg
import retrograd.nn.functional as F
from retrograd.func import grad, vmap
from retrograd.testing import assert_close

odds = rg.sigmoid

# Functions of a vector of 5 that draw enough values for two draws to differ.
RANDOM = {
    "rand": lambda x: rg.rand(4),
    "randn_like": rg.randn_like,
    "randint": lambda x: rg.randint(0, 1000, (4,)),
    "randperm": lambda x: rg.randperm(20),
    "normal": lambda x: rg.normal(x, 0.5),
    "normal of a number": lambda x: rg.normal(0.0, x.abs() + 1),
    "bernoulli": lambda x: rg.bernoulli(odds(x.expand(9, 5))),
    "gamma": lambda x: rg._standard_gamma(x.exp()),
    "dirichlet": lambda x: rg._sample_dirichlet(x.exp()),
    "poisson": lambda x: rg.poisson(20 * x.exp()),
    "binomial": lambda x: rg.binomial(rg.full_like(x, 1000), odds(x)),
    "multinomial": lambda x: rg.multinomial(rg.cat([odds(x)] * 9), 9),
    "multinomial of rows": lambda x: rg.multinomial(odds(x.expand(4, 5)), 9, replacement=True),
    "multinomial of what is shared": lambda x: rg.multinomial(rg.ones(9), 9),
    "gamma of what is shared": lambda x: rg._standard_gamma(rg.ones(4)),
    "dropout": lambda x: F.dropout(x.expand(9, 5), 0.5),
    "dropout2d": lambda x: F.dropout2d(x.reshape(1, 5, 1, 1).expand(9, 5, 1, 2), 0.5),
    "alpha_dropout": lambda x: F.alpha_dropout(x.expand(9, 5), 0.5, True),
    "gumbel_softmax": F.gumbel_softmax,
    "rrelu": lambda x: F.rrelu(-x.abs() - 1, training=True),
    "uniform_": lambda x: x.clone().uniform_(),
    "bernoulli_": lambda x: x.expand(9, 5).clone().bernoulli_(odds(x)),
    "geometric_": lambda x: rg.zeros(4).geometric_(0.001),
    "attention": lambda x: F.scaled_dot_product_attention(*[x.reshape(5, 1).expand(5, 5)] * 3, dropout_p=0.5),
}


@pytest.fixture
def points(rng):
    return rg.tensor(rng.normal(size=(3, 5)))


def distinct(draws):
    return len({draw.numpy().tobytes() for draw in draws}) == len(draws)


@pytest.mark.parametrize("name", RANDOM)
def test_random_operators_require_a_randomness_mode_on_a_batch(name, points):
    with pytest.raises(RuntimeError, match="draws random numbers; pass randomness="):
        vmap(RANDOM[name])(points)


@pytest.mark.parametrize("name", RANDOM)
def test_different_examples_draw_different_numbers(name, points):
    f, alike = RANDOM[name], points[:1].expand(6, 5)
    rg.manual_seed(0)
    draws = vmap(f, randomness="different")(alike)
    one = f(points[0])
    assert (draws.shape, draws.dtype) == ((6, *one.shape), one.dtype)
    assert distinct(draws)
    assert vmap(f, randomness="different")(points[:0]).shape == (0, *one.shape)


@pytest.mark.parametrize("name", RANDOM)
def test_the_same_numbers_are_those_of_a_loop_that_seeds_each_time(name, points):
    f = RANDOM[name]
    rg.manual_seed(5)
    together = vmap(f, randomness="same")(points)
    for i in range(3):
        rg.manual_seed(5)
        assert_close(together[i], f(points[i]))
    assert vmap(f, randomness="same")(points[:0]).shape == (0, *together.shape[1:])


@pytest.mark.parametrize("name", RANDOM)
def test_the_same_numbers_are_drawn_in_every_chunk(name, points):
    f = RANDOM[name]
    rg.manual_seed(5)
    together, after = vmap(f, randomness="same")(points), rg.rand(3)
    for chunk in (1, 2):
        rg.manual_seed(5)
        assert_close(vmap(f, randomness="same", chunk_size=chunk)(points), together)
        assert rg.rand(3).tolist() == after.tolist()


def test_generators_of_the_program_draw_the_same_numbers_in_every_chunk_and_in_a_loop(points):
    def draws(generator, x):
        drawn = rg.rand(2, generator=generator) + rg.rand(2)
        return drawn if x.shape == (5,) else None

    def looped(x):
        return draws(generators[-1], x) * (1 if x.sum() > -1e9 else 2)

    generators = [rg.Generator().manual_seed(3) for _ in range(3)]
    rg.manual_seed(1)
    found = vmap(lambda x: draws(generators[0], x), randomness="same")(points)
    rg.manual_seed(1)
    assert_close(vmap(lambda x: draws(generators[1], x), randomness="same", chunk_size=1)(points), found)
    rg.manual_seed(1)
    with pytest.warns(rg.func.batch.PerformanceWarning):
        again = vmap(looped, randomness="same", fallback="loop")(points)
    assert len({row.numpy().tobytes() for row in again}) == 1
    counters = [generator._plain_state()["state"]["counter"].tolist() for generator in generators]
    assert counters[0] == counters[1]


@pytest.mark.parametrize("name", RANDOM)
@pytest.mark.parametrize("outer", ["same", "different"])
@pytest.mark.parametrize("inner", ["same", "different"])
def test_each_of_two_batches_draws_as_it_says(name, outer, inner, points):
    alike = points[:1, None].expand(2, 3, 5)
    rg.manual_seed(0)
    draws = vmap(vmap(RANDOM[name], randomness=inner), randomness=outer)(alike)
    assert distinct([draws[0], draws[1]]) == (outer == "different")
    assert distinct([draws[0, i] for i in range(3)]) == (inner == "different")


def test_a_passed_generator_serves_a_batch(points):
    def f(x):
        return rg.multinomial(odds(x), 2, generator=generator)

    generator = rg.Generator().manual_seed(3)
    drawn = vmap(f, randomness="same")(points)
    for i in range(3):
        generator.manual_seed(3)
        assert_close(drawn[i], f(points[i]))


def test_draws_of_a_batch_are_distributed_as_single_ones():
    rg.manual_seed(0)
    weights = rg.tensor([[1.0, 3.0, 0.0], [2.0, 0.0, 2.0]]).repeat_interleave(4000, 0)
    first = vmap(lambda w: rg.multinomial(w, 1), randomness="different")(weights)[:, 0]
    frequencies = rg.nn.functional.one_hot(first, 3).double().reshape(2, 4000, 3).mean(1)
    assert_close(frequencies, [[0.25, 0.75, 0.0], [0.5, 0.0, 0.5]], atol=0.03)
    orders = vmap(lambda w: rg.randperm(3), randomness="different")(weights)
    places = rg.nn.functional.one_hot(orders, 3).double().mean(0)
    assert_close(places, np.full((3, 3), 1 / 3), atol=0.03)
    kept = vmap(lambda w: F.dropout(rg.ones(3), 0.25), randomness="different")(weights) > 0
    assert_close(kept.double().mean(0), [0.75] * 3, atol=0.03)
    assert_close(np.corrcoef(kept.numpy()[:4000, 0], kept.numpy()[4000:, 0])[0, 1], 0.0, atol=0.05)


def test_gradients_flow_through_what_a_batch_draws(points):
    def f(x):
        return F.dropout(x, 0.5).sum()

    slopes = vmap(grad(f), randomness="different")(points.expand(3, 5))
    assert set(slopes.flatten().tolist()) == {0.0, 2.0}
    alike = vmap(grad(f), randomness="same")(points)
    assert_close(alike[0], alike[1])


def test_shared_tensors_can_not_be_filled_with_numbers_of_each_example(points):
    shared = rg.zeros(3)
    with pytest.raises(RuntimeError, match="different inplace randomness on an unbatched tensor"):
        vmap(lambda x: shared.uniform_() * x.sum(), randomness="different")(points)
    assert shared.tolist() == [0.0] * 3
    filled = vmap(lambda x: shared.uniform_() + 0 * x.sum(), randomness="same")(points)
    assert filled.tolist() == [shared.tolist()] * 3
