"""Messages show values of users by their text, or arrays by shape and dtype: never the elements of an array."""

import ast
import io
import re
from pathlib import Path

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.foundation.describe_value import describe
from retrograd.utils.progress import progress

PACKAGE = Path(rg.__file__).parent
# Names of arguments that may be whatever the user has passed, arrays included.
VALUES = "value values given x t leaf out result results primals param_group number size unflattened_size num changed"
POSSIBLE = re.compile(rf"\{{\s*(?:{VALUES.replace(' ', '|')})\s*(?:=|!r)")
# Where such a name is that of a dimension, a text of a command line, or an object of the program itself.
TEXTS = {"distributed/device_mesh.py", "utils/data/loader.py", "fx/proxy.py", "cli", "ops/legacy.py"}


def raw_values(source):
    """Return the lines of `raise` that show a value by its repr. A source without such a value is not parsed."""
    for node in ast.walk(ast.parse(source)) if POSSIBLE.search(source) else ():
        if isinstance(node, ast.Raise):
            for part in ast.walk(node):
                is_repr = isinstance(part, ast.FormattedValue) and part.conversion == ord("r")
                if is_repr and ast.unparse(part.value) in VALUES.split():
                    yield part.lineno


def test_no_error_shows_the_repr_of_a_value_of_the_user():
    found = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in PACKAGE.rglob("*.py")
        if not TEXTS & {path.relative_to(PACKAGE).as_posix(), path.relative_to(PACKAGE).parts[0]}
        for line in raw_values(path.read_text())
    ]
    assert found == [], "show the value by foundation.describe_value.describe"


LARGE = rg.zeros(100, 100)
MISTAKES = {
    "a flag": lambda: rg.utils.data.RandomSampler([1], num_samples=LARGE),
    "a parameter group": lambda: rg.optim.SGD([{"param": [LARGE]}], lr=0.1),
    "primals": lambda: rg.func.jvp(rg.sin, [LARGE], (LARGE,)),
    "a learning rate": lambda: rg.optim.SGD([LARGE], lr=LARGE.numpy()),
    "an order": lambda: rg.linalg.vector_norm(LARGE, LARGE),
    "a number of threads": lambda: rg.set_num_threads(LARGE),
    "a size": lambda: nn.Unflatten(0, LARGE),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_an_error_shows_a_tensor_by_shape_and_dtype(name):
    with pytest.raises((TypeError, ValueError, RuntimeError), match=r"\(100, 100\)") as caught:
        MISTAKES[name]()
    assert "0., 0." not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_description_is_short_and_shows_numbers():
    assert describe([np.zeros((2, 3)), 1.5, "mean"]) == "[a ndarray of shape (2, 3) and float64, 1.5, 'mean']"
    assert describe(rg.tensor(2.0)) == "tensor(2.)"
    assert len(describe("x" * 1000)) <= 200
    assert len(describe(list(range(1000)))) < 40


def test_progress_shows_the_numbers_of_tensors():
    text = io.StringIO()
    with progress(1, "training", file=text) as bar:
        loss = rg.ones(1, requires_grad=True).sum() / 3
        bar.advance(loss=loss, norm=np.float32(2), best=np.array(0.25), grads=rg.ones(2, 3), epoch=rg.tensor(3))
    shown = "loss 0.3333  norm 2  best 0.25  grads a Tensor of shape (2, 3) and float32  epoch 3"
    assert text.getvalue() == f"training  100%  1/1  {shown}\n"
