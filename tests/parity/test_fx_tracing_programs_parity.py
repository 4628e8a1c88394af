"""Programs in the manner of torch.fx's documentation that are traced: graphs, code and errors are PyTorch's."""

import copy
import pickle
import warnings

import pytest
import torch

import retrograd as rg

from .graph_texts import code_text, failing, fx, graph_text, net, report, trace
from .programs import assert_same, data


def outside(x, k):
    return x * k if k else x


for _m in (rg, torch):
    fx(_m).wrap("outside")
    fx(_m).wrap("len")


def copied_program(a):
    return {"r": a["v"][0] + a["v"][1]}


def wrapped(m):
    return report(m, trace(m, lambda x: outside(x, 2) + len(x)), (m.ones(2),))


def control_flow(m):
    def branch(x):
        return x if x.sum() > 0 else -x

    def loop(x):
        return list(iter(x))

    def starred(x):
        return m.cat([*x])

    def ranged(x):
        return sum(range(x.shape[0]))

    def length(x):
        return len(x)

    def contained(x):
        return 3 in x

    def keyed(x):
        return dict(**x)

    return [
        failing(lambda: trace(m, branch), "symbolically traced variables cannot be used as inputs to control flow"),
        failing(lambda: trace(m, loop), "Proxy object cannot be iterated"),
        failing(lambda: trace(m, starred), "Proxy object cannot be iterated"),
        failing(lambda: trace(m, ranged), ""),
        failing(lambda: trace(m, length), "'len' is not supported in symbolic tracing by default"),
        failing(lambda: trace(m, contained), ""),
        failing(lambda: trace(m, keyed), ""),
    ]


def static_control_flow(m):
    class Mode(m.nn.Module):
        def __init__(self, double):
            super().__init__()
            self.double = double

        def forward(self, x):
            return x * 2 if self.double else x + 1

    return [report(m, trace(m, Mode(double)), (m.ones(2),)) for double in (True, False)]


def specialized(m):
    def f(x, flag, k=None):
        x = x + 1 if flag else x - 1
        return x if k is None else x * k

    return [
        report(m, trace(m, f, concrete_args=given), *calls)
        for given, calls in (
            ({"flag": True}, [(m.ones(2), True, 3.0), (m.ones(2), False, 3.0), (m.ones(2),)]),
            ({"flag": False, "k": 2}, [(m.ones(2), False, 2), (m.ones(2), False, 3), (m.ones(2), False)]),
            ({"flag": "yes", "k": None}, [(m.ones(2), "yes", None), (m.ones(2), "yes"), (m.ones(2), "yes", 2)]),
            ({"flag": 1.5, "k": fx(m).PH}, [(m.ones(2), 1.5, 3), (m.ones(2), 2.5, 3)]),
        )
    ]


def specialized_trees(m):
    def f(a, b, c):
        total = a["v"][0] + a["v"][1] * b[1]
        return {"total": total, "both": (total, b[0])} if c else total

    P = fx(m).PH
    return [
        report(m, trace(m, f, concrete_args=given), *calls)
        for given, calls in (
            (
                {"a": {"v": [P, P]}, "b": (P, P), "c": True},
                [({"v": [1, 2]}, (3, 4), True), ({"v": [1, 2]}, (3, 4), False)],
            ),
            (
                {"a": {"v": [P, P]}, "b": (7, P), "c": True},
                [({"v": [1, 2]}, (7, 4), True), ({"v": [1, 2]}, (3, 4), True)],
            ),
            ({"a": {"v": [P, 3]}, "b": (P, 2), "c": False}, [({"v": [1, 3]}, (3, 2), False)]),
        )
    ]


def copied_trees(m):
    P = fx(m).PH
    module = trace(m, copied_program, concrete_args={"a": {"v": [P, P]}})
    loaded = pickle.loads(pickle.dumps(module))
    return [report(m, g, ({"v": [1, 2]},)) for g in (copy.deepcopy(module), trace(m, module))], loaded({"v": [1, 2]})


def constants(m):
    def f(x):
        return x + m.ones(2), [1, "a", None], {"k": 2.5}, x.size(), x.dtype

    return report(m, trace(m, f))


