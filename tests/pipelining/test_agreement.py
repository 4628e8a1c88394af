"""Ranks that do not run the same program on the same data all end with one error, which says what differs."""

import functools
import importlib.util
import itertools
import json
import os
import subprocess
import sys
import threading

import pytest

import retrograd as rg
from retrograd.pipelining import pipeline_trainer
from retrograd.pipelining.runtime import agreement
from retrograd.pipelining.runtime.agreement import _checksum, describe_function
from retrograd.pipelining.transports.fingerprint import differing_fields

from . import disagreements
from .disagreements import CASES, NEEDS_PROCESSES, ODD, RANKS, Settings, outcome
from .rank_threads import outcomes_of_ranks


def check(outcomes, said):
    """Require that all ranks have raised the same error, which names the difference and the rank."""
    assert {name for name, _ in outcomes} == {"RankMismatchError"}, outcomes
    (text,) = {text for _, text in outcomes}
    assert said in text
    assert f"on rank {ODD}" in text


@pytest.fixture
def on_threads(monkeypatch):
    """Let each thread be a rank of its own, as a process is."""
    here = threading.local()
    monkeypatch.setattr(pipeline_trainer, "get_transport", lambda name, timeout: here.transport)

    def play(changes):
        def script(rank, group):
            here.transport = group.transport
            return outcome(rank, changes, Settings(dropout=0.0))

        return outcomes_of_ranks(RANKS, script)

    return play


@pytest.mark.parametrize("case", [case for case in CASES if case not in NEEDS_PROCESSES])
def test_a_difference_between_the_ranks_ends_all_of_them(on_threads, case):
    changes, said = CASES[case]
    check(on_threads(changes), said)


def test_equal_ranks_train(on_threads):
    assert {name for name, _ in on_threads({})} == {"nothing"}


def test_ranks_with_other_versions_do_not_train(on_threads, monkeypatch):
    numbers = itertools.count()
    monkeypatch.setattr(agreement, "library_versions", lambda: {"version of NumPy": next(numbers)})
    found = on_threads({})
    assert {name for name, _ in found} == {"RankMismatchError"}
    assert all("version of NumPy: " in text and "install the same versions" in text for _, text in found)


@pytest.mark.skipif("RETROGRAD_PURE" in os.environ, reason="the compiled pass has run it")
@pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="needs mpi4py")
def test_a_difference_between_processes_ends_all_of_them():
    command = [sys.executable, "-m", "retrograd", "run", "-n", str(RANKS), disagreements.__file__]
    by_rank = json.loads(subprocess.check_output(command, text=True))
    assert {found["no difference"][0] for found in by_rank} == {"nothing"}
    for case, (_, said) in CASES.items():
        check([tuple(found[case]) for found in by_rank], said)


def test_fields_of_one_rank_only_are_named_unless_something_before_them_differs():
    run = {"call": "step", "argument 0": "[8]", "stages": "2", "values": "1"}
    other = {"call": "step", "argument 0": "[8]", "work": "capture", "values": "1"}
    assert differing_fields([run, other]) == ["stages", "work"]
    assert differing_fields([run, {**other, "argument 0": "[6]", "values": "2"}]) == ["argument 0", "values"]
    assert differing_fields([run, {**other, "values": "2"}]) == ["stages", "values"]
    assert differing_fields([run, {"call": "predict"}]) == ["call"]


def scaled_loss(scale, weight):
    def loss(out, target, power=2, *, bias=scale - 1):
        return scale * weight * (out - target) ** power + bias

    return loss


LOSSES = {
    "module": lambda value: rg.nn.CrossEntropyLoss(label_smoothing=value),
    "weights of classes": lambda value: rg.nn.CrossEntropyLoss(weight=rg.tensor([1.0, value])),
    "partial": lambda value: functools.partial(rg.nn.functional.huber_loss, delta=value),
    "variable around it": lambda value: scaled_loss(1.0, value),
    "tensor around it": lambda value: scaled_loss(1.0, rg.tensor(value)),
    "default": lambda value: scaled_loss(value, 1.0),
}


@pytest.mark.parametrize("kind", LOSSES)
def test_a_function_is_described_with_the_values_that_it_holds(kind):
    make = LOSSES[kind]
    assert describe_function(make(0.5)) == describe_function(make(0.5)) != describe_function(make(0.25))


@pytest.mark.parametrize("columns", [3, 64, 509, 1021, 2 * 1021, 8 * 1021])
def test_the_checksum_of_a_batch_depends_on_the_order_of_its_rows_and_on_every_value(columns):
    x = rg.rand(600, columns)
    found = {_checksum([x]), _checksum([x.flip(0)]), _checksum([x.roll(1, 0)]), _checksum([x.roll(1, 1)])}
    x[-1, -1] += 1e-6
    found.add(_checksum([x]))
    assert len(found) == 5
    assert _checksum([x]) == _checksum([x.clone()])
