"""Utilities around training do what PyTorch's do: tables of measurements, exchanged tensors, collating, versions."""

import itertools
import operator
import weakref

import numpy as np
import pytest
import torch
from torch.utils import benchmark as their_benchmark

import retrograd as rg
from retrograd.torch_alias.torch_version import TorchVersion
from retrograd.utils import benchmark

SPECS = {benchmark: benchmark.TaskSpec, their_benchmark: their_benchmark.TaskSpec}


def measurements(m, environments):
    tasks = itertools.product(["add", "mul"], ["64", "1024", None], ["eager", "compiled"], [1, 4])
    for i, (label, sub_label, description, threads) in enumerate(tasks):
        if i == 7:
            continue  # a cell without a measurement
        spread = 0.4 if i % 5 == 0 else 0
        times = [1e-6 * (1 + i) ** 2 * (1 + 0.01 * (j * 7 % 5) + spread * (j % 3)) for j in range(9)]
        labels = {"label": label, "sub_label": sub_label, "description": description, "num_threads": threads}
        env = ("main" if i % 2 else "branch") if environments else None
        yield m.Measurement(10, [10 * t for t in times], SPECS[m](stmt="f(x)", setup="pass", env=env, **labels))


@pytest.mark.parametrize("environments", [False, True])
@pytest.mark.parametrize(
    "settings",
    [
        (),
        ("trim_significant_figures",),
        ("colorize",),
        ("highlight_warnings",),
        ("trim_significant_figures", "colorize"),
    ],
    ids=" ".join,
)
def test_a_table_of_measurements_is_pytorchs(settings, environments):
    tables = [m.Compare(list(measurements(m, environments))) for m in (benchmark, their_benchmark)]
    for table in tables:
        for name in settings:
            getattr(table, name)()
    assert str(tables[0]) == str(tables[1])
    merged = [
        m.Measurement.merge([*measurements(m, False), *measurements(m, False)]) for m in (benchmark, their_benchmark)
    ]
    assert [m.significant_figures for m in merged[0]] == [m.significant_figures for m in merged[1]]


def swapped(m):
    first, second = m.nn.Parameter(m.ones(2)), m.nn.Parameter(m.arange(3.0), requires_grad=False)
    first.register_hook(lambda g: g * 2)
    (first * 3).sum().backward()
    first.note = "a"
    optimizer = m.optim.SGD([first], lr=0.5)
    m.utils.swap_tensors(first, second)
    grads = [None if x.grad is None else x.grad.tolist() for x in (first, second)]
    (second * 3).sum().backward()
    states = [(x.tolist(), x.requires_grad, hasattr(x, "note")) for x in (first, second)]
    return grads, states, second.grad.tolist(), optimizer.param_groups[0]["params"][0] is first


def test_swapped_tensors_are_each_other():
    assert swapped(rg) == swapped(torch)


def test_a_swapped_tensor_keeps_its_attributes_after_the_other_is_gone():
    a, b = rg.ones(1), rg.zeros(2)
    b.note = [1]
    rg.utils.swap_tensors(a, b)
    other = weakref.ref(b)
    del b
    assert (other(), a.note, a.tolist()) == (None, [1], [0, 0])
    with pytest.raises(TypeError, match="expected two tensors, got int"):
        rg.utils.swap_tensors(a, 3)
    with pytest.raises(TypeError, match=r"a Tensor and a Parameter; make both parameters first"):
        rg.utils.swap_tensors(a, rg.nn.Parameter(a))


class Points:
    def __init__(self, rows):
        self.rows = rows


def collated(m):
    collate = m.utils.data._utils.collate
    before = dict(collate.default_collate_fn_map)
    examples = [(Points([1]), np.ones(2), "a"), (Points([2]), np.zeros(2), "b")]

    def points(batch, *, collate_fn_map=None):
        return [point.rows for point in batch]

    with pytest.raises(TypeError):
        m.utils.data.default_collate(examples)
    once = collate.collate(examples, collate_fn_map={**before, Points: points})
    collate.default_collate_fn_map.update({Points: points})
    try:
        loader = m.utils.data.DataLoader(examples, batch_size=2)
        found = [m.utils.data.default_collate(examples), *loader, once]
    finally:
        del collate.default_collate_fn_map[Points]
    return [(rows, x.tolist(), list(names)) for rows, x, names in found]


def test_functions_that_collate_further_classes_are_used():
    assert collated(rg) == collated(torch)


VERSIONS = ["2.13", "2.13.0", "2.9", "2.13.1", "2.13.0a0", "2.13.0.dev20260101", "3", (2, 13), (2, 9, 1), "2.13.0+cpu"]


@pytest.mark.parametrize("compare", [operator.eq, operator.lt, operator.le, operator.gt, operator.ge])
def test_versions_compare_as_pytorchs(compare):
    def answers(kind):
        return [compare(kind(v), other) for v in VERSIONS if isinstance(v, str) for other in VERSIONS]

    assert answers(TorchVersion) == answers(torch.torch_version.TorchVersion)


def autocast_names(m):
    found = [m.is_autocast_cpu_enabled(), m.get_autocast_cpu_dtype() == m.bfloat16]
    with m.autocast("cpu", dtype=m.bfloat16):
        found.append(m.is_autocast_cpu_enabled())
    m.set_autocast_cpu_dtype(m.float16)
    found.append(m.get_autocast_cpu_dtype() == m.float16)
    m.set_autocast_cpu_dtype(m.bfloat16)
    return [*found, m.get_autocast_gpu_dtype() == m.float16, m.legacy_contiguous_format is m.contiguous_format]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_older_names_of_autocast_are_there():
    assert autocast_names(rg) == autocast_names(torch)
