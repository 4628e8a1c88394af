"""Random training steps with checkpoints, scaled losses and averaged models: compiled calls equal eager ones."""

import random
import warnings

import pytest
from tests.tables import ALL_SAMPLES

import retrograd as rg

from .comparison import numbers, observe, state_of
from .test_common_steps import compile_source

PREAMBLE = """
import retrograd as rg
from retrograd import nn
from retrograd.nn import functional as F
from retrograd.optim import swa_utils
from retrograd.utils.checkpoint import checkpoint, checkpoint_sequential
"""
MODELS = ["nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3)",
          "nn.Linear(3, 3), nn.Dropout(0.4), nn.Linear(3, 3, bias=False)",
          "nn.Linear(3, 3), nn.BatchNorm1d(3), nn.ReLU()", "nn.Linear(3, 3), nn.LayerNorm(3), nn.GELU()"]  # fmt: skip
OPTIMIZERS = ["SGD(model.parameters(), lr=0.1, momentum=0.9)", "AdamW(model.parameters(), lr=0.1)",
              "RMSprop(model.parameters(), lr=0.01)", "Adam(model.parameters(), lr=0.1, amsgrad=True)"]  # fmt: skip
AVERAGED = ["swa_utils.AveragedModel(model)", "swa_utils.AveragedModel(model, use_buffers=True)",
            "swa_utils.AveragedModel(model, avg_fn=swa_utils.get_ema_avg_fn(0.9))",
            "swa_utils.AveragedModel(model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.8), use_buffers=True)",
            "swa_utils.AveragedModel(model, avg_fn=lambda old, new, count: old * 0.7 + new * 0.3)"]  # fmt: skip
SCALERS = ["init_scale=16.0, growth_interval=2", "init_scale=16.3, growth_interval=3, growth_factor=1.7",
           "init_scale=4.0, enabled=False"]  # fmt: skip
LAYERS = [
    "model({h})", "model[0]({h})", "F.dropout({h}, 0.3)", "{h} * rg.rand(4, 3)", "{h}.tanh() + {g}",
    "{h} @ model[0].weight",
    "checkpoint(model, {h}, use_reentrant=False)",
    "checkpoint(model[0], {h}, use_reentrant=False)",
    "checkpoint(lambda a: F.dropout(model[0](a), 0.3), {h}, use_reentrant=False)",
    "checkpoint(lambda a, b: F.dropout(a.sin() * b, 0.5).exp(), {h}, {g}, use_reentrant=False)",
    "checkpoint(lambda a: checkpoint(model, F.dropout(a), use_reentrant=False) * 2, {h}, use_reentrant=False)",
    "checkpoint(lambda a: F.dropout(model(a), 0.2), {h}, use_reentrant=False, preserve_rng_state=False)",
    "checkpoint(model[1:], model[0]({h}), use_reentrant=True)",
    "checkpoint(lambda a: F.dropout(a * 2, 0.2) + {g}.detach(), {h} @ model[0].weight, use_reentrant=True)",
    "checkpoint_sequential(model, 2, {h}, use_reentrant=False)",
    "checkpoint_sequential([*model, nn.functional.dropout], None, {h}, budget_bytes=200)",
]  # fmt: skip
LOSSES = ["F.mse_loss({h}, y)", "F.cross_entropy({h}, y.argmax(1))", "({h} * y).square().mean()", "F.l1_loss({h}, {g})"]
BACKWARD = ["loss.backward()", "scaler.scale(loss).backward()",
            "(loss / 2).backward(retain_graph=True); loss.backward()",
            "scaler.scale(loss / 2).backward(); scaler.scale(F.mse_loss(model(x), y)).backward()"]  # fmt: skip
CHANGES = ["nn.utils.clip_grad_norm_(model.parameters(), 0.5)", "nn.utils.clip_grad_value_(model.parameters(), 0.1)"]
AVERAGING = [
    "averaged.update_parameters(model)",
    "second.update_parameters(model)",
    "for p, q in zip(ema.parameters(), model.parameters()): p.data.mul_(0.9).add_(q.data, alpha=0.1)",
    "for p, q in zip(ema.parameters(), model.parameters()): p.data = p.data.lerp(q.data, 0.2)",
    "for p, q in zip(ema.parameters(), model.parameters()): p.detach().lerp_(q.detach(), 0.3)",
    "for p, q in zip(ema.buffers(), model.buffers()): p.copy_(q)",
]  # fmt: skip


