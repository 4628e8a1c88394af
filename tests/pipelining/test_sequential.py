"""A sequence of modules as a pipeline with one stage each."""

import retrograd as rg
from retrograd import nn
from retrograd.pipelining import PipeSequential, pipeline


def test_there_is_a_boundary_between_every_two_modules():
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Linear(8, 2))
    split, x = PipeSequential.from_sequential(model), rg.randn(3, 4)
    assert split[0] is model[0]
    assert list(split.state_dict()) == list(model.state_dict())
    assert (split(x) - model(x)).abs().max().item() == 0
    pipe = pipeline(split, (x,))
    assert pipe.num_stages == 4
    assert (pipe(x)[0] - model(x)).abs().max().item() <= 1e-6
    assert [[n.target.name for n in pipe.get_stage_module(i).graph.find_nodes(op="call_function")] for i in range(4)] \
        == [["linear"], ["tanh"], ["linear"], ["linear"]]  # fmt: skip


def test_a_module_that_is_used_twice_is_run_twice():
    layer = nn.Linear(3, 3)
    model, x = nn.Sequential(layer, nn.Tanh(), layer), rg.randn(2, 3)
    split = PipeSequential.from_sequential(model)
    assert (split(x) - model(x)).abs().max().item() == 0
    assert pipeline(split, (x,)).num_stages == 3


def test_names_are_preserved():
    model = nn.Sequential({"first": nn.Linear(2, 2), "last": nn.ReLU()})
    assert [name for name, _ in PipeSequential.from_sequential(model).named_children()] == ["first", "last"]
