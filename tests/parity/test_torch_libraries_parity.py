"""Unmodified libraries built on PyTorch give the same results on retrograd, under `retrograd.torch_alias`."""

import numpy as np
import pytest

from .test_downstream_parity import answers

# Program -> relative tolerance (times the largest element), and the least number of compared results.
PROGRAMS = {
    "captum_attributions": (1e-12, 41),
    "skorch_fits": (1e-5, 66),  # training in single precision
    "entmax_crf_train": (1e-5, 100),
    "geoopt_manifolds": (1e-10, 131),
    "geometric_graphs": (1e-5, 180),
    "gpytorch_models": (1e-10, 320),
    "kornia_images": (1e-5, 93),
    "lightning_accelerate_fits": (1e-5, 18),
    "minimize_solves": (1e-6, 30),  # conjugate gradients are still on their way
    "opacus_training": (1e-5, 15),
    "peft_adapters": (1e-5, 178),
    "pyro_inference": (1e-5, 32),
    "pytorch_optimizer_steps": (1e-4, 1000),  # steps divide by roots of averages that are nearly zero
    "torchdiffeq_solves": (1e-6, 110),  # adaptive steps depend on the last bits of tiny error estimates
    "tensordict_modules": (1e-5, 52),
    "torchopt_meta": (1e-10, 54),
    "torchmetrics_values": (1e-6, 63),
    "torchrl_losses": (1e-5, 27),
    "transformers_models": (5e-6, 486),  # some of them compute in single precision
    "x_transformers_train": (5e-5, 1700),
    "zuko_flows": (1e-10, 200),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_library_gives_the_same_answers_on_retrograd(program, tmp_path):
    tolerance, count = PROGRAMS[program]
    expected = answers(program, tmp_path / "torch.npz", "torch")
    found = answers(program, tmp_path / "retrograd.npz", "torch", "retrograd")
    assert found.keys() == expected.keys()
    assert len(found) >= count
    for name, value in expected.items():
        scale = np.abs(value).max(initial=0.0) if value.dtype.kind in "fc" else 0.0
        np.testing.assert_allclose(found[name], value, rtol=0.0, atol=tolerance * scale, err_msg=name)


def test_compiled_steps_of_transformers_are_programs_with_the_eager_bits(tmp_path):
    found = answers("transformers_compiled", tmp_path / "compiled.npz", "torch", "retrograd")
    assert len(found) == 12
    assert {name: value.all() for name, value in found.items()} == dict.fromkeys(found, True)
