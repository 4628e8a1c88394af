"""Programs that ask for a GPU find none and use the CPU; settings of GPU libraries are accepted."""

import importlib

import numpy as np
import pytest

import retrograd as rg

NEED_A_DEVICE = (
    "current_device", "get_device_name", "get_device_properties", "get_rng_state", "init", "mem_get_info",
    "reset_peak_memory_stats", "set_device", "synchronize", "Event", "Stream",
)  # fmt: skip


def test_a_script_that_prefers_a_gpu_takes_the_cpu():
    name = "cuda" if rg.cuda.is_available() else "mps" if rg.backends.mps.is_available() else "cpu"
    assert rg.zeros(2, device=rg.device(name)).device == "cpu"
    assert rg.cuda.device_count() == rg.cuda.memory_allocated() == rg.cuda.max_memory_allocated("cuda:0") == 0
    assert not rg.cuda.is_initialized()


def test_a_script_that_prefers_any_accelerator_takes_the_cpu():
    device = rg.accelerator.current_accelerator() if rg.accelerator.is_available() else rg.device("cpu")
    assert device.type == "cpu"
    assert rg.accelerator.current_accelerator() is None
    assert rg.accelerator.device_count() == 0


NEED_AN_ACCELERATOR = {
    "current_device_index": (), "set_device_index": (0,), "device_index": (0,), "synchronize": (),
    "current_stream": (), "set_stream": (None,), "empty_cache": (), "memory_allocated": (), "get_memory_info": (),
    "max_memory_allocated": (), "memory_reserved": (), "max_memory_reserved": (), "reset_peak_memory_stats": (),
}  # fmt: skip


@pytest.mark.parametrize("name", NEED_AN_ACCELERATOR)
def test_calls_that_need_an_accelerator_are_refused_with_the_check_to_use(name):
    with pytest.raises(RuntimeError, match=r"Cannot access accelerator device when none is available.*is_available"):
        getattr(rg.accelerator, name)(*NEED_AN_ACCELERATOR[name])


@pytest.mark.parametrize("name", ["xpu", "mps", "mtia"])
def test_devices_that_are_never_there_answer_and_refuse(name):
    module = getattr(rg, name)
    assert module is importlib.import_module(f"retrograd.{name}")
    assert (module.is_available(), module.is_initialized(), module.device_count()) == (False, False, 0)
    module.manual_seed_all(0)
    with pytest.raises(RuntimeError, match=rf"{name}.synchronize: there is no such device; .*{name}.is_available"):
        module.synchronize()
    assert not hasattr(module, "no_such_name")


def test_versions_of_gpu_libraries_are_none():
    assert rg.version.__version__ == rg.__version__
    assert rg.version.cuda is rg.version.hip is rg.version.xpu is None


@pytest.mark.parametrize("name", NEED_A_DEVICE)
def test_calls_that_need_a_cuda_device_are_refused_with_the_check_to_use(name):
    with pytest.raises(RuntimeError, match=rf"cuda.{name}: there is no CUDA device.*is_available"):
        getattr(rg.cuda, name)(*(0,) * (name == "set_device"))


def test_seeding_cuda_leaves_the_random_numbers_of_the_cpu():
    rg.manual_seed(1)
    expected = rg.rand(3)
    rg.manual_seed(1)
    rg.cuda.manual_seed(7)
    rg.cuda.manual_seed_all(8)
    rg.cuda.set_rng_state_all(rg.cuda.get_rng_state_all())
    assert rg.rand(3).tolist() == expected.tolist()
    with pytest.raises(RuntimeError, match="set_rng_state_all"):
        rg.cuda.set_rng_state_all([rg.get_rng_state()])


def test_settings_of_gpu_libraries_can_be_assigned(monkeypatch):
    cudnn = importlib.import_module("retrograd.backends.cudnn")
    assert cudnn is rg.backends.cudnn
    monkeypatch.setattr(cudnn, "benchmark", True)
    assert rg.backends.cudnn.benchmark
    monkeypatch.setattr(rg.backends.cuda.matmul, "allow_tf32", True)
    assert (cudnn.is_available(), cudnn.version(), rg.backends.cuda.is_built()) == (False, None, False)


def test_settings_of_precision_and_determinism_are_kept():
    assert rg.get_float32_matmul_precision() == "highest"
    rg.set_float32_matmul_precision("high")
    assert rg.get_float32_matmul_precision() == "high"
    with pytest.raises(ValueError, match="highest, high, medium, got 'low'"):
        rg.set_float32_matmul_precision("low")
    rg.set_float32_matmul_precision("highest")
    rg.use_deterministic_algorithms(True, warn_only=True)
    assert rg.are_deterministic_algorithms_enabled()
    assert rg.is_deterministic_algorithms_warn_only_enabled()
    rg.use_deterministic_algorithms(False)
    assert not rg.are_deterministic_algorithms_enabled()


def test_constants_have_the_values_of_mathematics():
    assert (rg.pi, rg.e, rg.inf) == (np.pi, np.e, np.inf)
    assert rg.nan != rg.nan
    assert rg.zeros(2, 3)[:, rg.newaxis].shape == (2, 1, 3)


@pytest.mark.parametrize(("mode", "error"), [(3, RuntimeError), ("loud", RuntimeError), (None, TypeError)])
def test_a_wrong_debug_mode_of_determinism_changes_nothing(mode, error):
    rg.set_deterministic_debug_mode("error")
    with pytest.raises(error, match="debug_mode"):
        rg.set_deterministic_debug_mode(mode)
    assert rg.get_deterministic_debug_mode() == 2
    rg.set_deterministic_debug_mode("default")
    assert rg.get_deterministic_debug_mode() == 0
