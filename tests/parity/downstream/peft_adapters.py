"""PEFT: adapters of a network and of a small GPT-2: forward passes, gradients, steps, merging, saved states."""

import torch
from peft import (
    IA3Config,
    LoHaConfig,
    LoKrConfig,
    LoraConfig,
    OFTConfig,
    PromptTuningConfig,
    get_peft_model,
    get_peft_model_state_dict,
    set_peft_model_state_dict,
)
from seeded import array, fill, integers, trained
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel


class Net(nn.Module):
    """Two layers and a convolution."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 6, 3, padding=1)
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 3)

    def forward(self, x):
        """Return three scores at each position of x, of shape (examples, 4, positions)."""
        return self.last(torch.relu(self.first(self.conv(x).mT)))


CONFIGS = {
    "lora": lambda: LoraConfig(r=2, lora_alpha=4, target_modules=["first", "last"], bias="all"),
    "rslora": lambda: LoraConfig(r=2, target_modules=["first"], use_rslora=True, modules_to_save=["last"]),
    "dora": lambda: LoraConfig(r=2, target_modules=["first", "last"], use_dora=True),
    "conv": lambda: LoraConfig(r=2, target_modules=["conv"]),
    "loha": lambda: LoHaConfig(r=2, target_modules=["first"]),
    "lokr": lambda: LoKrConfig(r=2, target_modules=["first"]),
    "ia3": lambda: IA3Config(target_modules=["first", "last"], feedforward_modules=["last"]),
    "oft": lambda: OFTConfig(r=0, oft_block_size=2, target_modules=["first"]),
}


def answers():
    """Return outputs, gradients, parameters and merged weights."""
    found = {}
    x = array(3, 4, 5)
    for name, config in CONFIGS.items():
        model = fill(get_peft_model(fill(Net()), config()))
        found.update(trained(name, model, x))
        state = get_peft_model_state_dict(model)
        found.update({f"{name} state {key}": value.numpy() for key, value in state.items()})
        other = get_peft_model(fill(Net()), config())
        set_peft_model_state_dict(other, state)
        found[f"{name} loaded"] = other(x).detach().numpy()
        with model.disable_adapter():
            found[f"{name} disabled"] = model(x).detach().numpy()
        merged = model.merge_and_unload()
        found[f"{name} merged"] = merged(x).detach().numpy()
    language = GPT2Config(
        vocab_size=40, n_positions=32, n_embd=16, n_layer=2, n_head=2, attn_pdrop=0, resid_pdrop=0, embd_pdrop=0
    )
    tokens = integers(40, 2, 9)
    for name, config in {
        "gpt2 lora": LoraConfig(r=2, target_modules=["c_attn"], fan_in_fan_out=True, task_type="CAUSAL_LM"),
        "gpt2 prompt": PromptTuningConfig(num_virtual_tokens=3, task_type="CAUSAL_LM"),
    }.items():
        model = fill(get_peft_model(fill(GPT2LMHeadModel(language)), config))
        out = model(input_ids=tokens, labels=tokens)
        out.loss.backward()
        found[name] = out.logits.detach().numpy()
        found.update({f"{name} {key}": p.grad.numpy() for key, p in model.named_parameters() if p.grad is not None})
        found[f"{name} tokens"] = model.generate(
            input_ids=tokens, max_new_tokens=4, do_sample=False, pad_token_id=0
        ).numpy()
    return found
