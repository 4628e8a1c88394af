"""Hugging Face transformers: losses, gradients, steps, saved weights and generated tokens of small models."""

import tempfile

import numpy as np
import torch
import transformers

SIZES = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}
IMAGES = {name: size for name, size in SIZES.items() if name != "vocab_size"}
TOKENS = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
LLAMA = {"num_key_value_heads": 2, "max_position_embeddings": 32}
GPT2 = {"vocab_size": 50, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32}
T5 = {"vocab_size": 50, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2}
WHISPER = {"vocab_size": 50, "num_mel_bins": 8, "d_model": 16, "encoder_layers": 1, "decoder_layers": 1}
WHISPER |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32}
WHISPER |= {"max_source_positions": 10, "max_target_positions": 20, "suppress_tokens": None}
WHISPER |= {"begin_suppress_tokens": None}
START = {"decoder_start_token_id": 0}
# Model, configuration, its settings.
MODELS = {
    "bert": ("BertForSequenceClassification", "BertConfig", SIZES | {"num_labels": 3}),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", GPT2 | TOKENS),
    "llama": ("LlamaForCausalLM", "LlamaConfig", SIZES | LLAMA | TOKENS),
    "t5": ("T5ForConditionalGeneration", "T5Config", T5 | START | TOKENS),
    "vit": ("ViTForImageClassification", "ViTConfig", IMAGES | {"image_size": 8, "patch_size": 4, "num_labels": 3}),
    "whisper": ("WhisperForConditionalGeneration", "WhisperConfig", WHISPER | START | TOKENS),
}
ZERO = ("key.bias", "k_proj.bias")  # softmax does not change with them: their gradients are rounding errors


def batch(name, numbers):
    """Return the inputs of a model."""
    tokens, mask = torch.from_numpy(numbers.integers(2, 50, (2, 7))), torch.ones(2, 7, dtype=torch.int64)
    mask[1, :2] = 0
    images, classes = torch.from_numpy(numbers.normal(size=(2, 3, 8, 8))), torch.tensor([0, 2])
    if name == "vit":
        return {"pixel_values": images, "labels": classes}
    if name == "whisper":
        return {"input_features": torch.from_numpy(numbers.normal(size=(2, 8, 20))), "labels": tokens[:, :5].clone()}
    labels = {"bert": classes, "t5": tokens[:, :5].clone()}.get(name, tokens)
    return {"input_ids": tokens, "attention_mask": mask, "labels": labels}


def answers():
    """Return, by model, logits, losses, gradients, parameters after three steps, and generated tokens."""
    transformers.logging.set_verbosity_error()
    found = {}
    for name, (model_class, config_class, settings) in MODELS.items():
        numbers = np.random.default_rng(0)
        model = getattr(transformers, model_class)(getattr(transformers, config_class)(**settings)).double().eval()
        with torch.no_grad():
            for p in model.parameters():
                p.copy_(torch.from_numpy(numbers.normal(size=tuple(p.shape)) * 0.2))
        inputs = batch(name, numbers)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        for step in range(3):
            output = model(**inputs)
            optimizer.zero_grad()
            output.loss.backward()
            found[f"{name} loss {step}"] = output.loss.detach().numpy()
            if step == 0:
                found[f"{name} logits"] = output.logits.detach().numpy()
                gradients = {n: p.grad.numpy().copy() for n, p in model.named_parameters() if p.grad is not None}
                found.update({f"{name} gradient of {n}": g for n, g in gradients.items() if not n.endswith(ZERO)})
            optimizer.step()
        found.update({f"{name} {n}": p.detach().numpy() for n, p in model.named_parameters()})
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            loaded = type(model).from_pretrained(folder, dtype="auto")
        found[f"{name} loaded"] = loaded(**inputs).logits.detach().numpy()
        if model.can_generate():
            given = {n: x for n, x in inputs.items() if n != "labels"}
            for beams in (1, 2):
                tokens = model.generate(**given, max_new_tokens=6, do_sample=False, num_beams=beams)
                found[f"{name} tokens by {beams}"] = tokens.numpy()
    return found
