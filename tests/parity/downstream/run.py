"""Run a program that uses a library and write its results to a file: `run.py PROGRAM FILE` on HIPS autograd, and with
`retrograd` as third argument on retrograd, which is then imported under the name autograd."""

import importlib
import sys
import warnings

import numpy as np


def main(program, file, engine="autograd"):
    if engine == "retrograd":
        importlib.import_module("retrograd.hips").install()
    warnings.simplefilter("ignore")  # what these libraries say of pandas and of fits that don't matter here
    answers = importlib.import_module(program).answers()
    assert importlib.import_module("autograd").__name__ == {"retrograd": "retrograd.hips"}.get(engine, "autograd")
    np.savez(file, **answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
