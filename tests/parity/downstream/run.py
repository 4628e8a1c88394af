"""Run a program that uses libraries and write its results to a file: `run.py PROGRAM FILE ENGINE`.

The engine is "autograd" or "torch"; with `retrograd` as fourth argument, retrograd is imported under that name.
"""

import importlib
import sys
import warnings

import numpy as np

INSTALLERS = {"autograd": "retrograd.hips", "torch": "retrograd.torch_alias"}


def main(program, file, engine, ours=None):
    if ours:
        importlib.import_module(INSTALLERS[engine]).install()
    warnings.simplefilter("ignore")  # what these libraries say of pandas, deprecated names and fits that don't matter
    answers = importlib.import_module(program).answers()
    function = sys.modules["torch"].nn.Linear if engine == "torch" else sys.modules["autograd"].grad
    assert function.__module__.startswith("retrograd") == bool(ours)
    np.savez(file, **answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
