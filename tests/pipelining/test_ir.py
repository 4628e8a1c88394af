"""Models split into stages compute the model's results and gradients."""

import gc
import pickle
import weakref

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.fx import Graph
from retrograd.pipelining import (
    Pipe,
    SplitPoint,
    annotate_split_points,
    pipe_split,
    pipeline,
    split_into_equal_size,
)

from .splits import assert_close, cut_after


class Residual(nn.Module):
    """A model in which the second, third and fourth stage use values of the first."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(6, 6) for _ in range(4)])

    def forward(self, x):
        first = h = self.layers[0](x).tanh()
        for layer in list(self.layers)[1:]:
            pipe_split()
            h = layer(h).relu() + first
        return h


class Decoder(nn.Module):
    """A layer that attends to an encoder's output."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm = nn.LayerNorm(8)

    def forward(self, x, memory):
        return self.norm(x + self.attention(x, memory, memory)[0])


class EncoderDecoder(nn.Module):
    """A model with two inputs; all stages of the decoder use the encoder's output."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.decoders = nn.ModuleList([Decoder() for _ in range(2)])

    def forward(self, source, target):
        memory = self.encoder(source)
        for decoder in self.decoders:
            pipe_split()
            target = decoder(target, memory)
        return target


class Several(nn.Module):
    """A model with inputs by position and by name, a default, integers for the last stage, nested outputs."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x, y, *more, scale=2.0, ids=None, **named):
        h = self.a(x)
        pipe_split()
        h = self.b(h) * scale + y
        for value in more:
            h = h + value
        pipe_split()
        picked = self.c(h).gather(1, ids)
        return {"h": h, "picked": (picked, named["shift"] - picked), "constant": 3}


class Twice(nn.Module):
    """A model that calls one module in two stages, and twice in one of them."""

    def __init__(self):
        super().__init__()
        self.shared, self.other = nn.Linear(5, 5), nn.Linear(5, 5)

    def forward(self, x):
        x = self.shared(x).tanh()
        pipe_split()
        x = self.other(self.shared(self.shared(x)).tanh())
        return x


