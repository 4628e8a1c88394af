"""Scripts as users of `torch.compile` write them give the eager results, and run by programs where they can."""

import warnings

import pytest

import retrograd as rg

from .comparison import observe
from .scripts import RUN_EAGERLY, SCRIPTS, eager


class Compiler:
    """`rg.compile`, with the functions that it has returned."""

    def __init__(self):
        self.made = []

    def __call__(self, model=None, **settings):
        if model is None:
            return lambda function: self(function, **settings)
        self.made.append(rg.compile(model, **settings))
        return self.made[-1]

    def programs(self):
        """Return the number of programs of each function."""
        return [len(getattr(f, "_compiled_call", f).programs) for f in self.made]


def result(script, compile):
    """Return what is observed of a script."""
    rg.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        return observe(script(compile))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_a_script_gives_the_eager_results(script, capsys):
    compiler = Compiler()
    assert result(script, compiler) == result(script, eager)
    for count in compiler.programs():
        assert (count == 0) is (script in RUN_EAGERLY)
