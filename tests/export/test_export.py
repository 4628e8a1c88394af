"""Export: flat graphs compute the same as the module."""

import pytest

import retrograd as rg
from retrograd import func, nn
from retrograd.export import Dim, ExportedProgram, InputKind, OutputKind, export
from retrograd.testing import assert_close

from .models import ConvNet, Tied, Trees, copied_state, encoder


def same(actual, expected):
    assert_close(actual, expected, rtol=0.0, atol=0.0)


def mlp():
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))


def test_the_flat_graph_lifts_parameters_before_the_users_inputs():
    program = export(mlp(), (rg.ones(5, 3),))
    assert isinstance(program, ExportedProgram)
    names = [node.name for node in program.graph.find_nodes(op="placeholder")]
    assert names == ["p_0_weight", "p_0_bias", "p_2_weight", "p_2_bias", "input_1"]
    assert not program.graph.find_nodes(op="get_attr")
    assert program.graph_signature.parameters == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert program.graph_signature.user_inputs == ["input_1"]
    program.validate()


def test_every_node_has_its_shape_and_dtype():
    program = export(mlp(), (rg.ones(5, 3),))
    assert all("val" in node.meta for node in program.graph.nodes if node.op != "output")


def test_the_module_of_a_program_computes_the_same_as_the_original():
    model = mlp()
    x = rg.randn(5, 3)
    same(export(model, (rg.ones(5, 3),)).module()(x), model(x))


def test_gradients_reach_the_parameters_of_the_original():
    model = mlp()
    x = rg.randn(5, 3, requires_grad=True)
    wanted = [x, *model.parameters()]
    expected = rg.autograd.grad(model(x).square().sum(), wanted)
    module = export(model, (rg.ones(5, 3),)).module()
    assert [name for name, _ in module.named_parameters()] == [name for name, _ in model.named_parameters()]
    for actual, known in zip(rg.autograd.grad(module(x).square().sum(), wanted), expected, strict=True):
        same(actual, known)


def test_transforms_of_a_program_are_those_of_the_module():
    model = encoder()
    module = export(model, (rg.randn(2, 3, 8),), dynamic_shapes=({0: Dim("batch"), 1: Dim("time")},)).module()
    xs = rg.randn(4, 2, 5, 8)
    t = rg.randn(2, 5, 8)

    def loss(f):
        return lambda x: f(x).square().sum()

    assert_close(func.grad(loss(module))(xs[0]), func.grad(loss(model))(xs[0]))
    assert_close(func.vmap(module)(xs), func.vmap(model)(xs))
    assert_close(func.jvp(module, (xs[0],), (t,))[1], func.jvp(model, (xs[0],), (t,))[1])
    assert_close(func.vmap(func.grad(loss(module)))(xs), func.vmap(func.grad(loss(model)))(xs))


def test_the_first_derivative_of_a_program_has_derivatives():
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    module = export(model, (rg.ones(4, 2),)).module()
    x = rg.randn(4, 2)

    def twice(f):
        return func.grad(lambda y: func.grad(lambda z: f(z).sum())(y).square().sum())

    assert_close(twice(module)(x), twice(model)(x))


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_reads_and_writes_its_buffers(training):
    model = ConvNet().train(training)
    before = copied_state(model)
    program = export(model, (rg.randn(4, 1, 4, 4),), dynamic_shapes=({0: Dim("batch", min=2)},))
    for name, value in before.items():
        same(model.state_dict()[name], value)  # exporting changes nothing
    written = ["norm.num_batches_tracked", "norm.running_mean", "norm.running_var"] if training else []
    assert sorted(program.graph_signature.buffers_to_mutate.values()) == written
    x = rg.randn(6, 1, 4, 4)
    actual = program.module()(x)
    after = copied_state(model)
    model.load_state_dict(before)
    assert_close(actual, model(x))
    for name, value in model.state_dict().items():
        assert_close(after[name], value)


def test_mutations_come_before_results_in_the_signature():
    program = export(ConvNet(), (rg.randn(4, 1, 4, 4),))
    kinds = [spec.kind for spec in program.graph_signature.output_specs]
    assert kinds == [OutputKind.BUFFER_MUTATION] * 3 + [OutputKind.USER_OUTPUT]


