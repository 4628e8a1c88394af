"""Random operators: reproducible, from the requested distribution, refused where randomness is not allowed."""

import copy
import pickle
import threading
from contextlib import suppress

import numpy as np
import pytest

import retrograd as rg
from retrograd.ops.generator import reseeded

DRAWS = {
    "rand": lambda g: rg.rand(50, generator=g),
    "randn": lambda g: rg.randn(50, generator=g),
    "randint": lambda g: rg.randint(0, 1000, (50,), generator=g),
    "randperm": lambda g: rg.randperm(50, generator=g),
    "bernoulli": lambda g: rg.bernoulli(rg.full((50,), 0.5), generator=g),
}


@pytest.mark.parametrize("name", DRAWS)
def test_the_same_seed_gives_the_same_numbers_and_another_seed_others(name):
    first, again, other = (DRAWS[name](rg.Generator(seed)).tolist() for seed in (3, 3, 4))
    assert first == again != other


@pytest.mark.parametrize("name", DRAWS)
def test_a_generator_continues_and_can_be_set_back(name):
    generator = rg.Generator(1)
    DRAWS[name](generator)
    state = generator.get_state()
    first = DRAWS[name](generator).tolist()
    assert DRAWS[name](generator).tolist() != first
    generator.set_state(state)
    assert DRAWS[name](generator).tolist() == first


def test_a_state_of_an_earlier_version_is_a_dict():
    generator = rg.Generator(1)
    rg.rand(3, generator=generator)
    state = {"seed": 1, **generator._source.bit_generator.state}
    assert rg.Generator().get_state().tolist() != generator.get_state().tolist()
    other = rg.Generator()
    other.set_state(state)
    assert other.get_state().tolist() == generator.get_state().tolist()
    assert other.initial_seed() == 1


def test_manual_seed_governs_the_default_generator():
    rg.manual_seed(5)
    first = rg.rand(4).tolist()
    state = rg.get_rng_state()
    second = rg.rand(4).tolist()
    rg.set_rng_state(state)
    assert rg.rand(4).tolist() == second
    rg.manual_seed(5)
    assert rg.rand(4).tolist() == first


def test_other_seeds_come_from_the_operating_system():
    generator = rg.Generator(1)
    assert generator.seed() == generator.initial_seed() != rg.Generator().seed()
    before = rg.initial_seed()
    with rg.random.fork_rng():
        assert rg.seed() == rg.initial_seed() != before
    assert rg.initial_seed() == before


def test_a_seed_is_a_number_of_64_bits():
    assert rg.Generator(-1).initial_seed() == 2**64 - 1
    assert rg.Generator(2**64 - 1).initial_seed() == 2**64 - 1


def test_a_generator_lives_on_the_cpu():
    assert rg.Generator("cpu").device == rg.Generator(device="cpu").device == "cpu"
    assert rg.Generator("cpu").initial_seed() == rg.Generator().initial_seed()
    with pytest.raises(RuntimeError, match="'cuda'"):
        rg.Generator(device="cuda")


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g)), rg.Generator.clone_state])
def test_a_copy_of_a_generator_continues_from_its_state_and_independently(copied):
    generator = rg.Generator(5)
    rg.rand(3, generator=generator)
    other = copied(generator)
    assert other.initial_seed() == 5
    assert rg.rand(3, generator=other).tolist() == rg.rand(3, generator=generator).tolist()
    rg.rand(3, generator=other)
    assert rg.rand(3, generator=other).tolist() != rg.rand(3, generator=generator).tolist()


def test_a_fork_leaves_the_default_generator_as_it_was():
    rg.manual_seed(3)
    expected = rg.rand(2).tolist()
    rg.manual_seed(3)
    with rg.random.fork_rng(devices=[]):
        rg.rand(100)
    assert rg.rand(2).tolist() == expected
    rg.manual_seed(3)
    with rg.random.fork_rng(enabled=False):
        rg.rand(2)
    assert rg.rand(2).tolist() != expected


@pytest.mark.parametrize("started", [False, True])
def test_a_reseeded_block_draws_as_after_its_seed_and_changes_nothing_outside(started):
    rg.manual_seed(7)
    inside = rg.rand(2).tolist()
    rg.manual_seed(3)
    expected = rg.rand(4).tolist()
    rg.manual_seed(3)
    begun = rg.rand(2).tolist() if started else []
    with suppress(KeyError), reseeded(7):
        assert rg.rand(2).tolist() == inside
        raise KeyError
    assert begun + rg.rand(4 - len(begun)).tolist() == expected
    assert rg.initial_seed() == 3


def test_the_module_has_the_functions_of_the_root():
    for name in ("manual_seed", "seed", "initial_seed", "get_rng_state", "set_rng_state"):
        assert getattr(rg.random, name) is getattr(rg, name)


def moments(x):
    return float(x.mean()), float(x.var())


