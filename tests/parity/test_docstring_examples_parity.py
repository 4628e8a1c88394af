"""PyTorch's documented examples run here by one changed import, with the same results."""

from fnmatch import fnmatchcase

import pytest
import torch

import retrograd as rg

from .docstring_examples import ELSEWHERE, SharedDraws, comparable, difference, examples, run

NOT_COMPARED = {
    "draws by other functions than those that share their numbers": """
        acosh atanh bernoulli multinomial normal poisson special.multigammaln nn.Module.to nn.Embedding nn.EmbeddingBag
        nn.functional.fractional_max_pool* nn.functional.gumbel_softmax nn.init.*
        Generator.seed Generator.initial_seed Generator.set_state
    """,
    "the system is so ill-conditioned, or the sums so long, that float32 differs": """
        cholesky_inverse conv3d conv_transpose3d linalg.lu_solve linalg.solve linalg.solve_triangular
        fft.hfft2 fft.hfftn
    """,
    "draws by other functions, for the tests of operators": "testing.make_tensor",
    "memory that is not initialized": "empty empty_strided Tensor.new_empty* nn.utils.skip_init",
    "ties are sorted in their order": "sort",
    "one rank for each pair of matrices, not for each A": "linalg.lstsq",
    "views of conjugates and negatives are computed here": "conj resolve_conj resolve_neg",
    "denormal numbers are never flushed": "set_flush_denormal",
    "a call returns what it defines": "library.define library.impl",
}
NOT_HERE = {
    "an accelerator's": "Event",
    "shapes are tuples (decision 15)": "Size.numel",
    "tensors with a scale and a zero point (decision 38)": "quantize*",
    "compiled programs have one backend (decision 36)": "compiler.set_default_backend compiler.substitute_in_graph",
    "deprecated by PyTorch": "lu",
    "the state of another generator, of 112 bytes": "Generator.get_state",
    "placeholders (...) that PyTorch takes for values": """
        nn.Fold nn.Unfold optim.lr_scheduler.CyclicLR optim.lr_scheduler.OneCycleLR
    """,
    "the kernels of operators are classes": "library.get_kernel",
    "a wrapper of gradcheck, which takes sparse tensors itself": "sparse.as_sparse_gradcheck",
}


def reasons(path, table):
    return [reason for reason, patterns in table.items() if any(fnmatchcase(path, p) for p in patterns.split())]


@pytest.mark.parametrize("path", examples())
def test_a_documented_example_runs_here_with_the_same_results(path, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    statements = [source for source in examples()[path] if not ELSEWHERE.search(source)]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        peer = run(statements, torch)
    SharedDraws(monkeypatch)
    run_by_peer = [(source, theirs) for source, theirs in zip(statements, peer, strict=True) if is_result(theirs)]
    mine = run([source for source, _ in run_by_peer], rg)
    wrong = [
        f"{source.strip()}: {problem}"
        for (source, theirs), ours in zip(run_by_peer, mine, strict=True)
        if (problem := problem_of(path, ours, theirs))
    ]
    assert bool(wrong) == bool(reasons(path, NOT_HERE)), wrong


def is_result(outcome):
    return not isinstance(outcome, Exception)


def problem_of(path, ours, theirs):
    """Return why ours is not as theirs, or None; values are not compared where a reason is listed."""
    if not is_result(ours):
        return repr(ours)
    return None if reasons(path, NOT_COMPARED) else difference(comparable(ours), comparable(theirs))
