"""Stages follow their device: graphs contain no device."""

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.core import Definition, op, registry
from retrograd.pipelining import pipe_split, pipeline
from retrograd.pipelining.split.devices import nodes_with_device


class Making(nn.Module):
    """A model that creates tensors in forward, some with a device, in a submodule too."""

    class Inner(nn.Module):
        def forward(self, x):
            return x + rg.zeros(3, device=x.device) + rg.rand(3, device="cpu") * 0

    def __init__(self):
        super().__init__()
        self.inner = self.Inner()

    def forward(self, x):
        x = self.inner(x) + rg.ones(3, device=rg.device("cpu")).to(x.device)
        pipe_split()
        return self.inner(x) * rg.full((3,), 2.0) + rg.tensor([1.0, 2.0, 3.0], device="cpu")


def test_no_graph_names_a_device_though_the_code_does():
    pipe = pipeline(Making(), (rg.ones(3),))
    factories = [n.target.name for i in range(2) for n in pipe.get_stage_module(i).graph.nodes if n.op != "output"
                 and not n.args and n.op == "call_function"]  # fmt: skip
    assert set(factories) >= {"ones", "zeros", "rand", "full"}
    assert [nodes_with_device(pipe.get_stage_module(i).graph) for i in range(2)] == [[], []]


def test_a_stage_on_a_device_computes_the_same():
    pipe, x = pipeline(Making(), (rg.ones(3),)), rg.tensor([1.0, 2.0, 4.0])
    values = {"x": x}
    for stage in [pipe.build_stage(i, rg.device("cpu")) for i in range(2)]:
        values = dict(zip(stage.outputs, stage.submod(*[values[v.name] for v in stage.inputs]), strict=True))
    assert [v.tolist() for v in values.values()] == [((x + 1) * 2 + rg.tensor([1.0, 2.0, 3.0])).tolist()]


def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(RuntimeError, match="live on the CPU, got 'cuda:1'"):
        pipeline(Making(), (rg.ones(3),)).build_stage(0, "cuda:1")


def test_an_operator_that_names_a_device_is_refused():
    @op("made_there(Tensor x, *, any where) -> Tensor")
    class made_there(Definition, differentiable=False):
        def impl(xp, x, *, where):
            return x

        def shape(x, *, where):
            return x

    try:
        pipe = pipeline(nn.Sequential(), (rg.ones(3),))
        captured = rg.fx.trace(lambda x: made_there(x, where=rg.device("cpu")), rg.ones(3))
        assert nodes_with_device(captured.graph) == ["made_there"]
        pipe.stages[0].submod = captured
        with pytest.raises(RuntimeError, match="made_there would stay on a device"):
            pipe.build_stage(0)
    finally:
        del registry["made_there"]
