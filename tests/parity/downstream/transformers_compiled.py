"""Hugging Face transformers: training steps that are compiled, and the same steps run eagerly."""

import numpy as np
import torch
import transformers
from transformers_models import MODELS, batch

import retrograd as rg


def outcomes(name, compiled):
    """Return the losses and parameters of five steps, and whether all of the last one was a program."""
    model_class, config_class, settings = MODELS[name]
    numbers = np.random.default_rng(0)
    model = getattr(transformers, model_class)(getattr(transformers, config_class)(**settings)).float().train()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.from_numpy(numbers.normal(size=tuple(p.shape)) * 0.2))
    inputs = {key: v.float() if v.is_floating_point() else v for key, v in batch(name, numbers).items()}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step(inputs):
        loss = model(**inputs).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    call = rg.compile(step) if compiled else step
    torch.manual_seed(0)  # for dropout
    losses = [call(inputs).numpy() for _ in range(5)]
    return [*losses, *[p.detach().numpy() for p in model.parameters()]], compiled and not call.refusal()


def answers():
    """Return, by model, whether compiled steps have the bits of eager ones, and whether they are programs."""
    transformers.logging.set_verbosity_error()
    found = {}
    for name in MODELS:
        expected, _ = outcomes(name, False)
        actual, is_program = outcomes(name, True)
        same = [a.tobytes() == b.tobytes() for a, b in zip(actual, expected, strict=True)]
        found[f"{name} bits"], found[f"{name} program"] = np.array(same), np.array(is_program)
    return found
