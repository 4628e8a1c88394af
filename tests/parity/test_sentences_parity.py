"""The sentence encoder example compared with BERT in transformers: the same weights give the same embeddings."""

import numpy as np
import pytest
import torch

import retrograd as rg
from retrograd.nested import nested_tensor

from ..example_scripts import imported

TEXTS = (
    "Yes.",
    "A nested tensor is a batch whose components differ in shape.",
    "It is one buffer, in which the components lie one behind the other; sizes and offsets say where each begins. " * 8,
    "日本語 and émigré words are taken apart too",
)


@pytest.fixture(scope="module")
def example():
    """Import the script as a module."""
    return imported("ragged_sentences")


@pytest.fixture(scope="module")
def reference(example):
    """Return embeddings by transformers, with its tokenizer, of a padded batch."""
    transformers = pytest.importorskip("transformers")
    tokens = transformers.AutoTokenizer.from_pretrained(example.FILES)(
        list(TEXTS), padding=True, truncation=True, max_length=256, return_tensors="pt"
    )
    model = transformers.BertModel.from_pretrained(example.FILES).eval()
    with torch.no_grad():
        words = model(**tokens).last_hidden_state
    mask = tokens["attention_mask"].unsqueeze(-1)
    mean = (words * mask).sum(1) / mask.sum(1)
    return torch.nn.functional.normalize(mean, dim=1).numpy(), tokens


def test_words_have_equal_token_numbers(example, reference):
    _, tokens = reference
    for ours, theirs, mask in zip(example.token_ids(TEXTS), tokens["input_ids"], tokens["attention_mask"], strict=True):
        assert ours.tolist() == theirs[mask.bool()].tolist()


@pytest.mark.parametrize("batch", ["nested", "padded"])
def test_vectors_are_those_of_transformers(example, reference, batch):
    words = example.token_ids(TEXTS)
    model = example.pretrained()
    with rg.no_grad():
        found = model(nested_tensor(words)) if batch == "nested" else model(*example.pad(words))
    np.testing.assert_allclose(found.numpy(), reference[0], atol=1e-5, rtol=0)