def random_step(seed):
    """Return the code of a training step of two tensors, and of what it reads."""
    choose = random.Random(seed)
    lines, known = [], ["x", "y"]
    for i in range(choose.randint(1, 4)):
        layer = choose.choice(LAYERS).format(h=choose.choice(known), g=choose.choice(known))
        known.append(f"h{i}")
        lines.append(f"h{i} = {layer}")
    loss = choose.choice(LOSSES).format(h=known[-1], g=choose.choice(known))
    lines.append(f"loss = {loss} + model[0](x).mean()")
    backward, is_cleared = choose.choice(BACKWARD), choose.random() < 0.5
    update = ["optimizer.step()"]
    if "scaler" in backward:
        update = ["scaler.step(optimizer)", "scaler.update()"]
        if choose.random() < 0.5:
            update = ["scaler.unscale_(optimizer)", choose.choice(CHANGES), *update]
    elif choose.random() < 0.3:
        update = [choose.choice(CHANGES), *update]
    zero = choose.choice(["optimizer.zero_grad()", "optimizer.zero_grad(set_to_none=False)", "model.zero_grad()"])
    averaging = choose.sample(AVERAGING, choose.randint(0, 3))
    before = [averaging.pop()] if averaging and choose.random() < 0.3 else []
    lines += [*before, *([zero] if is_cleared else []), backward, *update, *averaging, *([] if is_cleared else [zero])]
    results = choose.sample(["averaged(x)", "second(y)", "ema(x)", "scaler.scale(x)", *known[2:]], choose.randint(0, 2))
    lines.append(f"return {', '.join(['loss.detach()', *[f'({result}).detach()' for result in results]])}")
    return f"""{PREAMBLE}
def net(): return nn.Sequential({choose.choice(MODELS)})
model, ema = net(), net()
optimizer = rg.optim.{choose.choice(OPTIMIZERS)}
scaler = rg.amp.GradScaler("cpu", {choose.choice(SCALERS)})
averaged, second = {choose.choice(AVERAGED)}, {choose.choice(AVERAGED)}
def step(x, y):
""" + "".join(f"    {line}\n" for line in lines)


def steps_of(names):
    """Return the states of the parameters in an optimizer."""
    return sorted(names["optimizer"].state_dict()["state"].items())


def outcomes(code, compile, calls=5):
    """Return what is observed of calls on different numbers, and the step; of a call that fails, its error."""
    rg.manual_seed(0)
    names = {"__name__": "steps"}
    exec(compile_source(code), names)
    step, seen = compile(names["step"]), []
    modules = [names[name] for name in ("model", "ema", "averaged", "second")]
    for seed in range(calls):
        x, y = numbers(4, 3, seed=seed), numbers(4, 3, seed=seed + 50)
        if seed == 3 and "scaler.step" in code and "enabled=False" not in code:
            x[0, 0] = rg.inf  # the scaler skips the step; others would fill the parameters with nan, of any sign
        try:
            seen.append(observe(step(x, y)))
        except RuntimeError as error:
            seen.append(str(error).partition("written to at")[0])
        seen.append([state_of([*module.parameters(), *module.buffers()]) for module in modules])
        # Whether parameters take a step together decides only about versions, and the order of the states.
        states = {number: {key: observe(t * 1) for key, t in state.items()} for number, state in steps_of(names)}
        seen.append([observe(x), observe(y), observe(rg.rand(1)), states, repr(names["scaler"].state_dict())])
    return seen, step


@pytest.mark.parametrize("block", range(10))
def test_random_training_steps_have_the_eager_results(block):
    programs, size = 0, 100 if ALL_SAMPLES else 6
    for seed in range(size * block, size * (block + 1)):
        code = random_step(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of parts, and of numbers that become nan
            expected, _ = outcomes(code, lambda f: f)
            found, step = outcomes(code, rg.compile)
        assert found == expected, f"seed {seed}:\n{code}"
        programs += bool(step.programs)
    assert programs >= size / 2
