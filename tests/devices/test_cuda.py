"""`device="cuda"` and `rg.cuda` over a stand-in for CuPy, which has CuPy's names only and counts all transfers."""

import numpy as np
import pytest
from tests.devices import cuda_on_host, cupy_stand_in
from tests.devices.cupy_stand_in import calls, strict
from tests.devices.test_training import CASES

import retrograd as rg
from retrograd import nn
from retrograd.nn import functional as F
from retrograd.utils.data import DataLoader, TensorDataset

needs_compiler = pytest.mark.skipif(cuda_on_host.COMPILER is None, reason="needs g++ to run CUDA C++ on the CPU")


@pytest.fixture(autouse=True)
def device():
    calls.clear()
    with cupy_stand_in.installed() as found:
        yield found


def is_there(x):
    return type(rg.core.tensor.unwrap_all(x)) is strict.ndarray


def test_questions_about_the_device_have_the_answers_of_cupy():
    assert rg.cuda.is_available()
    assert rg.cuda.is_initialized()
    assert (rg.cuda.device_count(), rg.cuda.current_device()) == (2, 0)
    assert rg.cuda.get_device_name() == rg.cuda.get_device_properties("cuda:0").name == "Stand-in"
    assert rg.cuda.get_device_capability() == (9, 0)
    assert rg.cuda.get_arch_list() == ["sm_90"]
    assert rg.cuda.is_bf16_supported()
    assert rg.cuda.mem_get_info() == (3 << 30, 4 << 30)
    assert "multi_processor_count=7" in repr(rg.cuda.get_device_properties())


def test_the_accelerator_is_the_cuda_device():
    assert rg.accelerator.is_available()
    assert rg.accelerator.current_accelerator() == rg.device("cuda")
    assert (rg.accelerator.device_count(), rg.accelerator.current_device_index()) == (2, 0)
    with rg.accelerator.device_index(1):
        assert rg.cuda.current_device() == 1
    with rg.accelerator.device_index(None):
        assert rg.cuda.current_device() == 0
    rg.accelerator.set_device_index("cuda:1")
    assert rg.accelerator.current_device_index() == 1
    rg.accelerator.set_device_index(0)
    rg.accelerator.synchronize()
    assert rg.accelerator.get_memory_info() == rg.cuda.mem_get_info()
    assert rg.accelerator.memory_allocated() == rg.cuda.memory_allocated()


def test_tensors_are_made_on_and_moved_to_the_device_and_back():
    x = rg.ones(2, 3)
    there = [x.cuda(), x.to("cuda"), x.to("cuda:0", non_blocking=True), rg.zeros(2, device="cuda"), rg.rand(3).cuda(0)]
    assert all(map(is_there, there))
    assert {t.device for t in there} == {rg.device("cuda")}
    assert [t.is_cuda for t in (there[0], x)] == [True, False]
    assert there[0].cpu().tolist() == x.tolist()
    assert there[0].get_device() == 0


def test_another_device_can_be_chosen_for_all_tensors():
    with pytest.raises(RuntimeError, match=r"tensors are on one device of a type.*cuda:1"):
        rg.ones(2, device="cuda:1")
    with rg.cuda.device(1):
        assert rg.ones(2, device="cuda:1").is_cuda
        assert rg.cuda.current_device() == 1
    assert rg.cuda.current_device() == 0
    rg.cuda.set_device("cuda:1")
    assert rg.cuda.current_device() == 1
    with pytest.raises(RuntimeError, match=r"invalid device ordinal.*2 devices, got 2"):
        rg.cuda.set_device(2)
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        rg.cuda.synchronize("cpu")


def test_streams_and_events_make_the_calls_of_cupy_in_order():
    stream, start, end = rg.cuda.Stream(), rg.cuda.Event(enable_timing=True), rg.cuda.Event(enable_timing=True)
    address = stream.cuda_stream
    assert stream != rg.cuda.current_stream() == rg.cuda.default_stream()
    assert isinstance(rg.cuda.stream(stream), rg.cuda.StreamContext)
    with rg.cuda.stream(stream):
        assert rg.cuda.current_stream() == stream
        start.record()
        end.record()
    assert rg.cuda.current_stream() == rg.cuda.default_stream()
    rg.cuda.current_stream().wait_event(end)
    stream.wait_stream(rg.cuda.default_stream())
    end.synchronize()
    stream.synchronize()
    rg.cuda.synchronize()
    kinds = [(kind, *(numbers[-1:] if kind == "record" else ())) for kind, *numbers in calls]
    assert kinds == [
        ("record", address), ("record", address), ("wait",), ("record", 0), ("wait",), ("synchronize event",),
        ("synchronize stream",), ("synchronize device",),
    ]  # fmt: skip
    assert start.elapsed_time(end) > 0
    assert end.query()
    assert stream.query()


