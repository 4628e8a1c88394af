"""Exported programs as objects: refused calls, text, state, validation."""

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.export import Dim, InputKind, TensorArgument, export

from .models import ConvNet, Tied, encoder


def linear():
    return export(nn.Linear(2, 3), (rg.ones(4, 2),), dynamic_shapes=({0: Dim("batch", max=64)},))


def test_a_program_is_not_called_itself():
    with pytest.raises(RuntimeError, match=r"call what exported_program\.module\(\) returns"):
        linear()(rg.ones(4, 2))


def test_a_program_prints_code_signature_and_ranges():
    text = str(linear())
    assert "def forward(self, p_weight, p_bias, input_1):" in text
    assert "p_weight: PARAMETER target='weight'" in text
    assert "linear: USER_OUTPUT" in text
    assert "Range constraints: batch: [1, 64]" in text


def test_state_and_constants_are_the_modules_own_tensors():
    model = Tied()
    program = export(model, (rg.tensor([[1]]),))
    for name, value in model.state_dict(keep_vars=True).items():
        assert program.state_dict[name] is value
    assert program.constants == {"scale": model.scale}
    assert dict(program.named_parameters()).keys() == {"embedding", "block.0.weight", "block.0.bias", "head.weight"}
    assert dict(program.named_buffers()) == {"scale": model.scale}


def test_a_trained_module_changes_the_program():
    model = nn.Linear(2, 1, bias=False)
    program = export(model, (rg.ones(3, 2),))
    module = program.module()
    optimizer = rg.optim.SGD(module.parameters(), lr=0.5)
    before = model.weight.detach().clone()
    module(rg.ones(3, 2)).sum().backward()
    optimizer.step()
    assert (model.weight - before).tolist() == [[-1.5, -1.5]]
    assert program.state_dict["weight"] is model.weight


def test_unused_parameters_are_inputs_too():
    class Unused(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused = nn.Parameter(rg.ones(2)), nn.Parameter(rg.ones(3))

        def forward(self, x):
            return x * self.used

    program = export(Unused(), (rg.ones(2),))
    assert program.graph_signature.parameters == ["used", "unused"]
    assert list(program.module().state_dict()) == ["used", "unused"]
    program.validate()


def test_the_flat_graph_runs_with_all_its_inputs():
    program = linear()
    weight, bias = rg.ones(3, 2), rg.zeros(3)
    [result] = program.graph_module(weight, bias, rg.ones(4, 2))
    assert result.tolist() == [[2.0] * 3] * 4


def test_a_program_that_is_not_sound_is_found():
    program = linear()
    specs = program.graph_signature.input_specs
    specs[0] = specs[0]._replace(arg=TensorArgument("other"))
    with pytest.raises(RuntimeError, match="are not those of the signature"):
        program.validate()


@pytest.mark.parametrize(("model", "x"), [(encoder(), (2, 3, 8)), (ConvNet(), (3, 1, 4, 4))])
def test_programs_are_sound(model, x):
    program = export(model, (rg.randn(*x),), dynamic_shapes=({0: Dim("batch")},))
    program.validate()
    program.module().graph.lint()
    kinds = [spec.kind for spec in program.graph_signature.input_specs]
    assert kinds == sorted(kinds, key=[InputKind.PARAMETER, InputKind.BUFFER, InputKind.USER_INPUT].index)
    assert program.example_inputs is not None


def test_every_node_records_the_module_that_ran_it():
    program = export(encoder(), (rg.randn(2, 3, 8),))
    paths = [list(n.meta["nn_module_stack"].values())[-1][0] for n in program.graph.find_nodes(op="call_function")]
    assert {"", "self_attn", "self_attn.out_proj", "linear1", "norm2"} <= set(paths)


def test_varying_shapes_are_written_at_the_nodes():
    module = nn.Sequential(encoder(), nn.Flatten(0, 1))
    program = export(module, (rg.randn(2, 3, 8),), dynamic_shapes=({0: Dim("batch"), 1: Dim("time")},))
    shapes = {str(node.meta["shape"]) for node in program.graph.nodes if "shape" in node.meta}
    assert "(batch, time, 8)" in shapes
    assert "(batch*time, 8)" in shapes