def test_an_argument_that_is_written_to_is_written_by_the_program():
    class Writes(nn.Module):
        def forward(self, x):
            x.mul_(2.0)
            return x + 1

    program = export(Writes(), (rg.ones(2),))
    assert list(program.graph_signature.user_inputs_to_mutate.values()) == ["x"]
    x = rg.tensor([1.0, 3.0])
    same(program.module()(x), rg.tensor([3.0, 7.0]))
    same(x, rg.tensor([2.0, 6.0]))


def test_structures_go_in_and_come_out():
    args = {"pair": (rg.ones(2), rg.zeros(2))}
    program = export(Trees(), (args,), {"weights": [rg.tensor(2.0), rg.tensor(3.0)]})
    x, y = rg.randn(2), rg.randn(2)
    result = program.module()({"pair": (x, y)}, weights=[rg.tensor(0.5), rg.tensor(-1.0)])
    same(result["sum"], x * 0.5 + y)
    same(result["list"][0], x)
    same(result["list"][1][0], -y)
    assert result["list"][1][1] == 3
    with pytest.raises(ValueError, match="batch: traced with the structure"):
        program.module()({"pair": [x, y]}, weights=[rg.tensor(0.5), rg.tensor(-1.0)])


def test_tied_weights_stay_one_parameter():
    model = Tied()
    program = export(model, (rg.tensor([[1, 2], [3, 0]]),), dynamic_shapes={"tokens": (Dim("batch"), Dim("time"))})
    assert program.constants.keys() == {"scale"}
    assert program.graph_signature.non_persistent_buffers == ["scale"]
    module = program.module()
    assert list(module.state_dict()) == list(model.state_dict())
    assert module.head.weight is module.embedding is model.embedding
    tokens = rg.tensor([[6, 5, 4], [3, 2, 1], [0, 0, 0]])
    module(tokens).sum().backward()
    actual, model.embedding.grad = model.embedding.grad, None
    model(tokens).sum().backward()
    assert_close(actual, model.embedding.grad)


def test_dropout_draws_from_the_generator_at_each_run():
    model = nn.Sequential(nn.Dropout(0.5))
    rg.manual_seed(3)
    state = str(rg.get_rng_state())
    program = export(model, (rg.ones(8, 4),), dynamic_shapes=({0: Dim("batch")},))
    assert str(rg.get_rng_state()) == state
    x = rg.ones(50, 4)
    rg.manual_seed(5)
    actual = program.module()(x)
    rg.manual_seed(5)
    same(actual, model(x))
    assert 0 < float((actual == 0).sum()) < 200


def test_a_branch_on_values_is_guarded_with_the_users_line():
    class Branches(nn.Module):
        def forward(self, x):
            if x.sum() > 0:
                return x * 2
            return x - 1

    module = export(Branches(), (rg.ones(3),), dynamic_shapes=({0: Dim("n")},)).module()
    same(module(rg.full((5,), 2.0)), rg.full((5,), 4.0))
    with pytest.raises(RuntimeError, match=r"test_export\.py:\d+ in forward read the value True"):
        module(rg.full((5,), -2.0))


def test_other_tensors_become_constants():
    table = rg.tensor([1.0, 2.0])

    class Uses(nn.Module):
        def forward(self, x):
            return x + table

    program = export(Uses(), (rg.ones(2),))
    assert [spec.kind for spec in program.graph_signature.input_specs] == [
        InputKind.CONSTANT_TENSOR,
        InputKind.USER_INPUT,
    ]
    [constant] = program.constants.values()
    assert constant is table


def test_wrong_arguments_are_named():
    module = export(mlp(), (rg.ones(5, 3),)).module()
    with pytest.raises(ValueError, match=r"input: traced with float32\[5, 3\], got float32\[6, 3\]"):
        module(rg.ones(6, 3))
    with pytest.raises(ValueError, match="float64"):
        module(rg.ones(5, 3, dtype=rg.float64))


def test_objects_that_are_no_modules_or_tuples_are_refused():
    with pytest.raises(TypeError, match="expected a Module, got function"):
        export(lambda x: x, (rg.ones(2),))
    with pytest.raises(TypeError, match="args must be a tuple"):
        export(mlp(), rg.ones(5, 3))
