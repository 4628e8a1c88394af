"""Unmodified libraries built on HIPS autograd give the same results on retrograd."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parent / "downstream"
# autograd-gamma takes some second derivatives by difference quotients, whose step is the third root of eps: a last bit
# of log-gamma becomes eps divided by that step.
DIFFERENCE_QUOTIENT = float(np.finfo(float).eps) ** (2 / 3)


def answers(program, file, *engine):
    """Return a program's results from a process of its own, because each process has only one module autograd."""
    subprocess.run([sys.executable, FOLDER / "run.py", program, file, *engine], check=True, timeout=300)
    return dict(np.load(file))


# Likelihoods are flat at their maximum: where an optimizer stops, the last digits of a gradient decide.
@pytest.mark.parametrize(
    ("program", "tolerance", "count"),
    [("gamma_slopes", 1e-12, 37), ("lifelines_fits", 1e-5, 64), ("pymanopt_solves", 1e-5, 34)],
)
def test_a_library_gives_the_same_answers_on_retrograd(program, tolerance, count, tmp_path):
    expected = answers(program, tmp_path / "autograd.npz", "autograd")
    found = answers(program, tmp_path / "retrograd.npz", "autograd", "retrograd")
    assert found.keys() == expected.keys()
    assert len(found) >= count
    for name, value in expected.items():
        absolute = DIFFERENCE_QUOTIENT if name.endswith(" twice") else tolerance * 1e-2
        np.testing.assert_allclose(found[name], value, rtol=tolerance, atol=absolute, err_msg=name)
