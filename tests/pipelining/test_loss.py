"""Finding the loss among a model's outputs, and models that return it."""

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.nn.functional import mse_loss
from retrograd.pipelining import LossWrapper, TrivialLossWrapper, pipeline


class Returning(nn.Module):
    """A model that returns a function of the loss and the output."""

    def __init__(self, form):
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.form = form

    def forward(self, x, y):
        out = self.layer(x)
        return self.form(mse_loss(out, y), out)


def captured(form, spec=None):
    return pipeline(Returning(form), (rg.randn(4, 3), rg.randn(4, 2)), loss_spec=spec)


def test_a_wrapper_without_forward_raises_an_error_with_the_remedy():
    with pytest.raises(NotImplementedError, match=r"define it to connect self\.module, self\.loss_fn"):
        LossWrapper(nn.Linear(2, 2), mse_loss)(rg.ones(1, 2))


def test_the_trivial_wrapper_returns_the_loss_of_the_output():
    model, x, y = nn.Linear(3, 2), rg.randn(4, 3), rg.randn(4, 2)
    wrapper = TrivialLossWrapper(model, mse_loss)
    assert wrapper(x, y).item() == mse_loss(model(x), y).item()
    assert pipeline(wrapper, (x, y)).has_loss_and_backward


def test_a_wrapper_s_own_spec_counts():
    class Both(LossWrapper):
        loss_spec = (False, True)

        def forward(self, x, y):
            out = self.module(x)
            return out, self.loss_fn(out, y)

    args = (rg.randn(4, 3), rg.randn(4, 2))
    assert pipeline(Both(nn.Linear(3, 2), mse_loss), args).has_loss_and_backward
    with pytest.raises(RuntimeError, match=r"marks float32\[4, 2\]"):
        pipeline(Both(nn.Linear(3, 2), mse_loss), args, loss_spec=(True, False))


@pytest.mark.parametrize(
    ("form", "spec"),
    [
        (lambda loss, out: loss, True),
        (lambda loss, out: (loss, out), (True, False)),
        (lambda loss, out: [out, loss], [False, True]),
        (lambda loss, out: {"logits": out, "objective": loss}, {"objective": True, "logits": False}),
        (lambda loss, out: (out, {"all": [loss, loss * 2]}), (False, {"all": [False, True]})),
        (lambda loss, out: {"loss": loss, "logits": out}, None),
    ],
)
def test_the_loss_is_the_output_that_the_spec_marks(form, spec):
    pipe = captured(form, spec)
    assert pipe.has_loss_and_backward
    assert pipe.info().has_loss_and_backward
    assert pipe.split_gm.graph.find_nodes(op="call_function")[-1].name == "stage_backward_0"


@pytest.mark.parametrize(
    "form",
    [
        lambda loss, out: loss,
        lambda loss, out: {"logits": out},
        lambda loss, out: {"loss": out},
        lambda loss, out: {"loss": "none"},
        lambda loss, out: (loss, {"loss": loss}),
    ],
)
def test_without_a_spec_only_a_scalar_under_the_key_loss_is_one(form):
    assert not captured(form).has_loss_and_backward


@pytest.mark.parametrize(
    ("form", "spec", "message"),
    [
        (lambda loss, out: loss, (True,), r"output is float32\[\], a tensor, but its spec is \(True,\), a tuple"),
        (lambda loss, out: (loss, out), [True, False], r"a tuple, but its spec is \[True, False\], a list"),
        (lambda loss, out: (loss, out), {"loss": True}, r"a tuple, but its spec is \{'loss': True\}, a dict"),
        (lambda loss, out: (loss, out), (True,), r"output has 2 members, .*but its spec has 1, \(True,\)"),
        (lambda loss, out: {"a": loss}, {"b": True}, r"output has the keys \['a'\], but its spec has \['b'\]"),
        (lambda loss, out: (out, [loss]), (False, (True,)), r"output\[1\] is \[float32\[\]\], a list, but .* a tuple"),
        (lambda loss, out: loss, "loss", r"expected a bool, tuple, list or dict for output, .* got 'loss' of type str"),
        (lambda loss, out: {"a": loss}, {"a": 1}, r"for output\['a'\], float32\[\], got 1 of type int"),
        (lambda loss, out: (loss, out), (False, False), r"marks 0 losses in \(float32\[\], float32\[4, 2\]\)"),
        (lambda loss, out: (loss, loss * 2), (True, True), "marks 2 losses"),
        (lambda loss, out: (loss, out), True, r"marks \(float32\[\], float32\[4, 2\]\); the loss is a real tensor"),
        (lambda loss, out: out.argmax(), True, r"marks int64\[\]; the loss is a real tensor of shape \(\)"),
    ],
)
def test_a_spec_that_does_not_fit_is_refused_naming_both(form, spec, message):
    with pytest.raises(RuntimeError, match=message):
        captured(form, spec)
