"""Compiled functions that are saved to a file or pickled: they run in another process without their Python code."""

import collections
import contextlib
import copy
import dataclasses
import io
import json
import os
import pickle
import random
import subprocess
import sys
import threading
import zipfile

import pytest

import retrograd as rg
from retrograd import export, nn
from retrograd.core.tensor import make
from retrograd.interop.program_files import GRAPH, TENSORS
from retrograd.utils.checkpoint import checkpoint

from ..files.damage import mutated
from .comparison import numbers, observe

Pair = collections.namedtuple("Pair", "total scaled")


@dataclasses.dataclass
class Batch:
    x: rg.Tensor
    scale: float


def ahead(f, *args, **kwargs):
    """Return a function that is compiled ahead of time."""
    return rg.compile(f, fullgraph=True).aot_compile((args, kwargs))


def reloaded(compiled, **external_data):
    """Return what a file has of a compiled function."""
    file = io.BytesIO(saved(compiled, **external_data))
    return rg.compiler.load_compiled_function(file, external_data=external_data)


def saved(compiled, **external_data):
    path = os.path.join(saved.folder, "function.bin")
    compiled.save_compiled_function(path, external_data)
    with open(path, "rb") as file:
        return file.read()


@pytest.fixture(autouse=True)
def folder(tmp_path):
    saved.folder = tmp_path


# ------------------------------------------------------------------------------------------------ bits and effects


def model():
    rg.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.3), nn.Linear(6, 3))


def bits(module):
    return {name: t.tolist() for name, t in module.state_dict().items()}


def test_a_loaded_module_has_the_bits_random_numbers_and_buffers_of_the_eager_one():
    eager, x = model(), numbers(5, 4)
    with rg.no_grad():
        loaded = reloaded(ahead(copy.deepcopy(eager), x))
        expected, buffers = [], loaded.state_dict()
        eager(x)  # the example has run in the copy
        for _ in range(3):
            rg.manual_seed(1)
            expected.append((observe(eager(x)), rg.rand(1).item()))
        actual = []
        for _ in range(3):
            rg.manual_seed(1)
            actual.append((observe(loaded(x)), rg.rand(1).item()))
    assert actual == expected
    assert {name: t.tolist() for name, t in buffers.items()} == bits(eager)


def everything(batch, *, factor=2):
    total = batch.x.sum(0)
    batch.x.mul_(factor)
    values = batch.x.max(0)
    view = batch.x[1:].T
    constant = rg.tensor([1.0, -0.0])
    return Pair(total, [values, {"view": view, 1: (batch.scale, None)}]), Batch(constant, 0.5), batch.x.detach()


def test_containers_views_and_writes_to_arguments_are_those_of_the_eager_call():
    loaded = reloaded(ahead(everything, Batch(numbers(3, 2), 1.5), factor=3))
    runs = []
    for f in (everything, loaded):
        x = numbers(3, 2, seed=1)
        result = f(Batch(x, 1.5), factor=3)
        pair, made, alias = result
        view = pair.scaled[1]["view"]
        view.add_(1.0)
        alias.sub_(0.5)
        runs.append(
            (observe([pair.total, [*pair.scaled[0]], view, made.x, alias, x]), type(pair), type(made), x._version)
        )
        assert view._base is x
    assert runs[0] == runs[1]


def test_gradients_in_the_function_and_dot_grad_of_arguments_are_those_of_the_eager_call():
    def f(w, x):
        loss = (x @ w).tanh().square().sum()
        loss.backward(retain_graph=True)
        return rg.autograd.grad(loss, w)[0], loss.detach()

    loaded = reloaded(ahead(f, numbers(2, 3).requires_grad_(), numbers(4, 2)))
    runs = []
    for function in (f, loaded):
        w = numbers(2, 3, seed=1).requires_grad_()
        runs.append((observe(function(w, numbers(4, 2))), observe(w.grad)))
    assert runs[0] == runs[1]


def data_step(w, v, x):
    loss = (x @ w).square().mean() + v.sum()
    loss.backward()
    v.grad.data = v.grad.data.clamp(-0.5, 0.5)
    with rg.no_grad():
        old = w.data
        w.data = w.data - 0.1 * w.grad  # other memory
        old.mul_(2)
        v.data, kept = old, v.data
        v.mul_(0.5)
        x.data = x.data.t() + kept
        w.grad = None
        v.grad = None
    return loss.detach(), w.detach() * 1, x * 1


