"""The examples give the documented results with few steps, and their functions agree with the mathematics."""

from pathlib import Path

import numpy as np
import pytest

import retrograd as rg
from retrograd.core import registry
from retrograd.nested import nested_tensor

from ..example_scripts import imported

FOLDER = Path(__file__).parents[2] / "examples"
NEEDS = {
    "bilevel": ("scipy",),
    "gaussian_process": ("scipy",),
    "digits": ("sklearn",),
    "graph_convolution": ("scipy", "sklearn"),
    "kalman": ("scipy",),
    "poisson": ("scipy",),
    "predators": ("scipy",),
}


@pytest.fixture(scope="module")
def script():
    """Import an example as a module, by its name; its operators are removed after the tests."""
    loaded = {}

    def load(name):
        for package in NEEDS.get(name, ()):
            pytest.importorskip(package)
        if name not in loaded:
            loaded[name] = imported(name)
        return loaded[name]

    yield load
    for name in [name for name in registry if name.startswith("examples::")]:
        del registry[name]


def near_the_posterior(found, module):
    mean, variance = module.exact_moments()
    np.testing.assert_allclose(found["mean"], mean, atol=0.06)
    np.testing.assert_allclose(found["variance"], variance, rtol=0.6)


def near_quadrature(found, module):
    mean, variance = module.quadrature()[:2]
    np.testing.assert_allclose(found["mean"], mean, atol=1.5)
    np.testing.assert_allclose(found["deviation"], np.sqrt(variance), rtol=0.5)


# Options with which an example is quick, and the expected results.
FAST = {
    "bilevel": (
        {"features": 8, "useful": 2, "count": 120, "rounds": 12},
        lambda found, _: found["after"] < found["before"] and found["useful"] < found["others"],
    ),
    "burgers": ({"points": 150, "width": 6, "steps": 40}, lambda error, _: error < 0.4),
    "digits": ({"epochs": 3, "width": 8}, lambda accuracy, _: accuracy > 0.7),
    "equilibrium": ({"steps": 25, "size": 8}, lambda found, _: found["right"] > 0.6 and found["difference"] < 1e-12),
    "gaussian_process": (
        {"count": 40, "probes": 60},
        lambda found, _: np.allclose(found["exact"], found["estimate"], atol=0.3) and 0.1 < found["noise"][0] < 0.25,
    ),
    "graph_convolution": (
        {"epochs": 30, "width": 16},
        lambda found, _: found["with the graph"] > max(0.7, found["without"]),
    ),
    "hamiltonian": ({"chains": 100, "steps": 20}, near_the_posterior),
    "kalman": ({}, lambda found, _: 0 < found["variances"][1] < found["variances"][0]),
    "latent_ode": (
        {"count": 60, "steps": 160},
        lambda found, _: found["first"] / 5 < found["last"] and found["inside"] < 0.8,
    ),
    "normalizing_flow": (
        {"steps": 60, "count": 64},
        lambda found, _: found["normal"] < found["flow"] - 0.5 and found["flow"] < 0.05,
    ),
    "nuts": ({"chains": 2, "samples": 120, "warmup": 80}, near_quadrature),
    "particle_filter": (
        {"count": 20, "particles": 30, "samples": 10, "warmup": 10},
        lambda found, _: 0.5 < found["mean"][0] < 1 and 0.02 < found["mean"][1] < 1,
    ),
    "poisson": (
        {"n": 10, "iterations": 60},
        lambda found, module: found["error"] < 0.2 and abs(found["middle"] - module.exact_series()) < 1e-3,
    ),
    "predators": ({"count": 12}, lambda found, _: np.allclose(found["rates"], [0.55, 0.028, 0.8, 0.024], rtol=0.4)),
    "variational_inference": (
        {"steps": 300, "count": 16},
        lambda found, _: (
            found["independent bound"] < found["joint bound"] < found["evidence"] + 0.05
            and found["independent deviation"][0] < 1 < found["joint deviation"][0]
        ),
    ),
    # After two steps, letters are little better than drawn; Python's manual, and its letters, depend on the version.
    "tiny_gpt": (
        {"steps": 2, "width": 8, "length": 2},
        lambda found, module: found[0] < 1.15 * np.log2(len(module.LETTERS)),
    ),
}
SHORT = {"kalman": ("series", "NILE", 30), "tiny_gpt": ("manual", "TEXT", 3000)}  # argument, and the start of its data


