"""PyTorch's states by name: what any division of a model and its optimizer has saved, any other continues."""

import ast
import copy
import itertools

import numpy as np
import pytest

import retrograd as rg
import retrograd.distributed as dist
import retrograd.distributed.checkpoint as checkpoint
from retrograd.distributed.checkpoint import layout
from retrograd.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
    set_state_dict,
)
from retrograd.distributed.fsdp import full_state_dict, fully_shard
from retrograd.distributed.optim import ZeroRedundancyOptimizer
from retrograd.distributed.tensor import DTensor, Replicate, Shard
from retrograd.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from retrograd.nn.parallel import DistributedDataParallel

from ..ported import harness
from .test_collectives import over_mpi

WHOLE = StateDictOptions(full_state_dict=True)
ON_RANK_0 = StateDictOptions(full_state_dict=True, cpu_offload=True)
FROM_RANK_0 = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
FLAT = StateDictOptions(flatten_optimizer_state_dict=True)
DIVISIONS = [
    ("process", 1),
    ("ddp", 2),
    ("zero1", 3),
    ("zero2", 2),
    ("fully", 4),
    ("columns", 3),
    ("fully", 2),
    ("both", 4),
]


def model(seed):
    made = rg.nn.Sequential(rg.nn.Linear(4, 7), rg.nn.Tanh(), rg.nn.BatchNorm1d(7), rg.nn.Linear(7, 3)).double()
    for i, p in enumerate(made.parameters()):
        p.data = rg.from_numpy(np.random.default_rng([seed, i]).standard_normal(p.shape))
    return made.eval()


def divided(kind, seed, lr):
    """Return the module to call, and the optimizer."""
    module, options = model(seed), {"lr": lr, "betas": (0.8, 0.9), "amsgrad": True}
    if kind == "fully":
        fully_shard(module[0])
        fully_shard(module)
    elif kind == "columns":
        fully_shard(module[0], shard_placement_fn=lambda p: Shard(-1))
        fully_shard(module)
    elif kind == "both":
        mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        plan = {"0": ColwiseParallel(output_layouts=Replicate()), "3": RowwiseParallel(input_layouts=Replicate())}
        fully_shard(parallelize_module(module, mesh["tp"], plan), mesh=mesh["dp"])
    groups = [{"params": [p for p in module.parameters() if (p.ndim == 1) == vectors]} for vectors in (False, True)]
    if kind in ("zero1", "zero2"):
        shares = kind == "zero2"
        optimizer = ZeroRedundancyOptimizer(groups, rg.optim.AdamW, shard_gradients=shares, **options)
    else:
        optimizer = rg.optim.AdamW(groups, **options)
    return DistributedDataParallel(module) if kind in ("ddp", "zero1") else module, optimizer


def train(module, optimizer, steps):
    for step in steps:
        x = rg.from_numpy(np.random.default_rng([9, step]).standard_normal((12, 4)))
        optimizer.zero_grad()
        meshes = [p.device_mesh for p in module.parameters() if isinstance(p, DTensor) and p.device_mesh.ndim == 2]
        rank, count = (meshes[0].get_local_rank(0), 2) if meshes else (dist.get_rank(), dist.get_world_size())
        (module(x.chunk(count)[rank]) ** 2).mean().backward()
        optimizer.step()


def numbers(module):
    module = module.module if isinstance(module, DistributedDataParallel) else module
    return {name: x.numpy().copy() for name, x in full_state_dict(module).items()}


@pytest.fixture(scope="module")
def expected():
    def script():
        module, optimizer = divided("process", 0, 0.02)
        train(module, optimizer, range(4))
        return numbers(module)

    return dist.run_threads(script, 1)[0]


