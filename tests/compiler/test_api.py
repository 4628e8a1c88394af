"""The functions of `rg.compiler` and the settings of `rg.compile`, by PyTorch's names."""

import copy
import pickle
import warnings

import pytest

import retrograd as rg
from retrograd import nn

from .comparison import numbers, observe, state_of


def model():
    rg.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def programs_of(module):
    return next(hook.function for hook in module._call_hooks.values() if hook.kind == "compiled").programs


def test_module_compile_compiles_the_calls_of_the_module_itself():
    eager, compiled = model(), model()
    compiled.compile(fullgraph=True)
    for seed in range(3):
        for module in (eager, compiled):
            module(numbers(5, 3, seed=seed)).sum().backward()
        assert state_of(compiled.parameters()) == state_of(eager.parameters())
    assert len(programs_of(compiled)) > 0
    assert [name for name, _ in compiled.named_parameters()] == [name for name, _ in eager.named_parameters()]


def test_a_compiled_module_runs_its_hooks_and_may_be_a_part_of_another_one():
    module = model()
    module[0].compile()
    module[0].register_forward_hook(lambda module, args, out: out * 2)
    plain = model()
    plain[0].register_forward_hook(lambda module, args, out: out * 2)
    for seed in range(3):
        assert observe(module(numbers(5, 3, seed=seed))) == observe(plain(numbers(5, 3, seed=seed)))
    assert len(programs_of(module[0])) > 0
    outer = rg.compile(module, fullgraph=True)
    assert observe(outer(numbers(5, 3))) == observe(plain(numbers(5, 3)))


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))])
def test_a_copy_of_a_compiled_module_is_compiled_with_its_own_parameters(duplicate):
    module = model()
    module.compile()
    module(numbers(5, 3))
    other = duplicate(module)
    with rg.no_grad():
        other[2].bias.zero_()
        other[2].weight.zero_()
        for _ in range(2):
            assert other(numbers(5, 3)).tolist() == [[0, 0]] * 5
    assert module(numbers(5, 3)).tolist() != [[0, 0]] * 5
    assert len(programs_of(other)) == 1


def test_compiling_again_replaces_the_settings():
    module = model()
    module.compile()
    module.compile(name="mine")
    assert len(module._call_hooks) == 1
    assert "mine" in repr(next(iter(module._call_hooks.values())).function)


def test_modes_options_and_backends():
    f = lambda x: x + 1  # noqa: E731
    for settings in ({"mode": "reduce-overhead"}, {"options": {"epilogue_fusion": True}}, {"backend": "inductor"}):
        assert rg.compile(f, dynamic=True, **settings)(rg.ones(1)).tolist() == [2]
    with pytest.raises(RuntimeError, match="Either mode or options can be specified"):
        rg.compile(f, mode="default", options={})
    with pytest.raises(RuntimeError, match="Unrecognized mode='fastest', should be one of: default"):
        rg.compile(f, mode="fastest")
    with pytest.raises(RuntimeError, match="Invalid backend: 'mine'"):
        rg.compile(f, backend="mine")
    with pytest.raises(RuntimeError, match="a function as backend"):
        rg.compile(f, backend=lambda graph, inputs: graph)
    assert rg.compile(mode="default")(f)(rg.ones(1)).tolist() == [2]


def test_the_limit_and_the_name_are_settings():
    compiled = rg.compile(lambda x, n: x * n, recompile_limit=2, name="product")
    for n in range(2):
        compiled(rg.ones(1), n)
    with pytest.warns(UserWarning, match="product runs eagerly: there are 2 programs already.*argument 1 changed"):
        compiled(rg.ones(1), 2)


def test_a_constant_result_is_read_once_for_each_program():
    calls = []

    @rg.compiler.assume_constant_result
    def factor():
        calls.append(1)
        return float(len(calls))

    compiled = rg.compile(lambda x: x * factor(), fullgraph=True)
    assert [compiled(rg.ones(n)).tolist() for n in (1, 1, 2, 1)] == [[1], [1], [2, 2], [1]]


def test_stances():
    compiled = rg.compile(lambda x: x * 2)
    compiled(rg.ones(2))
    with rg.compiler.set_stance("fail_on_recompile"):
        assert compiled(rg.ones(2)).tolist() == [2, 2]
        with pytest.raises(RuntimeError, match="no program for this call"):
            compiled(rg.ones(3))
    with rg.compiler.set_stance("eager_on_recompile"):
        assert compiled(rg.ones(3)).tolist() == [2, 2, 2]
    assert len(compiled.programs) == 1

    @rg.compiler.set_stance("force_eager")
    def run(n):
        return compiled(rg.ones(n))

    assert run(4).tolist() == [2] * 4
    assert len(compiled.programs) == 1
    assert compiled(rg.ones(3)).tolist() == [2, 2, 2]
    assert len(compiled.programs) == 2
    rg.compiler.set_stance("force_eager")
    try:
        compiled(rg.ones(5))
        assert len(compiled.programs) == 2
    finally:
        rg.compiler.set_stance("default")
    with pytest.raises(RuntimeError, match="invalid stance 'often'"):
        rg.compiler.set_stance("often")


def test_names_without_effect():
    assert rg.compiler.allow_in_graph([rg.sin, rg.cos]) == [rg.sin, rg.cos]
    with pytest.raises(TypeError, match="allow_in_graph: fn must be a function, got 3"):
        rg.compiler.allow_in_graph(3)
    region = rg.compiler.nested_compile_region()(lambda x: x * 2)
    compiled = rg.compile(lambda x: region(region(x)), fullgraph=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            rg.compiler.cudagraph_mark_step_begin()
            assert compiled(rg.ones(1)).tolist() == [4]
    assert rg.compiler.list_backends() == ["retrograd"]
    assert not rg.compiler.is_dynamo_compiling()