def share_step(w, v, x):
    y = x * 1
    y.data = w.data + x.data
    v.data = x.data  # of an argument, which the next call may write to
    w.data.mul_(0.9)
    x.add_(1)
    return y * 2, v.detach() * 1, w.detach() * 1


class Step(nn.Module):
    def __init__(self, step):
        super().__init__()
        self.step = step
        self.w, self.v = (nn.Parameter(numbers(3, 3, seed=seed)) for seed in (8, 9))

    def forward(self, x):
        return self.step(self.w, self.v, x)


@pytest.mark.parametrize("step", [data_step, share_step])
@pytest.mark.parametrize("again", [False, True])  # whether later calls have the same tensor
def test_a_loaded_function_gives_tensors_other_memory_as_the_eager_one(step, again):
    def outcomes(compiled):
        module, inputs = Step(step), [numbers(3, 3, seed=seed) for seed in range(5)]
        inputs[2:] = [inputs[1]] * 3 if again else inputs[2:]
        call = reloaded(ahead(module, inputs[0])) if compiled else module
        if not compiled:
            module(inputs[0])  # the example
        seen = [observe(inputs[0])]
        for x in inputs[1:]:
            seen.append([observe(call(x)), observe(x), *[observe(t.detach() * 1) for t in call.state_dict().values()]])
        return seen

    assert outcomes(True) == outcomes(False)


def test_a_loaded_function_gives_other_memory_to_arguments_and_never_to_copies_of_views():
    def set_data(x, y):
        x.data = y * 2

    loaded, x, y = reloaded(ahead(set_data, numbers(3), numbers(3))), numbers(3), numbers(3, seed=1)
    loaded(x, y)
    assert observe(x) == observe(y * 2)
    with pytest.raises(RuntimeError, match="no program for this call"):
        loaded(x[:], y)


def test_an_argument_may_have_the_memory_that_a_tensor_of_a_loaded_function_has_left():
    module = Step(share_step)
    loaded = reloaded(ahead(module, numbers(3, 3)))
    left = make(loaded.state_dict()["v"].value, None, None)
    loaded(numbers(3, 3))
    before = left * 1
    loaded(left)
    assert observe(left * 1) == observe(before + 1)


def test_the_tensors_of_a_loaded_function_are_its_own_and_keep_strides_and_sharing():
    w = numbers(3, 2).T
    twice = nn.Linear(3, 3)

    def f(x):
        return twice(twice(x @ w))

    with rg.no_grad():
        compiled = ahead(f, numbers(4, 2))
        loaded, expected = reloaded(compiled), f(numbers(4, 2))
        twice.weight.zero_()
        assert observe(loaded(numbers(4, 2))) == observe(expected) != observe(compiled(numbers(4, 2)))
    assert len(loaded.state_dict()) == 3


def test_tensors_whose_names_look_like_others_are_kept_apart():
    net = nn.Module()
    net.constant_0, net.tensor_0, outside = (
        nn.Parameter(numbers(2)),
        nn.Parameter(numbers(2, seed=1)),
        numbers(2, seed=2),
    )
    net.forward = lambda x: x * rg.tensor([3.0, 4.0]) + net.constant_0 * net.tensor_0 + outside
    with rg.no_grad():
        assert observe(reloaded(ahead(net, numbers(2)))(numbers(2))) == observe(net.forward(numbers(2)))


def test_complex_and_half_precision_tensors_are_stored():
    z, half = rg.ones(2, dtype=rg.complex128) * 1j, rg.ones(2, dtype=rg.float16)
    loaded = reloaded(ahead(lambda x: (x * z, x * half), numbers(2)))
    assert observe(loaded(numbers(2))) == observe((numbers(2) * z, numbers(2) * half))


# ------------------------------------------------------------------------------------------------ guards


def test_a_call_outside_the_guards_names_the_difference():
    loaded = reloaded(ahead(lambda x, n: x * n, numbers(2), 3))
    for args, message in {
        (numbers(3), 3): r"shape changed from \(2,\) to \(3,\)",
        (numbers(2).double(), 3): "dtype changed from float32 to float64",
        (numbers(4)[:2], 4): "changed from 3 to 4",
        (numbers(2).requires_grad_(), 3): "requires_grad changed",
    }.items():
        with pytest.raises(RuntimeError, match=message):
            loaded(*args)
    rg.set_default_dtype(rg.float64)
    try:
        with pytest.raises(RuntimeError, match="default dtype was float32"):
            loaded(numbers(2), 3)
    finally:
        rg.set_default_dtype(rg.float32)