@pytest.mark.parametrize(("saved_by", "resumed_by"), list(itertools.product(DIVISIONS, DIVISIONS)), ids=str)
def test_any_division_continues_what_any_other_has_saved(tmp_path, expected, saved_by, resumed_by):
    def save():
        module, optimizer = divided(saved_by[0], 0, 0.02)
        train(module, optimizer, range(2))
        of_model, of_optimizer = get_state_dict(module, optimizer)
        checkpoint.save({"model": of_model, "optimizer": of_optimizer}, checkpoint_id=tmp_path)

    def resume():
        module, optimizer = divided(resumed_by[0], 1, 1.0)
        of_model, of_optimizer = get_state_dict(module, optimizer)
        state = {"model": of_model, "optimizer": of_optimizer}
        checkpoint.load(state, checkpoint_id=tmp_path)
        of_model, of_optimizer = state["model"], state["optimizer"]
        set_state_dict(module, optimizer, model_state_dict=of_model, optim_state_dict=of_optimizer)
        assert [group["betas"] for group in optimizer.param_groups] == [(0.8, 0.9)] * 2
        train(module, optimizer, range(2, 4))
        return numbers(module)

    dist.run_threads(save, saved_by[1])
    for found in dist.run_threads(resume, resumed_by[1]):
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.parametrize(("given_by", "set_by"), list(itertools.product(DIVISIONS[::2], DIVISIONS[1::2])), ids=str)
def test_whole_states_of_rank_0_are_given_to_all_ranks_of_any_division(expected, given_by, set_by):
    def give():
        module, optimizer = divided(given_by[0], 0, 0.02)
        train(module, optimizer, range(2))
        states = get_state_dict(module, optimizer, options=ON_RANK_0)
        assert [bool(state) for state in states] == [dist.get_rank() == 0] * 2
        for each in get_state_dict(module, optimizer, options=WHOLE)[1]["state"].values():
            assert type(each["exp_avg"]) is rg.Tensor
        return copy.deepcopy(states)

    of_model, of_optimizer = dist.run_threads(give, given_by[1])[0]

    def take():
        module, optimizer = divided(set_by[0], 1, 1.0)
        first = dist.get_rank() == 0
        set_model_state_dict(module, of_model if first else {}, options=FROM_RANK_0)
        set_optimizer_state_dict(module, optimizer, of_optimizer if first else {}, options=FROM_RANK_0)
        train(module, optimizer, range(2, 4))
        return numbers(module)

    for found in dist.run_threads(take, set_by[1]):
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.parametrize(("saved_by", "resumed_by"), list(itertools.product(DIVISIONS[::2], DIVISIONS[1::2])), ids=str)
def test_states_with_flat_names_are_resumed_by_any_division(expected, tmp_path, saved_by, resumed_by):
    def save():
        module, optimizer = divided(saved_by[0], 0, 0.02)
        train(module, optimizer, range(2))
        of_model, of_optimizer = get_state_dict(module, optimizer, options=FLAT)
        assert of_optimizer["param_groups.0.bias.betas"] == (0.8, 0.9)
        checkpoint.save({"model": of_model, "optimizer": of_optimizer}, checkpoint_id=tmp_path)
        whole = StateDictOptions(full_state_dict=True, cpu_offload=True, flatten_optimizer_state_dict=True)
        return copy.deepcopy(get_optimizer_state_dict(module, optimizer, options=whole))

    def resume(given):
        module, optimizer = divided(resumed_by[0], 1, 1.0)
        of_model, of_optimizer = get_state_dict(module, optimizer, options=FLAT)
        state = {"model": of_model, "optimizer": of_optimizer}
        checkpoint.load(state, checkpoint_id=tmp_path)
        set_model_state_dict(module, state["model"], options=FLAT)
        if given:
            set_optimizer_state_dict(module, optimizer, given if dist.get_rank() == 0 else {}, options=FROM_RANK_0)
        else:
            set_optimizer_state_dict(module, optimizer, state["optimizer"], options=FLAT)
        train(module, optimizer, range(2, 4))
        return numbers(module)

    whole = dist.run_threads(save, saved_by[1])[0]
    assert whole["state.3.weight.exp_avg"].shape == (3, 7)
    for given in (None, whole):
        for found in dist.run_threads(resume, resumed_by[1], given):
            for name, value in expected.items():
                np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-12, err_msg=name)