def repeated_constants(m):
    c = m.tensor([1.0, 2.0])
    return report(m, trace(m, lambda x: x * c + c + m.tensor([3.0])), (m.ones(2),))


def in_place(m):
    def f(x):
        y = x + 1
        z = y.mul_(3)
        return y.add_(z)

    return [report(m, trace(m, g), (m.ones(2),)) for g in (f, lambda x: x.add_(1))]


def operators(m):
    def f(a, b):
        return (
            a - b,
            a @ b,
            a // 2,
            a % 2,
            a**2,
            2**a,
            1 - a,
            3 / a,
            -a,
            a > b,
            a == 1,
            a != b,
            a <= 2,
            abs(a),
            ~(a > 1),
            a[0],
            a[..., 1:],
            a[None],
            (a > 1) & (b > 1),
            (a > 1) | (b < 1),
            (a > 1) ^ (b > 0),
        )

    return report(m, trace(m, f), (m.ones(2, 2), 2 * m.ones(2, 2)))


def attributes(m):
    def f(x):
        return x.shape[0] + x.ndim, x.T, x.dtype, x.is_cuda, x.real

    return report(m, trace(m, f))


def nested_modules(m):
    model = m.nn.Sequential(m.nn.Sequential(m.nn.ReLU(), m.nn.Tanh()), m.nn.ModuleDict({"a": m.nn.ReLU()})["a"])
    module = trace(m, model)
    return report(m, module, (m.ones(2),)), [n for n, _ in module.named_modules()]


def keyword_arguments(m):
    def f(x, *, scale=2.0, **others):
        return x * scale

    def g(x, *rest, k: int = 3):
        return x * k

    return [report(m, trace(m, f), (m.ones(1),)), report(m, trace(m, g), (m.ones(1),))]


def annotations(m):
    def f(x: m.Tensor, n: int = 2) -> m.Tensor:
        return x * n

    module = trace(m, f)
    return [str(n.type).rpartition(".")[2] for n in module.graph.nodes], data(module(m.ones(1)))


def retraced(m):
    module = trace(m, net(m))
    again = trace(m, module)
    return report(m, again, (m.ones(3, 4),)), [n for n, _ in again.named_parameters()]


def proxies(m):
    seen = []

    def f(x):
        y = x.relu().neg
        seen.append([type(x).__name__, repr(x), repr(x + 1), str(x.foo), type(x.foo).__name__])
        return y()

    module = trace(m, f)
    return seen, graph_text(module.graph)


def class_names(m):
    module = trace(m, net(m))
    function = trace(m, copied_program, concrete_args={"a": {"v": [1, 2]}})
    return (
        type(module).__name__ if m is torch else module._get_name(),
        str(module).split("\n")[:3],
        (type(function).__name__ if m is torch else function._get_name()),
    )


def conv_net(m):
    class Conv(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.pool = m.nn.Conv2d(1, 2, 3), m.nn.MaxPool2d(2)
            self.fc = m.nn.Linear(8, 3)

        def forward(self, x):
            x = self.pool(m.relu(self.conv(x)))
            return self.fc(m.flatten(x, start_dim=1)).softmax(dim=1)

    module = trace(m, Conv())
    return graph_text(module.graph), code_text(module)


PROGRAMS = {f.__name__.replace("_", " "): f for f in (
    wrapped, control_flow, static_control_flow, specialized, specialized_trees, copied_trees, constants,
    repeated_constants, in_place, operators, attributes, nested_modules, keyword_arguments, annotations,
    retraced, proxies, class_names, conv_net,
)}  # fmt: skip


def test_the_code_generator_of_nested_arguments_has_pytorchs_names():
    for m in (rg, torch):
        codegen = trace(m, copied_program, concrete_args={"a": {"v": [1, 2]}}).graph._codegen
        assert isinstance(codegen, fx(m, "graph")._PyTreeCodeGen)
        assert isinstance(codegen.pytree_info, fx(m, "graph")._PyTreeInfo)
        assert [name for name in codegen.pytree_info.orig_args if name != "self"] == ["a"]
        assert codegen.pytree_info.in_spec.num_leaves == 2


@pytest.mark.parametrize("name", PROGRAMS)
def test_traced_programs(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine, peer = (PROGRAMS[name](m) for m in (rg, torch))
    assert_same(mine, peer)