def test_a_loaded_function_runs_in_any_grad_mode_and_takes_views_but_not_in_transforms():
    linear = nn.Linear(2, 2)
    with rg.no_grad():
        loaded = reloaded(ahead(linear, numbers(3, 2)))
        expected = observe(linear(numbers(3, 2)))
    assert observe(loaded(numbers(3, 2))) == expected
    assert observe(loaded(numbers(6, 2)[:3])) == observe(loaded(numbers(6, 2)[:3].clone()))
    with rg.inference_mode():
        assert observe(loaded(numbers(3, 2) + 0)) == expected
    with rg.autograd.profiler.profile():
        assert observe(loaded(numbers(3, 2))) == expected
    doubling = reloaded(ahead(lambda x: x.mul_(2), numbers(3)))
    with pytest.raises(RuntimeError, match="position in a graph"):
        doubling(numbers(6)[:3])
    with pytest.raises(RuntimeError, match="can't run inside another transform"):
        rg.func.vmap(loaded)(numbers(5, 3, 2))
    with pytest.raises(RuntimeError, match="can't run inside another transform"):
        rg.compile(lambda x: loaded(x))(numbers(3, 2))


KEPT = {
    "as a gradient": lambda w, x: setattr(w, "grad", x),
    "as a view that is a gradient": lambda w, x: setattr(w, "grad", x[:]),
    "as a detached gradient": lambda w, x: setattr(w, "grad", x.detach()),
    "as a gradient that is clipped": lambda w, x: [setattr(w, "grad", x), nn.utils.clip_grad_norm_([w], 0.1)],
    "and its gradient": lambda w, x: setattr(x, "grad", w.detach() * 1),
    "and its data": lambda w, x: setattr(x, "data", w.detach() * 1),
    "as data": lambda w, x: setattr(w, "data", x),
    "with writes through its data": lambda w, x: x.data.mul_(2.0),
}


@pytest.mark.parametrize("name", KEPT)
def test_a_loaded_function_keeps_the_argument_itself_or_refuses_it(name):
    linear = nn.Linear(3, 3, bias=False)

    def f(x):
        KEPT[name](linear.weight, x)
        return x * 2

    loaded = reloaded(ahead(f, numbers(3, 3)))
    (weight,) = loaded.state_dict().values()
    for base in (numbers(3, 3), numbers(6, 3)):
        x, mine = (one[:3] if len(one) > 3 else one for one in (base, base.clone()))
        weight.grad = linear.weight.grad = None
        try:
            result = loaded(x)
        except RuntimeError:
            continue
        assert observe(result) == observe(f(mine))
        for written in (x, mine):
            written.mul_(3.0)
        assert (weight.grad is x) is (linear.weight.grad is mine)
        for one, other in ((x, mine), (weight, linear.weight), (weight.grad, linear.weight.grad)):
            assert one is other is None or one.tolist() == other.tolist()


def test_sizes_between_captured_ones_need_no_capture():
    compiled = rg.compile(lambda x: (x.softmax(0) / 3).sum(1))
    for n in (2, 5, 8, 17):
        compiled(numbers(n, 3))
    loaded = reloaded(compiled.aot_compile(((numbers(2, 3),), {})))
    for n in (2, 7, 7, 11, 17):
        assert observe(loaded(numbers(n, 3))) == observe((numbers(n, 3).softmax(0) / 3).sum(1))
    with pytest.raises(RuntimeError, match="no program for this call"):
        loaded(numbers(18, 3))


class Doubled(nn.Module):
    def forward(self, x):
        return x.reshape(x.shape[0] * 2, -1).sum(1) / x.shape[0]


def test_an_exported_program_with_varying_sizes_is_compiled_ahead_of_time():
    program = export.export(Doubled(), (numbers(3, 4),), dynamic_shapes=({0: export.Dim("n", max=64)},))
    compiled = rg.compile(program.module(), fullgraph=True)
    for n in (2, 5, 8, 13):
        last = compiled.aot_compile(((numbers(n, 4),), {}))
    loaded = reloaded(last)
    for n in (3, 5, 12):
        assert observe(loaded(numbers(n, 4))) == observe(Doubled()(numbers(n, 4)))


