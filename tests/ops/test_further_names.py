"""Names of PyTorch for programs that choose by build, device or kind of number."""

import pytest

import retrograd as rg
from retrograd.nn import attention


def test_devices_that_do_not_exist_are_refused_and_denied():
    x = rg.ones(2)
    for kind in ("ipu", "mtia", "xpu", "cuda"):
        assert not getattr(x, f"is_{kind}")
        with pytest.raises(RuntimeError, match="live on the CPU"):
            getattr(x, kind)()
    with pytest.raises(RuntimeError, match="no streams"):
        x.record_stream(None)
    assert rg.get_device_module("cpu") is rg.cpu
    assert rg.get_device_module("cuda:0") is rg.cuda
    with pytest.raises(RuntimeError, match="device 'mps' has no module"):
        rg.get_device_module("mps")
    assert issubclass(rg.OutOfMemoryError, RuntimeError)
    assert rg.cuda.OutOfMemoryError is rg.OutOfMemoryError


def test_the_default_tensor_type_is_that_of_the_default_dtype():
    try:
        rg.set_default_tensor_type(rg.DoubleTensor)
        assert rg.tensor(1.5).dtype == rg.float64
        rg.set_default_tensor_type("torch.HalfTensor")
        assert rg.get_default_dtype() == rg.float16
    finally:
        rg.set_default_dtype(rg.float32)
    with pytest.raises(TypeError, match="only floating-point types are supported"):
        rg.set_default_tensor_type(rg.IntTensor)
    with pytest.raises(TypeError, match="invalid type object"):
        rg.set_default_tensor_type("FloatTensors")


@pytest.mark.parametrize(("start", "end", "step"), [(0, -1, 1), (0, 1, -1), (0, 1, 0)])
def test_a_range_in_the_wrong_direction_is_refused(start, end, step):
    with pytest.raises(RuntimeError, match="inconsistent with step sign"):
        rg.range(start, end, step)


def test_settings_without_effect_accept_only_what_means_something():
    with attention.sdpa_kernel(attention.SDPBackend.MATH):
        pass
    with pytest.raises(TypeError, match="expected values of SDPBackend"), attention.sdpa_kernel(["math"]):
        pass
    with pytest.raises(RuntimeError, match="Expected positive number of threads"):
        rg.set_num_interop_threads(0)
    assert rg.set_flush_denormal(True) is False


def test_an_implementation_of_attention_is_registered_activated_and_restored():
    calls = []

    class Handle:
        def remove(self):
            calls.append("removed")

    attention.register_flash_attention_impl("mine", register_fn=lambda: calls.append("activated") or Handle())
    assert "mine" in attention.list_flash_attention_impls()
    assert attention.current_flash_attention_impl() is None
    attention.activate_flash_attention_impl("mine")
    assert (attention.current_flash_attention_impl(), calls) == ("mine", ["activated"])
    attention.restore_flash_attention_impl()
    assert (attention.current_flash_attention_impl(), calls) == (None, ["activated", "removed"])
    with pytest.raises(ValueError, match="Unknown flash attention impl 'FA9'"):
        attention.activate_flash_attention_impl("FA9")


def test_a_worker_has_a_generator_of_its_own():
    class Draws(rg.utils.data.Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, index):
            return rg.thread_safe_generator() is not None

    assert rg.random.thread_safe_generator() is None
    assert next(iter(rg.utils.data.DataLoader(Draws(), batch_size=2, num_workers=1))).tolist() == [True, True]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda f: f(rg.ones(2, 3), rg.ones(3, 4)), ValueError),
        (lambda f: f(rg.ones(2, 3), rg.ones(1, 3, 4), offs=rg.tensor([1])), ValueError),
        (lambda f: f(rg.ones(2, 3), rg.ones(1, 3, 4), offs=rg.tensor([1, 2])), ValueError),
        (lambda f: f(rg.ones(2, 3), rg.ones(3, 3, 4), offs=rg.tensor([2, 1, 2])), ValueError),
        (lambda f: f(rg.ones(1, 2, 3), rg.ones(1, 3, 4), bias=rg.ones(4)), NotImplementedError),
    ],
)
def test_groups_that_do_not_fit_are_refused(call, error):
    with pytest.raises(error, match="grouped_mm: "):
        call(rg.nn.functional.grouped_mm)
