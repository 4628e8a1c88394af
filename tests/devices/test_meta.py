"""Tensors on the device "meta" have shapes and dtypes without memory: results are as in host memory, without values."""

import copy
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from tests.devices.laws import EXEMPT, HOST, OBSERVED, OPERATORS, Move, backward, forward

import retrograd as rg
from retrograd import nn
from retrograd.backend import devices
from retrograd.backend.devices import device_named
from retrograd.backend.meta import MetaDevice
from retrograd.core import Tensor, registry
from retrograd.testing import samples_of

MOVE = Move(device_named("meta"))
# Operators whose results have a size, or are computed in steps, that depend on values; or that read memory.
BY_VALUE = {
    "as_strided", "as_strided_scatter", "bincount", "ctc_loss", "higher_order.cond", "higher_order.while_loop",
    "linalg.lstsq", "masked_select", "nonzero",
    "nonzero_indices", "pdist", "repeat_indices", "repeat_interleave", "unique", "unique_consecutive",
    "unique_indices", "unique_values",
}  # fmt: skip


def avals(results):
    return [x.aval if isinstance(x, Tensor) else x for x in results]


def expected(law, op, args, params):
    try:
        return avals(law(op, args, params, HOST))
    except (RuntimeError, NotImplementedError, TypeError, ValueError):
        return None  # no derivative: the laws of host memory say so


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("law", [forward, backward])
def test_results_of_operators_have_the_shapes_and_dtypes_of_those_in_host_memory(law):
    left = {*EXEMPT, *BY_VALUE, *(OBSERVED if law is backward else ())}
    for name in sorted(set(OPERATORS) - left):
        op = registry[name]
        for args, params in samples_of(op):
            found = expected(law, op, args, params)
            if found is not None:
                on_meta = law(op, MOVE(args), MOVE(params), MOVE)
                assert avals(on_meta) == found, name
                assert all(x.device == "meta" for x in on_meta if isinstance(x, Tensor) and args), name


@pytest.mark.parametrize("name", ["nonzero", "unique", "bincount"])
def test_operators_whose_shapes_depend_on_values_are_refused(name):
    (args, params), *_ = samples_of(registry[name])
    with pytest.raises(NotImplementedError, match="depend"):
        registry[name](*MOVE(args), **MOVE(params))


def test_a_model_is_made_trained_and_copied_without_memory_for_its_elements():
    with rg.device("meta"):
        model = nn.TransformerEncoder(nn.TransformerEncoderLayer(1 << 16, 16, 1 << 18, batch_first=True), 2)
        x = rg.randn(4, 1 << 10, 1 << 16)
    optimizer = rg.optim.AdamW(model.parameters())
    y = copy.deepcopy(model)(x)
    model(x).sum().backward()
    optimizer.step()
    assert (y.shape, y.device) == ((4, 1 << 10, 1 << 16), "meta")
    assert sum(p.nbytes for p in model.parameters()) > 1 << 38
    for p in model.parameters():
        assert (p.grad.aval, p.grad.device, optimizer.state[p]["exp_avg"].aval) == (p.aval, "meta", p.aval)


def test_a_block_of_a_device_ends_and_may_be_inside_another():
    meta = rg.device("meta")
    with meta:
        with rg.device("cpu"), meta:
            assert rg.ones(2).device == "meta"
        with rg.device("cpu"):
            assert rg.ones(2).device == "cpu"
        assert rg.tensor([1.0, 2.0]).device == "meta"
    assert rg.ones(2).device == "cpu"
    with pytest.raises(ZeroDivisionError), meta:
        1 / 0  # noqa: B018
    assert rg.get_default_device() == "cpu"
    with pytest.raises(RuntimeError, match="device"), rg.device("mps"):
        pass


def test_random_tensors_on_meta_draw_no_numbers():
    rg.manual_seed(0)
    state = rg.get_rng_state()
    nn.init.kaiming_uniform_(nn.Linear(3, 4, device="meta").weight)
    nn.functional.dropout(rg.rand(3, device="meta"))
    assert repr(rg.get_rng_state()) == repr(state)


def test_there_are_no_values_to_read():
    x = rg.ones(2, 3, device="meta")
    for read in (x.tolist, x.cpu, x.sum().item, lambda: bool(x.sum() > 0)):
        with pytest.raises(NotImplementedError, match=r"no data.*to_empty"):
            read()
    with pytest.raises(RuntimeError, match="at least two devices, meta and cpu"):
        x + rg.ones(2, 3)
    assert repr(x) == "tensor(..., device='meta', size=(2, 3), dtype=float32)"


def test_views_share_the_graph_of_their_base_after_writes():
    x = rg.ones(4, 3, device="meta", requires_grad=True) * 1
    x[1:].mul_(2)
    assert x.grad_fn.name() == "CopySlices"
    assert x.view(-1)[2:].t().shape == (10,)


def test_to_empty_keeps_parameters_and_gives_them_memory():
    with rg.device("meta"):
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    before = list(model.parameters())
    assert model.to_empty(device="cpu") is model
    assert all(a is b for a, b in zip(before, model.parameters(), strict=True))
    state = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).state_dict()
    model.load_state_dict(state)
    assert all(rg.equal(x, state[name]) for name, x in model.state_dict().items())
    assert model(rg.ones(5, 3)).device == "cpu"
    assert nn.Linear(3, 4).to("meta").weight.device == "meta"


def test_threads_share_the_device(monkeypatch):
    """Otherwise tensors of the first one are moved to the second, which fails."""
    made, found = [], []
    other = threading.Thread(target=lambda: found.append(devices.device_named("meta")))

    class SlowDevice(MetaDevice):
        def __init__(self):
            made.append(self)
            if len(made) == 1:
                other.start()
                other.join(timeout=0.2)  # any load: it waits for this thread, which holds the lock

    monkeypatch.setattr(devices, "array_devices", {})
    monkeypatch.setattr(devices, "namespaces", {})
    monkeypatch.setattr(devices, "meta_device", lambda: SimpleNamespace(MetaDevice=SlowDevice))
    found.append(devices.device_named("meta"))
    other.join()
    assert found == made * 2


@pytest.mark.parametrize("make", [rg.zeros_like, rg.ones_like, rg.empty_like, rg.rand_like, rg.randn_like])
def test_a_tensor_without_memory_is_a_model_of_one_in_host_memory(make):
    model = rg.empty(3, 2, device="meta").T
    made = make(model, device="cpu")
    assert not made.is_meta
    assert (made.shape, made.stride(), made.dtype) == (model.shape, model.stride(), model.dtype)
    made.tolist()


def test_from_numpy_shares_the_memory_of_the_array_on_any_current_device():
    array = np.zeros(2)
    with rg.device("meta"):
        x = rg.from_numpy(array)
        assert rg.zeros(2).is_meta
    array[0] = 5
    assert x.tolist() == [5, 0]