def test_programs_whose_surroundings_changed_are_left_out():
    net = nn.Dropout(0.5)
    compiled = rg.compile(net)
    compiled(numbers(4))
    net.eval()
    loaded = reloaded(compiled.aot_compile(((numbers(4),), {})))
    assert observe(loaded(numbers(4))) == observe(numbers(4))


def test_threads_share_a_loaded_function():
    compiled = rg.compile(lambda x: (x * 2).sin().sum(0))
    for n in (2, 5, 8, 31):
        compiled(numbers(n, 2))
    loaded = reloaded(compiled.aot_compile(((numbers(2, 2),), {})))
    failures = []

    def work(seed):
        for n in range(2, 32):
            x = numbers(n, 2, seed=seed)
            if observe(loaded(x)) != observe((x * 2).sin().sum(0)):
                failures.append(n)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


# ------------------------------------------------------------------------------------------------ training steps


def training(compiled):
    net = model()
    optimizer = rg.optim.AdamW(net.parameters(), lr=0.01)
    schedule = rg.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        optimizer.step()
        schedule.step()
        return loss.detach()

    objects = {"model": net, "optimizer": optimizer, "schedule": schedule}
    return (rg.compile(step, fullgraph=True) if compiled else step), objects


def states(objects):
    return {key: copy.deepcopy(o.state_dict()) for key, o in objects.items()}


def test_a_training_step_continues_with_the_model_and_optimizer_of_another_process():
    x, y = numbers(8, 4), rg.arange(8) % 3
    eager, expected = training(False)
    rg.manual_seed(2)
    losses = [eager(x, y).item() for _ in range(6)]
    step, objects = training(True)
    rg.manual_seed(2)
    found = [step(x, y).item() for _ in range(3)]
    random_state = rg.get_rng_state()
    compiled = step.aot_compile(((x, y), {}))
    before = states(objects)
    _, others = training(False)
    loaded = rg.compiler.load_compiled_function(io.BytesIO(saved(compiled, **objects)), external_data=others)
    for key, o in others.items():
        o.load_state_dict(before[key])
    rg.set_rng_state(random_state)
    found += [loaded(x, y).item() for _ in range(3)]
    assert found == losses
    assert bits(others["model"]) == bits(expected["model"])


def test_a_training_step_needs_its_model_and_optimizer():
    step, objects = training(True)
    x, y = numbers(8, 4), rg.arange(8) % 3
    step(x, y)
    compiled = step.aot_compile(((x, y), {}))
    with pytest.raises(export.StorageError, match=r"calls AdamW.zero_grad.*external_data="):
        pickle.dumps(compiled)
    with pytest.raises(export.StorageError, match="parameters of no module in external_data"):
        saved(compiled, optimizer=objects["optimizer"], schedule=objects["schedule"])
    file = saved(compiled, **objects)
    with pytest.raises(export.StorageError, match=r"it needs external_data=\{'optimizer': ...\}"):
        rg.compiler.load_compiled_function(io.BytesIO(file), external_data=objects | {"model": model()})


# ------------------------------------------------------------------------------------------------ what is refused


def in_parts(x):
    y = x * 2
    return y * y.item()


def test_what_a_file_cannot_hold_is_named():
    class Token:
        pass

    generator = rg.Generator()
    base = rg.ones(4)
    first, second = base[:3], base[1:]

    turned = numbers(2, 3)

    def turn(x):
        turned.data = turned.data.t() * x
        return x * 2

    def draw_again(x):
        x = x.detach().requires_grad_()
        return rg.autograd.grad(checkpoint(nn.functional.dropout, x, use_reentrant=False).sum(), x)

    cases = {
        "draws random numbers again": (draw_again, (numbers(2),)),
        r"shape changed from \(2, 3\) to \(3, 2\) of the tensor tensor_0": (turn, (rg.ones(()),)),
        "a result requires grad": (nn.Linear(2, 2), (numbers(1, 2),)),
        "of type Generator can't be stored": (lambda x: x + rg.rand(2, generator=generator), (numbers(2),)),
        "share memory": (lambda x: x + first + second, (numbers(3),)),
        "nested or sparse": (lambda x: x * 2, (rg.nested.nested_tensor([rg.ones(2), rg.ones(3)]),)),
        "argument is a Token": (lambda x, token: x * 2, (numbers(2), Token())),
    }
    for message, (f, args) in cases.items():
        compiled = ahead(f, *args)
        with pytest.raises(export.StorageError, match=message):
            saved(compiled)
    with pytest.raises(RuntimeError, match="reads the value of a tensor"):
        ahead(lambda x: x.item(), rg.ones(1))
    with (
        pytest.warns(UserWarning, match="is compiled in parts"),
        pytest.raises(RuntimeError, match="runs in parts or eagerly"),
    ):
        rg.compile(in_parts).aot_compile(((rg.ones(1),), {}))
    with pytest.raises(TypeError, match="expected a tuple of the positional arguments"):
        ahead(lambda: 1).aot_compile(rg.ones(1))


