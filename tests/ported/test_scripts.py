"""Training scripts written for PyTorch run after a change of their import statements alone."""

import ast
import math

import pytest

from . import harness


@pytest.mark.parametrize("name", harness.NAMES)
def test_a_script_trains_after_a_change_of_its_imports(name):
    pytest.importorskip("sklearn")
    found = harness.run(name)
    assert len(found.losses) >= 5
    assert all(math.isfinite(loss) for loss in found.losses), found.losses
    if found.losses_fall:
        assert min(found.losses[1:]) < found.losses[0], found.losses


@pytest.mark.parametrize(
    ("statement", "changed"),
    [
        ("import torch", "import retrograd as torch"),
        ("import torch.optim", "import retrograd.optim, retrograd as torch"),
        ("import torch.nn as nn", "import retrograd.nn as nn"),
        ("from torch.nn import Linear as L", "from retrograd.nn import Linear as L"),
        ("import torchvision, numpy as np", "import torchvision, numpy as np"),
        ("from .torch import x", "from .torch import x"),
        ("torch.nn.Linear(2, 3)", "torch.nn.Linear(2, 3)"),
    ],
)
def test_only_imports_of_the_package_change(statement, changed):
    assert ast.unparse(harness.Imports("retrograd").visit(ast.parse(statement))) == changed