class Branching(nn.Module):
    """A model with Python control flow over numbers, lists and the values of tensors."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x, depth):
        for number in range(depth):
            if number:
                pipe_split()
            x = self.layers[number](x)
            x = x.relu() if x.abs().sum() > 0 else x
        return x


def mlp():
    return nn.Sequential(*[module for _ in range(3) for module in (nn.Linear(5, 5), nn.Tanh())])


def dropout():
    return nn.Sequential(nn.Linear(5, 5), nn.Dropout(0.5), nn.Linear(5, 5), nn.Dropout(0.3))


def examples():
    x = rg.randn(7, 5)
    several = {"ids": rg.randint(4, (7, 2)), "shift": rg.randn(7, 2)}
    spec = {"1": SplitPoint.END, "4": SplitPoint.BEGINNING}
    return {
        "mlp": (mlp(), (x,), {}, spec, 3),
        "residual": (Residual(), (rg.randn(3, 6),), {}, None, 4),
        "encoder-decoder": (EncoderDecoder(), (rg.randn(2, 5, 8), rg.randn(2, 3, 8)), {}, None, 3),
        "several": (Several(), (rg.randn(7, 3), rg.randn(7, 4), rg.randn(7, 4)), several, None, 3),
        "twice": (Twice(), (x,), {}, None, 2),
        "branching": (Branching(), (rg.randn(2, 4), 3), {}, None, 3),
        "dropout": (dropout(), (x,), {}, {"2": SplitPoint.BEGINNING}, 2),
    }


def leaves(output):
    if isinstance(output, dict):
        return [leaf for value in output.values() for leaf in leaves(value)]
    if isinstance(output, tuple):
        return [leaf for value in output for leaf in leaves(value)]
    return [output] if isinstance(output, rg.Tensor) else []


def outputs_and_gradients(run, model, args, kwargs):
    model.zero_grad()
    rg.manual_seed(5)
    output = run(*args, **kwargs)
    sum((leaf * leaf).sum() for leaf in leaves(output)).backward()
    gradients = {name: None if p.grad is None else p.grad.clone() for name, p in model.named_parameters()}
    return output, leaves(output), gradients


def assert_same_as_unsplit(pipe, model, args, kwargs):
    _, expected, gradients = outputs_and_gradients(model, model, args, kwargs)
    split, found, split_gradients = outputs_and_gradients(pipe, model, args, kwargs)
    assert type(split) is tuple
    assert len(expected) == len(found)
    for a, b in zip(found, expected, strict=True):
        assert_close(a, b)
    for name, gradient in gradients.items():
        assert_close(split_gradients[name], gradient)


@pytest.mark.parametrize("name", examples())
def test_a_pipe_has_the_results_and_gradients_of_the_model(name):
    model, args, kwargs, spec, stages = examples()[name]
    pipe = pipeline(model, args, kwargs, split_spec=spec)
    assert pipe.num_stages == stages
    for graph in (pipe.split_gm.graph, *[pipe.get_stage_module(i).graph for i in range(stages)]):
        graph.lint()
    assert_same_as_unsplit(pipe, model, args, kwargs)


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (mlp(), (7, 5)),
        (dropout(), (7, 5)),
        (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (2, 3, 8)),
    ],
)
def test_a_model_may_be_cut_between_any_two_operators(model, shape):
    args = (rg.randn(*shape),)
    count = len(rg.fx.trace(model, *args).graph.find_nodes(op="call_function"))
    for after in range(1, count):
        pipe = pipeline(model, args, split_policy=cut_after(after))
        assert pipe.num_stages == 2
        assert_same_as_unsplit(pipe, model, args, {})


def test_integers_made_by_one_stage_reach_others():
    class Indexing(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.table = nn.Linear(3, 4), nn.Embedding(9, 4)

        def forward(self, x, ids):
            ids = (ids + 1) % 9
            h = self.a(x)
            pipe_split()
            h = h * self.table(ids)
            pipe_split()
            return h + self.table.weight[ids] + ids[:, None]

    model, args = Indexing(), (rg.randn(6, 3), rg.randint(9, (6,)))
    pipe = pipeline(model, args)
    assert pipe.carried() == {(0, 1): ["remainder", "linear"], (0, 2): ["remainder"], (1, 2): ["mul"]}
    assert_same_as_unsplit(pipe, model, args, {})


# ------------------------------------------------------------------------------------------------- where to cut


def test_annotations_cut_the_model_and_do_not_change_its_results():
    model, x = mlp(), rg.randn(7, 5)

    def state_of_model():
        hooks = [(part.forward, part._call_hooks) for part in model.modules()]
        return repr(model), list(model.state_dict()), [name for name, _ in model.named_modules()], hooks

    before = state_of_model()
    annotate_split_points(model, {"1": SplitPoint.END, "4": SplitPoint.BEGINNING})
    assert state_of_model() == before
    pipe = pipeline(model, (x,))
    assert pipe.num_stages == 3
    assert_same_as_unsplit(pipe, model, (x,), {})


def test_the_annotations_of_a_submodule_hold_in_every_model_with_it():
    part = nn.Sequential(nn.Linear(5, 5), nn.Linear(5, 5))
    annotate_split_points(part, {"1": SplitPoint.BEGINNING})
    assert pipeline(nn.Sequential(part, nn.Tanh()), (rg.randn(2, 5),)).num_stages == 2


def test_annotations_and_a_policy_are_refused_together():
    model = mlp()
    annotate_split_points(model, {"1": SplitPoint.END})
    with pytest.raises(ValueError, match="split_policy would ignore them"):
        pipeline(model, (rg.ones(1, 5),), split_policy=split_into_equal_size(2))


def test_annotations_do_not_keep_a_module():
    model = mlp()
    annotate_split_points(model, {"1": SplitPoint.END})
    watched = weakref.ref(model)
    del model
    gc.collect()
    assert watched() is None


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("5", r"split_spec\['5'\]: the Sequential has no submodule '5'; it has '0', '1'"),
        ("1.b.c", r"split_spec\['1.b.c'\]: the Sequential at '1' has no submodule 'b'; it has '0'"),
        ("1.0.weight", r"the Linear at '1.0' has no submodule 'weight'; it has none"),
        ("", "has no submodule ''"),
    ],
)
def test_a_path_that_does_not_exist_names_the_missing_part_and_the_module_there(path, message):
    model = nn.Sequential(nn.Tanh(), nn.Sequential(nn.Linear(2, 2)))
    with pytest.raises(AttributeError, match=message):
        annotate_split_points(model, {path: SplitPoint.END})
    with pytest.raises(AttributeError, match=message):
        pipeline(model, (rg.ones(1, 2),), split_spec={path: SplitPoint.END})


def test_an_unknown_kind_of_split_point_is_refused():
    with pytest.raises(ValueError, match=r"split_spec\['0'\]: expected SplitPoint.BEGINNING or .*, got 'end'"):
        annotate_split_points(nn.Sequential(nn.Tanh()), {"0": "end"})


@pytest.mark.parametrize("spec", [{"2": SplitPoint.END}, {"0": SplitPoint.BEGINNING}])
def test_a_mark_with_operators_on_one_side_only_makes_no_stage(spec):
    model, x = nn.Sequential(nn.Linear(5, 5), nn.Tanh(), nn.Linear(5, 5)), rg.randn(2, 5)
    assert pipeline(model, (x,), split_spec=spec).num_stages == 1
    pipe = pipeline(model, (x,), split_spec={**spec, "1": SplitPoint.BEGINNING})
    assert pipe.num_stages == 2
    assert_same_as_unsplit(pipe, model, (x,), {})


def test_marks_in_a_row_are_one():
    model, x = nn.Sequential(nn.Linear(5, 5), nn.Identity(), nn.Linear(5, 5)), rg.randn(2, 5)
    spec = {"0": SplitPoint.END, "1": SplitPoint.END, "2": SplitPoint.BEGINNING}
    pipe = pipeline(model, (x,), split_spec=spec)
    assert pipe.num_stages == 2
    assert_same_as_unsplit(pipe, model, (x,), {})


def test_a_spec_and_a_policy_are_refused_together():
    with pytest.raises(ValueError, match="not both"):
        pipeline(mlp(), (rg.ones(1, 5),), split_spec={}, split_policy=split_into_equal_size(2))


# ---------------------------------------------------------------------------------------------------- capturing


def test_from_tracing_is_pipeline_without_a_spec():
    model, args, kwargs, _, stages = examples()["several"]
    pipe = Pipe.from_tracing(model, args, kwargs)
    assert pipe.num_stages == stages
    assert_same_as_unsplit(pipe, model, args, kwargs)
    assert Pipe.from_tracing(mlp(), (rg.ones(1, 5),), split_policy=split_into_equal_size(3)).num_stages == 3


def test_failed_captures_name_the_line_and_likely_causes():
    class Unsound(nn.Module):
        def forward(self, x):
            return x + x.reshape(7)

    with pytest.raises(RuntimeError, match="Unsound could not be captured") as caught:
        pipeline(Unsound(), (rg.ones(2),))
    code = Unsound.forward.__code__
    assert f"{code.co_filename}:{code.co_firstlineno + 1} in forward" in str(caught.value)
    assert "Likely causes:" in str(caught.value)
    assert caught.value.__cause__ is not None


def test_a_model_that_fails_leaves_no_boundary_active():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(3, 3))
    with pytest.raises(RuntimeError, match="could not be captured"):
        pipeline(model, (rg.ones(1, 2),), split_spec={"1": SplitPoint.BEGINNING})
    assert not any(m._call_hooks for m in model.modules())


def policy_with_marks(captured):
    middle = captured.graph.find_nodes(op="call_function")[1]
    with captured.graph.inserting_before(middle):
        captured.graph.call_function(pipe_split)
    captured.recompile()
    return captured


class CountingSequential(nn.Sequential):
    """A model that counts its runs by batch size and mode."""

    def forward(self, x):
        self.runs.append((x.value.shape[0], self.training))  # not x.shape: the trace records its uses
        return super().forward(x)


@pytest.mark.parametrize(
    "options",
    [{"split_spec": {"1": SplitPoint.BEGINNING}}, {"split_policy": split_into_equal_size(2)},
     {"split_policy": policy_with_marks}],
)  # fmt: skip
@pytest.mark.parametrize(("batch", "sizes"), [(2, [2, 1, 3]), (1, [1, 2, 4])])
def test_a_model_is_traced_three_times_in_each_mode(batch, sizes, options, monkeypatch):
    generated, python_code = [], Graph.python_code

    def observed(graph, root_module="self"):
        generated.append(graph)
        return python_code(graph, root_module)

    monkeypatch.setattr(Graph, "python_code", observed)
    model = CountingSequential(*[nn.TransformerEncoderLayer(8, 2, 16, batch_first=True) for _ in range(2)])
    model.runs = []
    pipe = pipeline(model, (rg.randn(batch, 4, 8),), **options)
    assert pipe.num_stages == 2
    assert model.runs == [(size, training) for training in (True, False) for size in sizes]
    assert len(set(map(id, generated))) == len(generated) - (options == {"split_policy": policy_with_marks})
    assert pipe(rg.randn(5, 4, 8))[0].shape == (5, 4, 8)


def test_a_model_without_modes_is_traced_once_in_the_other_mode():
    model = CountingSequential(nn.Linear(4, 4), nn.Linear(4, 4))
    model.runs = []
    pipeline(model, (rg.randn(2, 4),), split_policy=policy_with_marks)
    assert model.runs == [(2, True), (1, True), (3, True), (2, False)]


# ------------------------------------------------------------------------------------------------- pipes and stages


def test_a_pipe_takes_arguments_as_the_model_does():
    model, (x, y, z), kwargs, *_ = examples()["several"]
    pipe = pipeline(model, (x, y, z), kwargs)
    expected = model(x, y, z, **kwargs)["h"]
    assert_close(pipe(x, y, z, **kwargs)[0], expected)
    assert_close(pipe(x, y, z, scale=2.0, **kwargs)[0], expected)
    with pytest.raises(ValueError, match="scale"):
        pipe(x, y, z, scale=3.0, **kwargs)
    with pytest.raises(TypeError, match="y"):
        pipe(x, **kwargs)


def test_every_stage_takes_the_inputs_that_it_uses():
    model, args, kwargs, *_ = examples()["several"]
    stages = pipeline(model, args, kwargs).stages
    inputs = [{value.name for value in stage.inputs if value.stage is None} for stage in stages]
    assert inputs == [{"x"}, {"y", "more_0"}, {"ids", "named_shift"}]


def test_info_has_the_graph_of_stage_calls():
    pipe = pipeline(Residual(), (rg.randn(3, 6),))
    graph, num_stages, has_loss_and_backward, _ = pipe.info()
    assert (num_stages, has_loss_and_backward) == (4, False)
    assert [n.target for n in graph.find_nodes(op="call_module")] == [f"submod_pp_{i}" for i in range(4)]
    assert [n.name for n in graph.nodes if n.op == "call_function"] == ["tanh", "add", "add_1", "add_2"]
    assert_close(pipe.split_gm(x := rg.randn(3, 6)), pipe(x)[0])


def test_print_readable_shows_stages_and_pipe(capsys):
    text = pipeline(Residual(), (rg.randn(3, 6),)).print_readable()
    assert capsys.readouterr().out == text + "\n"
    assert text.count("ops.linear(") == 4
    assert "self.submod_pp_3(" in text


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((nn.Linear(5, 5), rg.ones(2, 5)), {}, "mb_args must be a tuple or list of arguments, got Tensor"),
        ((rg.sin, (rg.ones(2),)), {}, "expected a Module"),
        ((mlp(), (rg.ones(2, 5),)), {"split_spec": {0: SplitPoint.END}}, "a dict from submodule paths to SplitPoint"),
        ((mlp(), (rg.ones(2, 5),)), {"split_policy": lambda captured: None}, "a mapping from operators to stages"),
        ((mlp(), (rg.ones(2, 5),)), {"split_policy": split_into_equal_size(1.5)}, "must be an integer, got 1.5"),
    ],
)
def test_arguments_of_another_type_are_refused(arguments, options, message):
    with pytest.raises(TypeError, match=message):
        pipeline(*arguments, **options)


def test_arguments_that_do_not_fit_name_no_line_of_python_s_own():
    with pytest.raises(RuntimeError, match="Sequential could not be captured: TypeError: got an unexpected keyword"):
        pipeline(mlp(), (rg.ones(2, 5),), {"q": 1})


@pytest.mark.parametrize("index", [-1, 4, "0", 0.0])
def test_a_stage_that_does_not_exist_is_refused(index):
    pipe = pipeline(Residual(), (rg.randn(3, 6),))
    for method in (pipe.get_stage_module, pipe.build_stage):
        with pytest.raises(ValueError, match=f"stage {index!r} does not exist: there are stages 0 to 3"):
            method(index)


def test_a_stage_keeps_no_reference_to_the_others():
    model = Residual()
    pipe = pipeline(model, (rg.randn(3, 6),))
    watched = [weakref.ref(layer.weight) for layer in model.layers]
    stage = pipe.build_stage(2)
    del model, pipe
    gc.collect()
    assert [reference() is not None for reference in watched] == [False, False, True, False]
    assert (stage.stage_index, stage.num_stages, stage.device, stage.group) == (2, 4, "cpu", None)
    x = rg.randn(3, 6)
    assert list(stage.forward(0, {"add": x, "tanh": x})) == ["add_1"]


def test_a_stage_travels_by_pickle():
    pipe, x = pipeline(Residual(), (rg.randn(3, 6),)), rg.randn(3, 6)
    [expected] = pipe.get_stage_module(0)(x)
    [found] = pickle.loads(pickle.dumps(pipe.build_stage(0))).submod(x)
    assert_close(found, expected)


def test_a_policy_may_mark_boundaries_in_the_captured_module_and_return_it():
    def policy(captured):
        for node in captured.graph.find_nodes(op="call_function"):
            if node.target.name == "linear":
                with captured.graph.inserting_after(node):
                    captured.graph.call_function(pipe_split)
        return captured

    model, x = mlp(), rg.randn(4, 5)
    pipe = pipeline(model, (x,), split_policy=policy)
    assert pipe.num_stages == 1 + sum(isinstance(part, nn.Linear) for part in model.modules())
    assert_same_as_unsplit(pipe, model, (rg.randn(9, 5),), {})
    with pytest.raises(ValueError, match=r"insert pipe_split\(\) into the graph of the module that is given"):
        pipeline(model, (x,), split_policy=lambda captured: rg.fx.trace(model, x))