# ------------------------------------------------------------------------------------------------ files


def test_pickled_and_copied_functions_have_their_programs_and_own_tensors():
    w = numbers(3)
    compiled = ahead(lambda x: x * w, numbers(3))
    for other in (pickle.loads(pickle.dumps(compiled)), copy.deepcopy(compiled)):
        assert len(other.programs) == 1
        assert observe(other(numbers(3))) == observe(compiled(numbers(3)))
        assert other.state_dict()["tensor_0"] is not w


SCRIPT = """
import sys
import retrograd as rg
loaded = rg.compiler.load_compiled_function(sys.argv[1])
assert "retrograd.fx" not in sys.modules and "retrograd.export" not in sys.modules
with rg.compiler.set_stance("fail_on_recompile"):
    rg.save(loaded(rg.load(sys.argv[2])), sys.argv[3])
"""


@pytest.mark.parametrize("pure", [False, True])
def test_another_process_needs_the_file_only(tmp_path, pure):
    x = numbers(3, 4)
    with rg.no_grad():
        net = model().eval()
        ahead(net, x).save_compiled_function(tmp_path / "f.bin")
        rg.save(x, tmp_path / "x")
        environment = {**os.environ, "RETROGRAD_PURE": "1"} if pure else None
        arguments = [tmp_path / "f.bin", tmp_path / "x", tmp_path / "y"]
        subprocess.run([sys.executable, "-c", SCRIPT, *arguments], check=True, env=environment)
        assert rg.allclose(rg.load(tmp_path / "y"), net(x))
        assert pure or observe(rg.load(tmp_path / "y")) == observe(net(x))


@pytest.fixture
def parts(tmp_path):
    """Return the document and the tensors of a file."""
    w = numbers(3, 3)

    def f(batch, factor):
        y = batch["x"] @ w
        w.add_(1.0)
        y[0] = 2.0
        return Pair((y * rg.tensor([1.0, 2.0, 3.0])).relu().sum(1), [y.T, factor])

    with zipfile.ZipFile(io.BytesIO(saved(ahead(f, {"x": numbers(3, 3)}, 0.5)))) as archive:
        return json.loads(archive.read(GRAPH)), archive.read(TENSORS)


def packed(document, tensors):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(GRAPH, json.dumps(document))
        archive.writestr(TENSORS, tensors)
    return file


def test_damaged_files_are_refused_by_name(parts):
    document, tensors = parts
    loaded = 0
    for seed in range(150):
        file = packed(mutated(document, random.Random(seed)), tensors)
        with contextlib.suppress(export.StorageError):  # anything else fails the test
            rg.compiler.load_compiled_function(file)
            loaded += 1
    assert loaded < 60  # where a name or a number is another one


def test_foreign_files_later_versions_and_code_are_refused(parts, tmp_path):
    document, tensors = parts
    call = next(row for row in instructions_of(document) if row[0] == "call")

    def refuses(message):
        with pytest.raises(export.StorageError, match=message):
            rg.compiler.load_compiled_function(packed(document, tensors))

    operators = document["operators"]
    document["operators"] = {**operators, "mul": "mul(Tensor a, Tensor c) -> Tensor"}
    refuses("operator 'mul' is another one in this version")
    document["operators"] = {**operators, "none": ""}
    refuses("no operator named 'none' is registered")
    document["operators"] = operators
    call[3]["dict"] = [["x=open('/tmp/evil', 'w'), y", 1]]
    refuses("expected a param")
    document["version"] = 2
    refuses("of version 2 of the format")
    export.save(export.export(nn.ReLU(), (rg.ones(1),)), tmp_path / "program.zip")
    with pytest.raises(export.StorageError, match="expected the format 'retrograd compiled function'"):
        rg.compiler.load_compiled_function(tmp_path / "program.zip")
    with pytest.raises(FileNotFoundError):
        rg.compiler.load_compiled_function(tmp_path / "none")


def instructions_of(document):
    return dict(document["programs"][0][1]["dict"])["instructions"]
