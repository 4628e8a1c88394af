"""Calls notice changes of what code reads without its name in the function: by the library's code, or of functions."""

import linecache
import warnings

import pytest

import retrograd as rg
from retrograd import nn

from .comparison import numbers, observe
from .test_replacements import check

BLOCK = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)
    def forward(self, x): return self.inner(x)
model = Block()
def f(x): return model(x).detach()
"""
HOOKS = {
    "register_forward_pre_hook": "lambda module, args: (args[0] + 0.5,)",
    "register_forward_hook": "lambda module, args, out: out * 2",
    "register_full_backward_pre_hook": "lambda module, grads: (grads[0] * 3,)",
    "register_full_backward_hook": "lambda module, grads, outs: (grads[0] * 3,)",
}
TRAINED = """
def f(x):
    x = x.detach().requires_grad_()
    return rg.autograd.grad(model(x).square().sum(), x)[0]
"""
CASES = {
    "the mean of a distribution of a class of its own": (
        "class Mine(rg.distributions.Normal): pass\nmine = Mine(rg.zeros(3), rg.ones(3))\n"
        "def f(x): return mine.log_prob(x)",
        "mine.loc = rg.ones(3)",
    ),
    "a setting of a layer of a class of its own": (
        "class Mine(nn.LeakyReLU): pass\nmine = Mine(0.1)\ndef f(x): return mine(x)",
        "mine.negative_slope = 0.5",
    ),
    "a member of a container of a class of its own": (
        "class Mine(nn.ModuleDict):\n    def forward(self, x):\n        for one in self.values(): x = one(x)\n"
        "        return x\nmine = Mine({'a': nn.Tanh()})\ndef f(x): return mine(x)",
        "mine['a'] = nn.Sigmoid()",
    ),
    "a default of a function that is not called": (
        "def g(y, kept=[2.0]): pass\ndef f(x): return x * g.__defaults__[0][0]",
        "g.__defaults__[0][0] = 3.0",
    ),
    "a tensor that is a default of a function that is not called": (
        "def g(y, kept=[x]): pass\ndef f(x): return x * g.__defaults__[0][0]",
        "g.__defaults__[0][0] = rg.ones(2, 3)",
    ),
    "a keyword's default of a function that is not called": (
        "def g(*, kept=2.0): pass\ndef f(x): return x * g.__kwdefaults__['kept']",
        "g.__kwdefaults__['kept'] = 3.0",
    ),
    "the closure of a function that is not called": (
        "def make(k):\n    def g(): return k\n    def put(v):\n        nonlocal k\n        k = v\n    return g, put\n"
        "g, put = make(2.0)\ndef f(x): return x * g.__closure__[0].cell_contents",
        "put(3.0)",
    ),
}


def test_the_hooks_are_all_that_modules_have():
    found = {name for name in dir(nn.Module) if name.startswith("register_") and name.endswith("_hook")}
    of_states = {name for name in found if "state_dict" in name}
    assert found - of_states - {"register_backward_hook"} == {*HOOKS}


@pytest.mark.parametrize("use", [BLOCK, BLOCK + TRAINED], ids=["called", "trained"])
@pytest.mark.parametrize("name", HOOKS)
def test_calls_notice_the_first_hook_of_a_module_of_the_users(name, use, monkeypatch):
    check(use, f"model.{name}({HOOKS[name]})", monkeypatch)


@pytest.mark.parametrize("name", CASES)
def test_calls_notice_changes_of_what_the_code_does_not_name(name, monkeypatch):
    check(*CASES[name], monkeypatch)


DEFINITIONS = {
    "forward of the object": "model.forward = lambda x: x * 9",
    "forward of the class": "Block.forward = lambda self, x: x * 9",
    "the code of forward": "Block.forward.__code__ = (lambda self, x, scale=2.0: x * 9).__code__",
    "a default": "Block.forward.__defaults__ = (5.0,)",
}


@pytest.mark.parametrize("change", DEFINITIONS)
@pytest.mark.parametrize("use", [lambda model: model, lambda model: lambda x: model(x) * 1], ids=["whole", "inside"])
def test_functions_in_parts_notice_another_definition(change, use):
    code = (
        "class Block(nn.Module):\n    def forward(self, x, scale=2.0):\n        y = x.sin() * scale\n"
        "        print(y.sum().item(), end='')\n        return y.cos() + 1\nmodel = Block()\n"
    )
    file = "<defined anew>"
    linecache.cache[file] = len(code), None, code.splitlines(True), file
    names = {"nn": nn, "__name__": "scene"}
    exec(compile(code, file, "exec"), names)
    compiled, x = rg.compile(use(names["model"])), numbers(3)
    with warnings.catch_warnings(action="ignore"):
        for _ in range(5):
            assert observe(compiled(x)) == observe(names["model"](x) * 1)
        exec(DEFINITIONS[change], names)
        assert observe(compiled(x)) == observe(names["model"](x) * 1)