def test_a_graph_is_recorded_on_a_stream_and_a_pool_of_its_own():
    graph = rg.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="nothing was recorded"):
        graph.replay()
    x = rg.ones(3, device="cuda")
    with rg.cuda.graph(graph):
        assert rg.cuda.is_current_stream_capturing()
        y = x * 2
    assert not rg.cuda.is_current_stream_capturing()
    graph.replay()
    kinds = [kind for kind, *_ in calls]
    recorded = ["record", "wait", "use pool", "begin capture", "end capture", "use default pool", "record", "wait"]
    assert kinds == [*recorded, "launch graph"]
    assert calls[-1] == ("launch graph", 0)
    assert y.tolist() == [2.0, 2.0, 2.0]


@needs_compiler
@pytest.mark.parametrize("case", CASES)
def test_a_step_of_training_is_recorded_without_cublas_which_cupy_refuses(case):
    def passes():
        model.zero_grad()
        loss = loss_of(model, *data)
        loss.backward()
        return [loss, nn.utils.clip_grad_norm_(model.parameters(), 0.5), *[p.grad for p in model.parameters()]]

    make, data, loss_of, _ = CASES[case]
    model, data = make().to("cuda"), [x.to("cuda") for x in data]
    expected = [x.numpy(force=True) for x in passes()]
    with rg.cuda.graph(rg.cuda.CUDAGraph()), strict.counting() as moved:
        found = passes()
    assert sum(moved.values()) == 0
    for on_device, value in zip(found, expected, strict=True):
        np.testing.assert_allclose(on_device.numpy(force=True), value, rtol=1e-4, atol=1e-6)


@needs_compiler
@pytest.mark.parametrize(
    "shapes", [((3, 5), (5, 2)), ((70, 33), (33, 19)), ((2, 1, 4, 3), (5, 3, 6)), ((4,), (4,)), ((4,), (2, 4, 3)),
               ((2, 3, 4), (4,)), ((0, 3), (3, 2)), ((2, 0), (0, 3))],
)  # fmt: skip
def test_a_recorded_product_is_that_of_the_library(shapes):
    a, b = (rg.rand(*shape, dtype=rg.float64) for shape in shapes)
    with rg.cuda.graph(rg.cuda.CUDAGraph()):
        found = a.to("cuda") @ b.to("cuda")
    np.testing.assert_allclose(found.cpu().numpy(), (a @ b).numpy(), rtol=1e-12)


def test_an_error_within_a_recording_ends_it_and_leaves_no_graph():
    graph = rg.cuda.CUDAGraph()
    with pytest.raises(ZeroDivisionError), rg.cuda.graph(graph):
        raise ZeroDivisionError
    assert [kind for kind, *_ in calls].count("end capture") == 1
    assert rg.cuda.current_stream() == rg.cuda.default_stream()
    with pytest.raises(RuntimeError, match="nothing was recorded"):
        graph.replay()


def test_random_numbers_are_refused_in_a_recording():
    with pytest.raises(RuntimeError, match="would repeat them"), rg.cuda.graph(rg.cuda.CUDAGraph()):
        rg.rand(3, device="cuda")


def test_memory_is_that_of_the_pool():
    before = rg.cuda.memory_allocated()
    rg.cuda.reset_peak_memory_stats()
    x = rg.zeros(1000, device="cuda")
    assert rg.cuda.memory_allocated() - before >= x.nbytes
    peak = rg.cuda.max_memory_allocated()
    assert peak >= rg.cuda.memory_allocated()
    del x
    assert rg.cuda.max_memory_allocated() == peak > rg.cuda.memory_allocated()
    assert rg.cuda.memory_reserved() == rg.cuda.max_memory_reserved() > rg.cuda.memory_allocated()
    assert "reserved" in rg.cuda.memory_summary()
    rg.cuda.empty_cache()
    assert calls[-1] == ("free all blocks",)


@needs_compiler
def test_random_numbers_are_those_of_the_cpu_and_drawn_on_the_device():
    rg.manual_seed(3)
    expected = [rg.rand(5).tolist(), rg.rand(3, dtype=rg.float64).tolist(), rg.rand(1).tolist()]
    rg.cuda.manual_seed_all(3)
    with strict.counting() as moved:
        found = [rg.rand(5, device="cuda"), rg.rand(3, dtype=rg.float64, device="cuda"), rg.rand(1, device="cuda")]
    assert sum(moved.values()) == 0
    assert [x.tolist() for x in found] == expected
    state = rg.cuda.get_rng_state()
    first = rg.rand(2, device="cuda").tolist()
    rg.cuda.set_rng_state_all([state])
    assert rg.rand(2, device="cuda").tolist() == first
    assert rg.cuda.initial_seed() == 3


def test_pinned_memory_is_copied_once():
    x = rg.arange(4.0)
    assert not x.is_pinned()
    pinned = x.pin_memory()
    assert pinned.is_pinned()
    assert pinned[1:].is_pinned()
    assert pinned.pin_memory() is pinned
    assert pinned.to("cuda", non_blocking=True).tolist() == x.tolist()
    with pytest.raises(RuntimeError, match="cannot pin a tensor on cuda"):
        x.cuda().pin_memory()


