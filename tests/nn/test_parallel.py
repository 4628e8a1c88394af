"""DataParallel on one device is the module itself, with PyTorch's names of the state dict."""

import pytest

import retrograd as rg
from retrograd import nn


def test_data_parallel_gives_the_results_and_gradients_of_its_module():
    layer, x = nn.Bilinear(2, 2, 3), rg.randn(4, 2)
    model = nn.DataParallel(layer, device_ids=[0, 1])
    assert model(x, input2=x).tolist() == layer(x, x).tolist()
    model(x, x).sum().backward()
    assert model.module.weight.grad is layer.weight.grad is not None


def test_a_state_dict_of_data_parallel_has_the_prefix_module():
    model = nn.DataParallel(nn.Linear(2, 3))
    assert list(model.state_dict()) == ["module.weight", "module.bias"]
    nn.DataParallel(nn.Linear(2, 3)).load_state_dict(model.state_dict())


@pytest.mark.parametrize("inputs", [rg.ones(2, 3), (rg.ones(2, 3),)])
def test_the_function_data_parallel_calls_the_module(inputs):
    assert nn.parallel.data_parallel(nn.Flatten(0), inputs, range(2)).shape == (6,)
    assert nn.parallel.data_parallel(nn.Flatten(), (), module_kwargs={"input": rg.ones(2, 3, 1)}).shape == (2, 3)
