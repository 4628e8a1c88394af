"""What only a real GPU can show: the laws of operators there, training steps, and that a step waits for nothing.

All tests are skipped, and counted in the report, where CuPy or a GPU is missing. `make device` runs them.
"""

import numpy as np
import pytest
from tests.devices.laws import LAWS, Move, failures
from tests.devices.test_training import CASES, STEPS, train

import retrograd as rg
import retrograd.higher_order
import retrograd.implicit
from retrograd.backend import cuda_kernels
from retrograd.backend.devices import device_named
from retrograd.kernels import reference
from retrograd.nn import functional as F

pytestmark = [pytest.mark.device, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("law", LAWS)
def test_operators_on_the_gpu_are_those_in_host_memory(law):
    assert failures(law, Move(device_named("cuda"))) == {}


@pytest.mark.parametrize("case", CASES)
def test_training_on_the_gpu_has_the_losses_of_host_memory(case):
    expected, _ = train(case, "cpu")
    losses, _ = train(case, "cuda")
    assert len(losses) == STEPS
    np.testing.assert_allclose(losses, expected, rtol=1e-3)


@pytest.mark.parametrize("dtype", ["f", "d"])
def test_each_kernel_compiles_and_a_row_kernel_gives_its_reference(dtype):
    import cupy

    launcher = cuda_kernels.Launcher(cupy)
    for name in cuda_kernels.TEMPLATES:
        launcher._kernel(f"{name}<{cuda_kernels.TYPES[dtype]}>")
    x = np.random.default_rng(0).normal(size=(5, 700)).astype(dtype)
    found = cuda_kernels.replacements(launcher)["softmax_rows"](None)(cupy.asarray(x))
    np.testing.assert_allclose(cupy.asnumpy(found), reference.softmax_rows(x), rtol=1e-4)


def test_a_step_of_forward_and_backward_is_captured_so_nothing_in_it_waits_for_the_gpu():
    weight = rg.rand(64, 64, device="cuda", requires_grad=True)
    x = rg.rand(8, 64, device="cuda")

    def step():
        weight.grad = None
        F.layer_norm(F.gelu(x @ weight), (64,)).square().mean().backward()
        return weight.grad

    expected = step().cpu().numpy()
    graph = rg.cuda.CUDAGraph()
    with rg.cuda.graph(graph):
        captured = step()
    graph.replay()
    rg.cuda.synchronize()
    np.testing.assert_allclose(captured.cpu().numpy(), expected, rtol=1e-4)


def test_copies_from_pinned_memory_and_streams_arrive():
    x = rg.arange(1_000_000.0).pin_memory()
    stream = rg.cuda.Stream()
    with rg.cuda.stream(stream):
        there = x.to("cuda", non_blocking=True)
    rg.cuda.current_stream().wait_stream(stream)
    assert there.sum().item() == x.sum().item()
    start, end = rg.cuda.Event(enable_timing=True), rg.cuda.Event(enable_timing=True)
    start.record()
    (there * 2).sum()
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) > 0


def test_random_numbers_on_the_gpu_are_those_of_the_cpu():
    for dtype in (rg.float32, rg.float64):
        expected = rg.rand(1001, dtype=dtype, generator=rg.Generator(3))
        assert rg.rand(1001, dtype=dtype, generator=rg.Generator(3), device="cuda").cpu().equal(expected)