def test_loaders_give_batches_in_pinned_memory():
    loader = DataLoader(TensorDataset(rg.arange(4), rg.ones(4, 2)), batch_size=2, pin_memory=True)
    batches = list(loader)
    assert all(x.is_pinned() and y.is_pinned() for x, y in batches)
    assert batches[1][0].tolist() == [2, 3]


def test_arrays_on_the_device_are_exchanged_without_copies():
    x = rg.ones(3, device="cuda")
    array = cupy_stand_in.from_dlpack(x)
    array[0] = 5
    assert x.tolist() == [5.0, 1.0, 1.0]
    back = rg.from_dlpack(array)
    back[1] = 7
    assert back.device == "cuda"
    assert x.tolist() == [5.0, 7.0, 1.0]
    assert x.__dlpack_device__() == (cupy_stand_in.CUDA, 0)
    assert rg.from_dlpack(rg.ones(2).numpy()).device == "cpu"


def test_products_in_tf32_are_chosen_by_the_settings_of_pytorch():
    default, tf32 = 1, 7
    rg.backends.cuda.matmul.allow_tf32 = True
    assert cupy_stand_in.compute_types["float32"] == tf32
    rg.backends.cuda.matmul.allow_tf32 = False
    assert cupy_stand_in.compute_types["float32"] == default
    rg.set_float32_matmul_precision("high")
    assert cupy_stand_in.compute_types["float32"] == tf32
    assert rg.backends.cuda.matmul.allow_tf32
    rg.set_float32_matmul_precision("highest")
    assert cupy_stand_in.compute_types["float32"] == default


@needs_compiler
@pytest.mark.parametrize("dtype", [rg.float16, rg.bfloat16])
def test_autocast_computes_in_half_precision_on_the_device(dtype):
    x, layer = rg.rand(4, 3, device="cuda"), nn.Linear(3, 2).cuda()
    assert rg.amp.is_autocast_available("cuda")
    with rg.autocast("cuda", dtype=dtype):
        y = layer(x)
        assert rg.is_autocast_enabled("cuda")
    assert y.dtype == dtype
    F.mse_loss(y.float(), rg.zeros(4, 2, device="cuda")).backward()
    assert layer.weight.grad.dtype == rg.float32
    assert is_there(layer.weight.grad)
    with rg.autocast("cuda"):
        assert layer(x).dtype == rg.float16


@needs_compiler
def test_kernels_of_the_device_are_used_and_give_the_numbers_of_the_cpu():
    model = nn.Sequential(nn.Linear(3, 8), nn.GELU(), nn.LayerNorm(8), nn.Dropout(0.5), nn.Linear(8, 2))
    x, target = rg.rand(5, 3), rg.tensor([0, 1, 1, 0, 1])
    losses = []
    for where in ("cpu", "cuda"):
        rg.manual_seed(0)
        for module in model:
            if hasattr(module, "reset_parameters"):
                module.cpu().reset_parameters()
        model.to(where)
        optimizer = rg.optim.AdamW(model.parameters(), 0.01)
        for _ in range(2):
            optimizer.zero_grad()
            with strict.counting() as moved:
                loss = F.cross_entropy(model(x.to(where)), target.to(where))
            loss.backward()
            optimizer.step()
        assert moved == {"to host": 0, "from host": 2 * (where == "cuda")}  # x and target
        losses.append(loss.item())
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)


@needs_compiler
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"attn_mask": rg.arange(20).reshape(4, 5) % 3 > 0}])
def test_attention_has_its_kernels_between_products_and_the_numbers_of_the_cpu(options, device):
    rg.manual_seed(0)
    operands = [rg.rand(2, 3, rows, 6, dtype=rg.float64) for rows in (4, 5, 5)]
    found = []
    for where in ("cpu", "cuda"):
        q, k, v = (x.detach().to(where).requires_grad_() for x in operands)
        there = {name: x.to(where) if isinstance(x, rg.Tensor) else x for name, x in options.items()}
        out = F.scaled_dot_product_attention(q, k, v, **there)
        out.square().sum().backward()
        found.append([x.detach().cpu().numpy() for x in (out, q.grad, k.grad, v.grad)])
    assert {"attention_weights<double>", "attention_pull<double>"} <= device._launch._kernels.keys()
    for on_device, expected in zip(found[1], found[0], strict=True):
        np.testing.assert_allclose(on_device, expected, rtol=1e-9, atol=1e-12)


@needs_compiler
@pytest.mark.parametrize("dtype", [rg.float64, rg.int64])
def test_sparse_products_are_those_of_the_library_and_wait_for_nothing(dtype):
    rg.manual_seed(0)
    matrix, dense = rg.randint(-2, 2, (5, 4)).to(dtype), rg.randint(-9, 9, (4, 3)).to(dtype)
    sparse, there = matrix.to("cuda").to_sparse(), dense.to("cuda")
    sparse @ there  # copies the coordinates
    with strict.counting() as moved:
        out = sparse @ there
    assert moved == {"to host": 0, "from host": 0}
    assert is_there(out)
    assert out.tolist() == (matrix @ dense).tolist()
