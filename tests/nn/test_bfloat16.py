"""A small transformer in bfloat16: trained in it alone, and with parameters in float32 for the optimizer."""

import copy

import pytest

import retrograd as rg
from retrograd import nn, optim


class Classifier(nn.Module):
    """A transformer that predicts the class of each of a row of tokens."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(8, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 8)

    def forward(self, tokens):
        return self.head(self.norm(self.layer(self.embed(tokens))))


@pytest.fixture
def problem():
    rg.manual_seed(0)
    tokens = rg.randint(0, 8, (8, 6))
    return Classifier(), tokens, (tokens + tokens.roll(1, 1)) % 8


def loss_of(model, tokens, target):
    return nn.functional.cross_entropy(model(tokens).flatten(0, 1), target.flatten())


def step(model, optimizer, tokens, target):
    optimizer.zero_grad()
    loss = loss_of(model, tokens, target)
    loss.backward()
    optimizer.step()
    return loss


def step_with_float32_parameters(model, half, optimizer, tokens, target):
    half.zero_grad()
    loss = loss_of(half, tokens, target)
    loss.backward()
    for parameter, copied in zip(model.parameters(), half.parameters(), strict=True):
        parameter.grad = copied.grad.float()
    optimizer.step()
    with rg.no_grad():
        for parameter, copied in zip(model.parameters(), half.parameters(), strict=True):
            copied.copy_(parameter)
    return loss


@pytest.mark.parametrize("make", [optim.AdamW, optim.Adam, optim.RMSprop, optim.SGD])
def test_a_model_in_bfloat16_learns(problem, make):
    model, tokens, target = problem
    model.bfloat16()
    optimizer = make(model.parameters(), lr=0.3 if make is optim.SGD else 0.01)
    losses = [step(model, optimizer, tokens, target) for _ in range(25)]
    assert all(loss.dtype == rg.bfloat16 for loss in losses)
    assert all(p.dtype == p.grad.dtype == rg.bfloat16 for p in model.parameters())
    assert losses[-1].item() < 0.7 * losses[0].item()


def test_parameters_in_float32_follow_the_training_in_float32(problem):
    model, tokens, target = problem
    exact, half = copy.deepcopy(model), copy.deepcopy(model).bfloat16()
    optimizer, reference = optim.AdamW(model.parameters(), lr=0.003), optim.AdamW(exact.parameters(), lr=0.003)
    for _ in range(15):
        found = step_with_float32_parameters(model, half, optimizer, tokens, target)
        expected = step(exact, reference, tokens, target)
        assert found.item() == pytest.approx(expected.item(), rel=0.03)
    assert all(p.dtype == rg.float32 for p in model.parameters())


def test_gradients_of_the_model_are_those_of_float32_to_three_digits(problem):
    model, tokens, target = problem
    half = copy.deepcopy(model).bfloat16()
    wide = copy.deepcopy(half).float()
    loss_of(half, tokens, target).backward()
    loss_of(wide, tokens, target).backward()
    for (name, found), expected in zip(half.named_parameters(), wide.parameters(), strict=True):
        error = (found.grad.float() - expected.grad).norm() / (expected.grad.norm() + 1e-3)
        assert error.item() < 0.05, name


def test_state_dicts_convert_to_the_dtype_of_the_model(problem):
    model, *_ = problem
    half = Classifier().bfloat16()
    half.load_state_dict(model.state_dict())
    assert all(p.dtype == rg.bfloat16 for p in half.parameters())
    model.load_state_dict(half.state_dict())
    assert all(p.dtype == rg.float32 for p in model.parameters())
    assert model.half().head.weight.dtype == rg.float16