def test_a_divided_model_on_meta_gets_memory_and_the_values_of_rank_0():
    source = model(3).state_dict()

    def script():
        with rg.device("meta"):
            module = model(4)
        fully_shard(module)
        found = set_model_state_dict(module, source if dist.get_rank() == 0 else {}, options=FROM_RANK_0)
        assert found.missing_keys == found.unexpected_keys == []
        return numbers(module)

    for found in dist.run_threads(script, 2):
        for name, value in source.items():
            np.testing.assert_array_equal(found[name], value.numpy())


def test_the_state_of_the_optimizer_of_a_divided_model_is_saved_as_parts(tmp_path):
    def stepped(seed):
        module, optimizer = divided("fully", seed, 0.02)
        train(module, optimizer, range(2))
        return module, optimizer

    def save():
        _, optimizer = stepped(0)
        assert isinstance(optimizer.state_dict()["state"][0]["exp_avg"], DTensor)
        checkpoint.save({"optimizer": optimizer}, checkpoint_id=tmp_path)

    def load():
        _, optimizer = stepped(1)
        checkpoint.load({"optimizer": optimizer}, checkpoint_id=tmp_path)
        moments = [state["exp_avg"] for state in optimizer.state_dict()["state"].values()]
        return [m.full_tensor().numpy() for m in moments]

    dist.run_threads(save, 3)

    def save_whole():
        return [state["exp_avg"].full_tensor() for state in stepped(0)[1].state_dict()["state"].values()]

    whole = dist.run_threads(save_whole, 1)[0]
    for found in dist.run_threads(load, 2):
        for mine, expected in zip(found, whole, strict=True):
            np.testing.assert_allclose(mine, expected.numpy(), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("kind", ["SGD", "AdamW", "Adagrad", "RMSprop", "NAdam"])
def test_asking_for_the_state_before_the_first_step_changes_nothing(tmp_path, kind):
    options = {"momentum": 0.9} if kind == "SGD" else {}

    def script(asks):
        module = model(0)
        optimizer = getattr(rg.optim, kind)(module.parameters(), lr=0.1, **options)
        if asks:
            names = [sorted(state) for state in optimizer.state.values()]  # Adagrad has states from the start
            of_model, of_optimizer = get_state_dict(module, optimizer)
            assert all(of_optimizer["state"].values())
            assert [sorted(state) for state in optimizer.state.values()] == names
            assert not any(state.get("step", 0) for state in optimizer.state.values())
            assert all(p.grad is None for p in module.parameters())
            if asks == "saves":
                checkpoint.save({"optimizer": of_optimizer}, checkpoint_id=tmp_path)
                checkpoint.load({"optimizer": of_optimizer}, checkpoint_id=tmp_path)
            if asks != "asks":
                set_state_dict(module, optimizer, model_state_dict=of_model, optim_state_dict=of_optimizer)
        train(module, optimizer, range(2))
        return numbers(module)

    expected = dist.run_threads(script, 1, "")[0]
    for asks in ("asks", "sets", "saves"):
        for name, value in dist.run_threads(script, 1, asks)[0].items():
            np.testing.assert_array_equal(value, expected[name])


def test_frozen_parameters_are_left_out_and_several_optimizers_have_one_state():
    module = model(0)
    module[0].weight.requires_grad_(False)
    optimizers = [rg.optim.SGD(module[0].parameters(), lr=0.1, momentum=0.5), rg.optim.Adam(module[3].parameters())]
    options = StateDictOptions(ignore_frozen_params=True)
    assert "0.weight" not in get_model_state_dict(module, options=options)
    found = get_optimizer_state_dict(module, optimizers, options=options)
    assert list(found["state"]) == ["0.bias", "3.weight", "3.bias"]
    assert [group["params"] for group in found["param_groups"]] == [["0.bias"], ["3.weight", "3.bias"]]
    found = get_optimizer_state_dict(module, optimizers)
    found["param_groups"][1]["lr"] = 7.0
    set_optimizer_state_dict(module, optimizers, found)
    assert [optimizer.param_groups[0]["lr"] for optimizer in optimizers] == [0.1, 7.0]


def test_what_has_no_meaning_is_refused_with_the_way_out():
    module = model(0)
    optimizer = rg.optim.SGD(module.parameters(), lr=0.1)
    with pytest.raises(NotImplementedError, match="pass the submodule as the model"):
        get_model_state_dict(module, submodules={module[0]})
    optimizer.state[module[0].weight] = {"history": [1.0]}
    with pytest.raises(NotImplementedError, match=r"in the state of 0\.weight, got list for history"):
        get_optimizer_state_dict(module, optimizer, options=FLAT)
    optimizer.state.clear()
    flat = get_optimizer_state_dict(module, optimizer, options=FLAT)
    with pytest.raises(RuntimeError, match=r"0\.weight and 3\.bias of one group have other settings"):
        set_optimizer_state_dict(module, optimizer, flat | {"param_groups.3.bias.lr": 0.2})
    with pytest.raises(ValueError, match="broadcast_from_rank0 needs full_state_dict=True"):
        set_model_state_dict(module, {}, options=StateDictOptions(broadcast_from_rank0=True))
    with pytest.raises(ValueError, match=r"other parameters in the state: 0\.weight differ"):
        set_optimizer_state_dict(module, optimizer, {"state": {}, "param_groups": [
            {"params": [name for name, _ in module.named_parameters()][1:], "lr": 0.1}
        ]})  # fmt: skip

    def another_part():
        module, optimizer = divided("fully", 0, 0.1)
        train(module, optimizer, [0])
        state = get_optimizer_state_dict(module, optimizer)
        moments = state["state"]["0.weight"]
        moments["exp_avg"] = checkpoint.layout.LocalSlice(rg.zeros(1, 4, dtype=rg.float64), (7, 4), 8)
        with pytest.raises(ValueError, match="use `load`, which reads those of any division"):
            set_optimizer_state_dict(module, optimizer, state)

    dist.run_threads(another_part, 2)


def test_a_parameter_that_no_step_has_used_has_no_state_after_loading_either(tmp_path):
    def make():
        module = model(0)
        return module, rg.optim.Adam(module.parameters(), lr=0.1)

    module, optimizer = make()
    module[0](rg.ones(1, 4).double()).sum().backward()
    optimizer.step()
    checkpoint.save({"optimizer": get_optimizer_state_dict(module, optimizer)}, checkpoint_id=tmp_path)
    module, optimizer = make()
    state = {"optimizer": get_optimizer_state_dict(module, optimizer)}
    checkpoint.load(state, checkpoint_id=tmp_path)
    set_optimizer_state_dict(module, optimizer, state["optimizer"])
    assert [bool(optimizer.state.get(p)) for p in module.parameters()] == [True, True, False, False, False, False]


class Counter:
    """An object with a state of its own."""

    def __init__(self, count):
        self.count, self.history = count, (count, [count])

    def state_dict(self):
        return {"count": self.count, "history": self.history}

    def load_state_dict(self, state):
        self.count, self.history = state["count"], state["history"]


def test_objects_with_a_state_are_saved_and_loaded_by_their_methods(tmp_path):
    saved = {"counter": Counter(3), "model": model(0), "pair": (1, "a"), "empty": {}}
    checkpoint.save(saved, storage_writer=checkpoint.FileSystemWriter(tmp_path))
    found = {"counter": Counter(0), "model": model(1), "pair": (0, ""), "empty": {}}
    counter, module = found["counter"], found["model"]
    checkpoint.load(found, storage_reader=checkpoint.FileSystemReader(tmp_path))
    assert isinstance(counter, checkpoint.Stateful)
    assert found["counter"] is counter
    assert found["model"] is module
    assert (counter.count, counter.history, found["pair"]) == (3, (3, [3]), (1, "a"))
    assert rg.equal(module[0].weight, saved["model"][0].weight)
    with pytest.raises(ValueError, match="pass checkpoint_id=PATH"):
        checkpoint.load(found)


def test_names_that_the_checkpoint_lacks_are_left_if_the_planner_permits_it(tmp_path):
    checkpoint.save({"x": rg.ones(2)}, checkpoint_id=tmp_path)
    found = {"x": rg.zeros(2), "y": rg.zeros(2), "n": 5}
    planner = checkpoint.DefaultLoadPlanner(allow_partial_load=True)
    checkpoint.load(found, checkpoint_id=tmp_path, planner=planner)
    assert (found["x"].tolist(), found["y"].tolist(), found["n"]) == ([1, 1], [0, 0], 5)


def test_a_value_that_only_one_rank_has_is_saved(tmp_path):
    def script():
        own = {0: {"all": "of 0"}, 1: {"all": "of 1", "own": 1.5}}[dist.get_rank()]
        checkpoint.save(own, checkpoint_id=tmp_path)

    dist.run_threads(script, 2)
    assert layout.read_manifest(tmp_path)["values"] == {"all": "of 0", "own": 1.5}


def test_destroying_the_group_completes_saves_in_the_background(tmp_path):
    def script():
        checkpoint.async_save({"x": rg.ones(4)}, checkpoint_id=tmp_path)
        dist.destroy_process_group()

    dist.run_threads(script, 2)
    found = {"x": rg.zeros(4)}
    checkpoint.load(found, checkpoint_id=tmp_path)
    assert found["x"].tolist() == [1.0] * 4


@pytest.mark.parametrize("name", ["dcp_app_state", "fsdp2_transformer"])
def test_a_script_written_for_pytorch_saves_and_resumes_over_mpi(tmp_path, name):
    source = ast.parse((harness.FOLDER / f"{name}.py").read_text())
    changed = tmp_path / f"{name}.py"
    changed.write_text(ast.unparse(harness.Imports("retrograd").visit(source)))
    first, second = over_mpi(tmp_path, changed)
    assert first["losses"] == second["losses"]
    assert min(first["losses"]) < first["losses"][0]


@pytest.mark.parametrize("kind", ["SGD", "Adam", "Adagrad"])
def test_an_optimizer_loads_states_that_are_whole_or_divided_in_another_way(kind):
    def stepped(dim):
        module = fully_shard(model(0), shard_placement_fn=lambda p: Shard(dim if p.ndim > 1 else 0))
        options = {"momentum": 0.9} if kind == "SGD" else {}
        optimizer = getattr(rg.optim, kind)(module.parameters(), lr=0.1, **options)
        (module(rg.ones(2, 4, dtype=rg.float64)) ** 2).sum().backward()
        optimizer.step()
        return optimizer

    def tensors(optimizer):
        return [x for state in optimizer.state.values() for x in state.values() if isinstance(x, DTensor)]

    def script():
        rows = stepped(0)
        saved, expected = rows.state_dict(), [x.full_tensor() for x in tensors(rows)]
        gathered = {
            number: {name: x.full_tensor() if isinstance(x, DTensor) else x for name, x in state.items()}
            for number, state in saved["state"].items()
        }
        for given in (saved, {**saved, "state": gathered}):
            columns = stepped(1)
            for x in tensors(columns):
                x.zero_()
            columns.load_state_dict(given)
            assert len(tensors(columns)) == len(expected) > 0
            assert {x.placements for x in tensors(columns)} == {(Shard(0),), (Shard(1),)}
            assert all(rg.equal(x.full_tensor(), y) for x, y in zip(tensors(columns), expected, strict=True))

    dist.run_threads(script, 3)