def test_numbers_follow_their_distributions():
    generator = rg.Generator(0)
    n = 40_000
    uniform = rg.rand(n, generator=generator, dtype=rg.float64)
    assert uniform.amin() >= 0
    assert uniform.amax() < 1
    assert moments(uniform) == (pytest.approx(0.5, abs=0.01), pytest.approx(1 / 12, abs=0.002))
    assert moments(rg.randn(n, generator=generator)) == (pytest.approx(0, abs=0.02), pytest.approx(1, abs=0.03))
    assert moments(rg.normal(3.0, 2.0, (n,), generator=generator)) == (
        pytest.approx(3, abs=0.04),
        pytest.approx(4, abs=0.1),
    )
    integers = rg.randint(2, 5, (n,), generator=generator)
    assert sorted({*integers.tolist()}) == [2, 3, 4]
    assert moments(integers.double())[0] == pytest.approx(3, abs=0.02)
    assert moments(rg.bernoulli(rg.full((n,), 0.3), generator=generator))[0] == pytest.approx(0.3, abs=0.01)


def test_a_permutation_holds_each_integer_once():
    assert sorted(rg.randperm(100).tolist()) == list(range(100))


def test_complex_numbers_have_two_parts():
    z = rg.randn(40_000, dtype=rg.complex128, generator=rg.Generator(0))
    assert moments(z.real) == (pytest.approx(0, abs=0.02), pytest.approx(0.5, abs=0.02))
    assert moments(z.imag) == (pytest.approx(0, abs=0.02), pytest.approx(0.5, abs=0.02))
    u = rg.rand(1000, dtype=rg.complex64)
    assert u.dtype == rg.complex64
    assert float(u.imag.amin()) >= 0
    assert float(u.imag.amax()) < 1
    assert float((u.real - u.imag).abs().amin()) > 0


def test_normal_takes_tensors_without_dimensions_as_numbers():
    assert rg.normal(0, rg.tensor(0.0), size=(2,), dtype=rg.float64).tolist() == [0.0, 0.0]
    with pytest.raises(TypeError, match="takes a size for numbers only"):
        rg.normal(0.0, rg.ones(2), size=(2,))


def test_normal_takes_a_mean_and_a_deviation_for_each():
    x = rg.normal(rg.tensor([[0.0], [100.0]]), rg.tensor([0.0, 1.0]))
    assert x.shape == (2, 2)
    assert x[:, 0].tolist() == [0.0, 100.0]
    assert rg.normal(rg.zeros(2), 1.0, dtype=rg.float64).dtype == rg.float64
    for arguments in ((0.0, 1.0), (rg.zeros(2), 1.0, (2,))):
        with pytest.raises(TypeError, match="size"):
            rg.normal(*arguments)


def test_integers_keep_to_their_dtype():
    assert rg.randint(200, 256, (50,), dtype=rg.uint8).amin() >= 200
    assert rg.randint(2**63, 2**64, (3,), dtype=rg.uint64).dtype == rg.uint64
    with pytest.raises(ValueError, match="uint8 does not hold"):
        rg.randint(-1, 2, (3,), dtype=rg.uint8)
    assert set(rg.randint_like(rg.zeros(60), 2, 4).tolist()) == {2.0, 3.0}
    assert set(rg.randint_like(rg.zeros(60), high=2).tolist()) == {0.0, 1.0}


@pytest.mark.parametrize("dtype", [rg.float16, rg.float32, rg.float64])
def test_draws_have_the_requested_floating_dtype(dtype):
    assert rg.rand(3, dtype=dtype).dtype == rg.randn(3, dtype=dtype).dtype == dtype


def test_like_takes_shape_and_dtype():
    x = rg.ones(2, 3, dtype=rg.float64)
    assert rg.rand_like(x).aval == rg.randn_like(x).aval == x.aval


@pytest.mark.parametrize(
    ("draw", "error", "facts"),
    [
        (lambda: rg.rand(2, dtype=rg.int64), TypeError, "int64"),
        (lambda: rg.randint(3, 3, (2,)), ValueError, "3 up to but not including 3"),
        (lambda: rg.bernoulli(rg.full((2,), 1.5)), ValueError, "between 0 and 1"),
        (lambda: rg.manual_seed(2**64), ValueError, "18446744073709551616"),
        (lambda: rg.Generator().manual_seed(1.5), ValueError, "1.5"),
        (lambda: rg.Generator("x"), RuntimeError, "'x'"),
    ],
)
def test_invalid_arguments_of_random_functions_are_refused(draw, error, facts):
    with pytest.raises(error, match=facts):
        draw()


def test_threads_never_draw_the_same_numbers_from_one_generator():
    generator, drawn = rg.Generator(0), []

    def work():
        drawn.extend(rg.rand(1000, generator=generator, dtype=rg.float64).tolist())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(drawn)) == 4000


def test_dropout_keeps_the_mean_zeroes_its_share_and_scales_gradients_equally():
    x = rg.ones(20_000, requires_grad=True)
    out = rg.dropout(x, 0.25)
    values = sorted({*out.tolist()})
    assert values == [0.0, pytest.approx(4 / 3)]
    assert float((out == 0).double().mean()) == pytest.approx(0.25, abs=0.02)
    out.sum().backward()
    assert float((x.grad - out.detach()).abs().amax()) == 0.0
    assert rg.dropout(x, 0.25, training=False) is x or float((rg.dropout(x, 0.25, False) - x).abs().amax()) == 0.0


def test_the_bounds_of_randint_go_by_name():
    for drawn in (rg.randint(5, size=(3,)), rg.randint(high=5, size=(3,)), rg.randint(low=0, high=5, size=(3,))):
        assert drawn.shape == (3,)
        assert 0 <= drawn.min() <= drawn.max() < 5


def test_seeds_may_be_integers_of_numpy():
    assert rg.Generator(np.int64(3)).initial_seed() == 3
