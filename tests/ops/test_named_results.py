"""Operators with several named results return a class of their own, in the form of torch.return_types."""

import copy
import pickle
import subprocess
import sys

import optree
import pytest

import retrograd as rg
from retrograd.core import registry
from retrograd.core.definition import Internal

RESULTS = rg.return_types.max([rg.tensor([2.0, 4.0]), rg.tensor([1, 1])])
NAMED = sorted(n for n in registry if registry[n].schema.outputs and not issubclass(registry[n].definition, Internal))


def test_results_print_their_class_and_a_member_per_line():
    text = "retrograd.return_types.max(\nvalues=tensor([2., 4.]),\nindices=tensor([1, 1]))"
    assert repr(rg.max(rg.tensor([[1.0, 2.0], [3.0, 4.0]]), 1)) == str(RESULTS) == text


def test_every_operator_with_named_results_has_a_class_of_its_own():
    kinds = [registry[name].definition.result_class for name in NAMED]
    assert None not in kinds
    assert len({*kinds}) == len(NAMED) > 20


@pytest.mark.parametrize("name", ["max", "min", "median", "nanmedian", "mode", "sort", "topk", "kthvalue", "cummax"])
def test_operators_that_select_along_a_dimension_return_their_own_class(name):
    args = (2, 0) if name in ("topk", "kthvalue") else (0,)
    x = rg.tensor([3.0, 1.0, 2.0])
    for result in (getattr(rg, name)(x, *args), getattr(x, name)(*args)):
        assert type(result) is getattr(rg.return_types, name)
        assert (result[0], result[1]) == (result.values, result.indices)


def test_results_of_one_operator_that_calls_another_have_the_class_of_the_outer_one():
    assert type(rg.qr(rg.eye(2))) is rg.return_types.qr is not rg.return_types.linalg_qr


def test_results_written_into_out_have_names():
    out = rg.empty(0), rg.empty(0, dtype=rg.int64)
    result = rg.max(rg.tensor([[1.0, 2.0]]), 1, out=out)
    assert isinstance(result, rg.return_types.max)
    assert result.values is out[0]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))])
def test_copies_keep_the_class_of_results(copied):
    found = copied(RESULTS)
    assert type(found) is rg.return_types.max
    assert found.indices.tolist() == [1, 1]


def test_results_are_made_from_a_sequence_or_from_members():
    assert rg.return_types.max((1, 2)) == rg.return_types.max(1, 2) == (1, 2)
    with pytest.raises(TypeError, match=r"return_types.max\(\) takes a 2-sequence \(3-sequence given\)"):
        rg.return_types.max((1, 2, 3))


def test_results_are_inner_nodes_of_pytrees():
    doubled = optree.tree_map(lambda x: x * 2, RESULTS)
    assert type(doubled) is type(RESULTS)
    assert doubled.values.tolist() == [4.0, 8.0]
    assert type(rg.func.vmap(lambda x: rg.max(x, 0))(rg.ones(2, 3))) is rg.return_types.max


def test_members_cannot_be_assigned():
    with pytest.raises(AttributeError):
        RESULTS.values = 1


@pytest.mark.parametrize("fields", [("_fields", ("values", "indices")), ("__match_args__", ("values", "indices"))])
def test_classes_list_their_fields(fields):
    assert getattr(rg.return_types.max, fields[0]) == fields[1]
    assert rg.return_types.max.n_fields == 2


def test_a_stored_program_returns_results_in_a_process_that_has_not_imported_the_classes(tmp_path):
    class Largest(rg.nn.Module):
        def forward(self, x):
            return rg.max(x, 0)

    path = str(tmp_path / "largest.pt2")
    rg.export.save(rg.export.export(Largest(), (rg.ones(3),)), path)
    code = f"import retrograd as rg; print(type(rg.export.load({path!r}).module()(rg.ones(3))).__qualname__)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "max\n"