@pytest.mark.parametrize("name", FAST)
def test_an_example_runs_finds_what_it_should_and_draws_a_picture(name, script, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    module, (options, right) = script(name), FAST[name]
    if name in SHORT:
        argument, data, length = SHORT[name]
        options = options | {argument: getattr(module, data)[:length]}
    found = module.main(**options, picture=tmp_path / "picture.png")
    assert right(found, module) in (True, None), found
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out
    assert f"python examples/{name}.py" in module.__doc__


def test_a_text_that_is_written_with_the_cache_is_the_one_without_beyond_the_context_too(script, monkeypatch):
    module = script("tiny_gpt")
    monkeypatch.setattr(module, "CONTEXT", 8)
    model, texts = module.GPT(8), []
    for cached in (False, True):
        rg.manual_seed(0)
        texts.append(module.generate_text(model, "for", 20, cached))
    assert len(texts[0]) == 23
    assert texts[0] == texts[1]


def test_counts_of_pairs_give_the_entropy_of_a_text_that_alternates(script):
    module = script("tiny_gpt")
    text = module.numbers("aab" * 1000).numpy()  # after b comes a, after a one of both
    assert module.ngram_bits(text, text, 1) == pytest.approx(2 / 3, rel=1e-2)


def test_the_residual_of_a_wave_is_that_of_differences(script):
    module = script("burgers")
    rg.manual_seed(0)
    wave, h = module.Wave(6), 1e-4
    t, x = rg.rand(5, dtype=rg.float64), 2 * rg.rand(5, dtype=rg.float64) - 1
    with rg.no_grad():
        u, u_t = wave(t, x), (wave(t + h, x) - wave(t - h, x)) / (2 * h)
        right, left = wave(t, x + h), wave(t, x - h)
    expected = u_t + u * (right - left) / (2 * h) - module.VISCOSITY * (right - 2 * u + left) / h**2
    found = rg.func.vmap(lambda t, x: module.residual(wave, dict(wave.named_parameters()), t, x))(t, x)
    np.testing.assert_allclose(found.detach().numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


def test_a_latent_series_is_encoded_as_alone_and_decoded_on_its_path(script):
    module = script("latent_ode")
    rg.manual_seed(0)
    model, data = module.LatentODE(16), module.observe(5, 0)
    single = module.Series(*[nested_tensor([part[3]], layout=rg.jagged) for part in data[:2]], data.starts[:, 3:4])
    posterior = model.encode(data)
    np.testing.assert_allclose(model.encode(single).mean.detach(), posterior.mean[3:4].detach(), rtol=1e-4, atol=1e-6)
    times = single.times.values()
    path = model.path(posterior.mean[3:4], rg.cat([rg.zeros(1), times]))
    expected = model.decoder(path[1:, 0])
    np.testing.assert_allclose(
        model.decode(posterior.mean[3:4], single.times).detach(), expected.detach(), rtol=1e-3, atol=1e-4
    )


def test_a_weight_without_fixed_point_is_refused(script):
    with pytest.raises(RuntimeError, match="no fixed point in 1000 rounds"):
        script("equilibrium").equilibrium(rg.tensor([[0.0, -9.0], [9.0, 0.0]]), rg.ones(1, 2))


def test_the_sampler_finds_a_normal_distribution_and_its_trajectories_run_backwards(script):
    module = script("nuts")
    spread = rg.tensor([0.5, 2.0], dtype=rg.float64)
    sampler = module.NoUTurn(lambda x: -0.5 * ((x - 1) / spread).square().sum(), 2, 0)
    samples = sampler.run(np.zeros(2), 400, 200)
    np.testing.assert_allclose(samples.mean(0), [1, 1], atol=0.4)
    np.testing.assert_allclose(samples.std(0), [0.5, 2.0], rtol=0.3)
    state = module.State(np.array([0.2, 0.7]), np.array([1.0, -0.5]), np.array([3.2, 0.075]), 0.0)
    back = sampler.leap(sampler.leap(state, 0.1), -0.1)
    np.testing.assert_allclose(back.x, state.x, atol=1e-12)
    np.testing.assert_allclose(back.momentum, state.momentum, atol=1e-12)


def test_the_posterior_of_damaged_rings_is_that_of_the_literature(script):
    module = script("variational_inference")
    a, b, density, _ = module.grid()
    assert (density.sum() * (a[0, 1] - a[0, 0]) * (b[1, 0] - b[0, 0])).item() == pytest.approx(1)
    flat = rg.distributions.MultivariateNormal(rg.zeros(2, dtype=rg.float64), 1e6 * rg.eye(2, dtype=rg.float64))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "prior", lambda: flat)
        a, b, density, _ = module.grid()
    best = np.unravel_index(density.argmax(), density.shape)
    # The maximum of the likelihood is at 15.04 - 0.232 t (Dalal, Fowlkes and Hoadley, 1989).
    assert a[best] == pytest.approx(15.04 - 0.2322 * 31, abs=0.1)
    assert b[best] == pytest.approx(-2.322, abs=0.05)


def test_the_posterior_is_known_as_quadrature_finds_it(script):
    module = script("hamiltonian")
    axes = [np.linspace(*ends, 41) for ends in ((-1.2, 1.8), (-0.8, 2.9), (-3.5, 1.8))]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    density = np.exp(rg.func.vmap(module.log_density)(rg.tensor(grid)).numpy())
    grid[:, 2] = np.exp(grid[:, 2])
    mean = density @ grid / density.sum()
    for found, expected in zip(
        (mean, density @ (grid - mean) ** 2 / density.sum()), module.exact_moments(), strict=True
    ):
        np.testing.assert_allclose(expected, found, rtol=0.02)


def nile(script, count=12):
    """Return the local level model as a normal distribution: logarithms, series, covariances of level and series."""
    module = script("kalman")
    year = np.arange(count)
    level = 1e7 + 1500.0 * np.minimum.outer(year, year)
    return module, np.log([15000.0, 1500.0]), module.NILE[:count], level, level + 15000 * np.eye(count)


def test_the_filter_gives_the_likelihood_of_the_normal_distribution(script):
    module, logarithms, series, _, whole = nile(script)
    expected = -0.5 * (
        len(series) * np.log(2 * np.pi) + np.linalg.slogdet(whole)[1] + series @ np.linalg.solve(whole, series)
    )
    assert module.wandering_level(logarithms, series) == pytest.approx(expected, rel=1e-9)


def test_the_smoother_gives_the_level_under_the_condition_of_the_series(script):
    module, logarithms, series, level, whole = nile(script)
    found, deviation = module.smooth(logarithms, series)
    np.testing.assert_allclose(found, level @ np.linalg.solve(whole, series), rtol=1e-6)
    np.testing.assert_allclose(deviation**2, np.diag(level - level @ np.linalg.solve(whole, level)), rtol=1e-4)


def test_the_variances_of_the_literature_are_where_the_likelihood_of_the_nile_is_greatest(script):
    module = script("kalman")
    slope = rg.grad(module.wandering_level)(np.log([15099, 1469.1]), module.NILE)
    np.testing.assert_allclose(slope, 0, atol=2e-3)


def test_the_elements_give_the_stencil_of_five_points_and_the_gradient_of_the_temperatures(script):
    plate = script("poisson").Plate(4)
    conductivity = rg.ones(len(plate.triangles), dtype=rg.float64, requires_grad=True)
    size = len(plate._load)
    matrix = rg.sparse_coo_tensor(
        plate._indices, conductivity[plate._owner] * plate._stiffness, (size, size)
    ).to_dense()
    grid = np.arange(size).reshape(3, 3)
    steps = np.abs(np.subtract.outer(grid // 3, grid // 3)) + np.abs(np.subtract.outer(grid % 3, grid % 3))
    expected = np.select([steps == 0, steps == 1], [4.0, -1.0], 0.0).reshape(size, size)
    np.testing.assert_allclose(matrix.detach().numpy(), expected, atol=1e-12)
    assert rg.autograd.gradcheck(plate.solve, (conductivity,))


def test_the_normalized_adjacency_has_the_largest_eigenvalue_one(script):
    points = np.random.default_rng(0).standard_normal((30, 2))
    adjacency = script("graph_convolution").neighbour_graph(points, 3).to_dense().numpy()
    np.testing.assert_allclose(adjacency, adjacency.T, rtol=1e-6)
    assert np.linalg.eigvalsh(adjacency).max() == pytest.approx(1, abs=1e-5)


def test_no_u_turn_samples_have_the_moments_of_a_normal_distribution(script):
    scale = np.array([1.0, 3.0])
    sampler = script("particle_filter").NoUTurn(lambda x: (-0.5 * float(x / scale @ (x / scale)), -x / scale**2), 0)
    samples = sampler.run(np.zeros(2), 1500, 200)
    np.testing.assert_allclose(samples.mean(0), 0, atol=0.3)
    np.testing.assert_allclose(samples.std(0), scale, rtol=0.1)


def test_the_particle_filter_is_near_the_likelihood_by_quadrature(script):
    module = script("particle_filter")
    series = module.simulate(8)
    grid = np.linspace(-4, 4, 801)
    persistence, deviation = 0.9, 0.4
    normal = lambda x, s: np.exp(-0.5 * (x / s) ** 2) / (s * np.sqrt(2 * np.pi))  # noqa: E731
    prior, total = normal(grid, deviation / np.sqrt(1 - persistence**2)), 0.0
    for y in series:
        joint = prior * normal(y, np.exp(grid / 2)) * (grid[1] - grid[0])
        total += np.log(joint.sum())
        prior = normal(grid[:, None] - persistence * grid, deviation) @ (joint / joint.sum())
    rg.manual_seed(0)
    p = rg.tensor([np.arctanh(persistence), np.log(deviation)])
    found = module.log_likelihood(p, rg.tensor(series), rg.randn(8, 4000, dtype=rg.float64), rg.rand(8))
    assert found.item() == pytest.approx(total, abs=0.1)
