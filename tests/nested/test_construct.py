"""Construction of nested tensors from components, from dense tensors, and over buffers."""

import copy
import pickle

import numpy as np
import pytest

import retrograd as rg
from retrograd import nested
from retrograd.nested import as_nested_tensor, nested_tensor, nested_tensor_from_jagged

from ..case_groups import group_cases


def shapes(x):
    return [c.shape for c in x.unbind()]


# ------------------------------------------------------------------------------------------- of components


def test_components_are_copied_into_a_leaf_outside_their_graph():
    a = rg.ones(2, 3, requires_grad=True)
    x = nested_tensor([a * 2, rg.zeros(1, 3)], requires_grad=True)
    with rg.no_grad():
        a.fill_(7.0)
    assert x.is_leaf
    assert x.requires_grad
    assert x.tolist() == [[[2.0] * 3] * 2, [[0.0] * 3]]
    assert not nested_tensor([a]).requires_grad


def test_one_component_is_copied_too():
    a = rg.ones(2)
    x = nested_tensor([a])
    a.fill_(7.0)
    assert x.tolist() == [[1.0, 1.0]]


def test_a_leaf_collects_a_nested_gradient():
    x = nested_tensor([[1.0, 2.0], [3.0]], requires_grad=True)
    (x * x).values().sum().backward()
    assert x.grad.is_nested
    assert x.grad.tolist() == [[2.0, 4.0], [6.0]]


def test_gradients_flow_to_the_components_of_as_nested_tensor():
    a, b = rg.ones(2, requires_grad=True), rg.ones(3, requires_grad=True)
    x = as_nested_tensor([a, b])
    (x * nested_tensor([[1.0, 2.0], [3.0, 4.0, 5.0]])).values().sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([1.0, 2.0], [3.0, 4.0, 5.0])


@pytest.mark.parametrize(
    ("sizes", "shape", "several"),
    [
        ([(2, 3), (4, 3)], "(2, j, 3)", 1),
        ([(2, 3), (2, 5)], "(2, 2, j)", 1),
        ([(2, 3), (4, 1)], "(2, j, j2)", 2),
        ([(2, 3, 4), (1, 3, 5)], "(2, j, j2, j3)", 3),
        ([(2, 3), (2, 3)], "(2, j, 3)", 1),
        ([(0, 3), (0, 3)], "(2, j, 3)", 1),
        ([(), ()], "(2,)", 0),
    ],
)
def test_ragged_are_the_dimensions_from_the_first_to_the_last_that_differ(sizes, shape, several):
    x = nested_tensor([rg.ones(size) for size in sizes])
    assert str(x.shape) == shape
    assert shapes(x) == sizes
    assert x.ndim == len(sizes[0]) + 1
    assert x._nested_tensor_size().shape == (len(sizes), len(sizes[0]))


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        ([[1, 2], [3]], rg.int64),
        ([[1, 2], [3.5]], rg.float32),
        ([[1, 2], []], rg.int64),
        ([[], []], rg.float32),
        ([[1j], [2]], rg.complex64),
        ([[True], []], rg.bool),
        ([np.ones(2), [1, 2, 3]], rg.float64),
        ([[np.float64(1.5)], [2.0]], rg.float64),
        ([1, 2.5], rg.float32),
    ],
)
def test_numbers_in_lists_take_one_dtype_that_holds_all_of_them(given, dtype):
    x = nested_tensor(given)
    assert x.dtype == dtype
    assert x.tolist() == [c if np.ndim(c) == 0 else [*c] for c in given]


def test_numbers_next_to_float64_keep_their_digits():
    assert nested_tensor([np.zeros(1), [0.1]]).tolist() == [[0.0], [0.1]]


def test_dtype_converts_all_components_and_passes_gradients():
    a = rg.ones(2, requires_grad=True)
    x = as_nested_tensor([a, rg.ones(1, dtype=rg.int64)], dtype=rg.float64)
    assert x.dtype == rg.float64
    x.values().sum().backward()
    assert a.grad.tolist() == [1.0, 1.0]
    assert nested_tensor([[1, 2], [3]], dtype=rg.float16).dtype == rg.float16


@pytest.mark.parametrize("dtype", [None, rg.int64])
def test_there_may_be_no_components(dtype):
    x = nested_tensor([], dtype=dtype)
    assert (len(x), x.numel(), str(x.shape), x.unbind(), x.tolist()) == (0, 0, "(0,)", (), [])
    assert x.dtype == (dtype or rg.float32)
    assert (x + 1).tolist() == []


def test_components_without_dimensions_are_numbers():
    x = nested_tensor([1.0, 2.0], requires_grad=True)
    assert (x * 3).tolist() == [3.0, 6.0]
    assert x.offsets().tolist() == [0, 1, 2]


@pytest.mark.parametrize("make", [nested_tensor, as_nested_tensor])
@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ([rg.ones(2), rg.ones(1), rg.ones(2, 1)], ValueError, r"0 has shape \(2,\), component 2 has shape \(2, 1\)"),
        ([rg.ones(2), rg.ones(2, dtype=rg.float64)], RuntimeError, "0 has float32, component 1 has float64; give"),
        ([rg.ones(2, dtype=rg.int64), [1.5]], RuntimeError, "component 0 has dtype int64, .* of component 1"),
        ([[rg.ones(2)], [rg.ones(1), np.ones(3)]], RuntimeError, "component 1, 1 has float64"),
        ([[[1.0], [2.0, 3.0]], nested_tensor([[[1.0]]])], ValueError, r"component 1 has shape \(1, j, 1\)"),
        ([1.0, [1.0]], ValueError, r"component 1 has shape \(1,\)"),
        ([rg.ones(2), None], TypeError, "component 1 must be a tensor, an array or a list, got NoneType"),
        ("ab", TypeError, "Only lists .* are accepted in .*, got str"),
        (rg.tensor(1.0), ValueError, "without dimensions"),
    ],
)  # fmt: skip
def test_components_that_do_not_fit_are_named(make, given, error, message):
    with pytest.raises(error, match=message):
        make(given)


def test_keywords_say_what_is_the_case_or_are_refused():
    assert nested_tensor([[1.0]], device="cpu", layout=rg.strided).is_nested
    with pytest.raises(RuntimeError, match="live on the CPU"):
        as_nested_tensor([[1.0]], device="cuda")
    with pytest.raises(RuntimeError, match="pin_memory"):
        nested_tensor([[1.0]], pin_memory=True)
    with pytest.raises(TypeError, match=r"rg\.strided or rg\.jagged, got 3"):
        nested_tensor([[1.0]], layout=3)
    with pytest.raises(RuntimeError, match="int64"):
        nested_tensor([[1]], requires_grad=True)


# ------------------------------------------------------------------------------------------------- layouts


LAYOUTS = {None: rg.strided, rg.strided: rg.strided, rg.jagged: rg.jagged}


def test_the_layout_is_the_requested_one():
    for layout, expected in LAYOUTS.items():
        for make in (nested_tensor, as_nested_tensor):
            assert make([rg.ones(2, 3), rg.ones(1, 3)], layout=layout).layout is expected
            assert make(rg.ones(2, 3), layout=layout).layout is expected
    assert nested_tensor([rg.ones(2, 3), rg.ones(1, 2)]).layout is rg.strided
    assert nested_tensor([[[1], [2, 3]], [[4]]]).layout is rg.strided
    assert nested_tensor_from_jagged(rg.ones(3), [0, 1, 3]).layout is rg.jagged
    assert rg.nested.masked_select(rg.ones(2, 2), rg.ones(2, 2) > 0).layout is rg.jagged
    for layout in (rg.strided, rg.jagged):
        assert rg.nested.narrow(rg.ones(2, 3), 1, 0, 2, layout=layout).layout is layout
    assert rg.ones(2).layout is rg.strided


LIKE = {
    "*": lambda x: x * 2,
    "+": lambda x: x + x,
    "clone": lambda x: x.clone(),
    "detach": lambda x: x.detach(),
    "dtype": lambda x: x.double(),
    "zeros_like": rg.zeros_like,
    "transpose": lambda x: x.transpose(1, 2),
    "sum": lambda x: x.sum(-1),
    "softmax": lambda x: x.softmax(-1),
    "some components": lambda x: x[:1],
    "unsqueeze": lambda x: x.unsqueeze(-1),
    "in place": lambda x: x.clone().add_(1),
    "deepcopy": copy.deepcopy,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "vmap": rg.func.vmap(lambda row: row * 2),
    "trace": lambda x: rg.fx.trace(lambda x: x * 2, x)(x),
    "gradient": lambda x: rg.func.grad(lambda x: x.sin().values().sum())(x),
}


@group_cases
@pytest.mark.parametrize("layout", [rg.strided, rg.jagged])
@pytest.mark.parametrize("f", LIKE.values(), ids=LIKE)
def test_results_have_the_layout_of_their_operands(f, layout):
    x = nested_tensor([rg.ones(2, 3), rg.ones(1, 3)], layout=layout)
    assert f(x).layout is layout
    assert x.layout is layout


@pytest.mark.parametrize("layout", [rg.strided, rg.jagged])
def test_the_layout_is_stored(tmp_path, layout):
    x = nested_tensor([rg.ones(2, 3), rg.ones(1, 3)], layout=layout)
    rg.save(x, tmp_path / "x.pt")
    assert rg.load(tmp_path / "x.pt").layout is layout


def test_another_layout_is_a_view_with_gradients():
    x = nested_tensor([rg.ones(2), rg.ones(1)], requires_grad=True)
    y = as_nested_tensor(x, layout=rg.jagged)
    assert (x.layout, y.layout) == (rg.strided, rg.jagged)
    (y * 3).values().sum().backward()
    assert x.grad.values().tolist() == [3.0] * 3
    with pytest.raises(RuntimeError, match="Cannot represent given tensor list as a nested tensor with the jagged"):
        as_nested_tensor(nested_tensor([rg.ones(2, 3), rg.ones(1, 2)]), layout=rg.jagged)


def test_the_size_of_a_dimension_is_irregular_in_the_strided_layout_only():
    x = nested_tensor([rg.ones(2, 3), rg.ones(1, 3)])
    assert (x.size(0), x.size(2), x.size(-1)) == (2, 3, 3)
    with pytest.raises(RuntimeError, match=r"Given dimension -2 is irregular and does not have a size.*\(2, 1\)"):
        x.size(-2)
    with pytest.raises(IndexError, match=r"expected to be in range of \[-3, 2\], but got 3"):
        x.size(3)
    assert nested_tensor([rg.ones(2, 3)] * 2).size(1) == 2
    jagged = as_nested_tensor(x, layout=rg.jagged)
    assert jagged.size(1) == jagged.shape[1]
    assert str(jagged.size(1)) == "j"


def test_the_lengths_of_a_jagged_tensor_have_bounds():
    x = nested_tensor([rg.ones(2, 3), rg.ones(1, 3)], layout=rg.jagged)
    assert (x._min_seqlen, x._max_seqlen, x._get_min_seqlen(), x._get_max_seqlen(), x._ragged_idx) == (1, 2, 1, 2, 1)
    assert x.transpose(1, 2)._ragged_idx == 2
    holes = nested_tensor_from_jagged(rg.arange(5), [0, 2, 5], lengths=[1, 3])
    assert (holes._min_seqlen, holes._max_seqlen) == (1, 3)
    strided = nested_tensor([rg.ones(2, 3), rg.ones(1, 3)])
    assert not hasattr(strided, "_max_seqlen")
    with pytest.raises(RuntimeError, match="_get_max_seqlen: only nested tensors in the jagged layout"):
        strided._get_max_seqlen()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            [rg.ones(2, 3), rg.ones(2, 3), rg.ones(1, 2)],
            r"dimensions 1 to 2: .* \(2, 3\), component 2 has shape \(1, 2\)",
        ),
        ([[[1], [2, 3]], [[4]]], "component 0 is a nested tensor"),
        ([1.0, 2.0], r"component 0 has shape \(\)"),
    ],
)
def test_the_jagged_layout_names_the_component_that_does_not_fit_in(given, message):
    with pytest.raises(RuntimeError, match=message):
        nested_tensor(given, layout=rg.jagged)


# ------------------------------------------------------------------------------------------- dense and nested


def test_a_dense_tensor_becomes_its_slices_over_the_same_memory():
    dense = rg.arange(12.0).reshape(2, 3, 2).requires_grad_()
    x = as_nested_tensor(dense)
    assert x.tolist() == dense.tolist()
    assert x.values().data_ptr() == dense.data_ptr()
    (x * 2).values().sum().backward()
    assert dense.grad.tolist() == rg.full((2, 3, 2), 2.0).tolist()
    assert as_nested_tensor(rg.ones(3)).tolist() == [1.0] * 3
    assert shapes(as_nested_tensor(rg.ones(0, 2))) == []
    assert nested_tensor(dense).values().data_ptr() != dense.data_ptr()
    assert as_nested_tensor(np.ones((2, 3))).dtype == rg.float64


def test_a_nested_tensor_stays_what_it_is_or_is_copied():
    x = nested_tensor([[1.0, 2.0], [3.0]], requires_grad=True)
    assert as_nested_tensor(x) is x
    assert as_nested_tensor(x, dtype=rg.float64).dtype == rg.float64
    copy = nested_tensor(x * 2)
    assert copy.is_leaf
    assert copy.tolist() == [[2.0, 4.0], [6.0]]
    assert nested_tensor(x).values().data_ptr() != x.values().data_ptr()


def test_inside_a_batch_components_may_be_examples():
    def f(row, more):
        return as_nested_tensor([row, rg.cat([row, more])]) * 2

    out = rg.vmap(f)(rg.tensor([[1.0], [2.0]]), rg.tensor([[3.0], [4.0]]))
    assert out.tolist() == [[[2.0], [2.0, 6.0]], [[4.0], [4.0, 8.0]]]


# --------------------------------------------------------------------------------------------- sets of sets

SETS = [[[1.0, 2.0], [3.0]], [[4.0]], []]


def test_lists_that_differ_in_shape_are_sets():
    x = nested_tensor(SETS)
    assert str(x.shape) == "(3, j, j2)"
    assert x.tolist() == SETS
    assert [len(c) for c in x.unbind()] == [2, 1, 0]
    assert x.values().tolist() == [[1.0, 2.0], [3.0], [4.0]]
    assert x.values().values().tolist() == [1.0, 2.0, 3.0, 4.0]
    assert x.offsets().tolist() == [0, 2, 3, 3]


def test_sets_go_to_any_depth():
    deep = [[[[1], [2, 3]], [[4]]], [[[5]]]]
    x = nested_tensor(deep)
    assert str(x.shape) == "(2, j, j2, j3)"
    assert x.tolist() == deep
    assert (x * 2 + x).tolist() == [[[[3], [6, 9]], [[12]]], [[[15]]]]
    assert x.unbind()[0].unbind()[0].tolist() == [[1], [2, 3]]
    assert x.dtype == rg.int64


def test_gradients_reach_what_sets_are_made_of():
    a, b, c = (rg.ones(n, requires_grad=True) for n in (2, 1, 3))
    inner = as_nested_tensor([a, b])
    x = as_nested_tensor([inner, as_nested_tensor([c])])
    (x * x * 3).values().values().sum().backward()
    assert [t.grad.tolist() for t in (a, b, c)] == [[6.0] * 2, [6.0], [6.0] * 3]
    assert as_nested_tensor([[a, b], [c]]).tolist() == x.tolist()


def test_sets_whose_layouts_differ_are_brought_into_one():
    rows = nested_tensor([rg.ones(2, 3), rg.ones(4, 3)])
    columns = nested_tensor([rg.ones(2, 3), rg.ones(2, 5)])
    x = nested_tensor([rows, columns, rg.ones(1, 2, 2)])
    assert [shapes(c) for c in x.unbind()] == [[(2, 3), (4, 3)], [(2, 3), (2, 5)], [(2, 2)]]


@pytest.mark.filterwarnings("ignore::retrograd.ops.batch_loop.PerformanceWarning")
def test_an_operator_between_sets_that_differ_is_refused():
    with pytest.raises(ValueError, match="component"):
        nested_tensor(SETS) + nested_tensor([[[1.0, 2.0, 3.0], [3.0]], [[4.0]], []])


# ---------------------------------------------------------------------------------- over a buffer that is there


def rows():
    return rg.arange(10.0).reshape(5, 2)


def test_offsets_lay_components_over_rows_without_a_copy():
    v = rows().requires_grad_()
    x = nested_tensor_from_jagged(v, rg.tensor([0, 2, 5]))
    assert x.values().data_ptr() == v.data_ptr()
    assert x.tolist() == [v[:2].tolist(), v[2:].tolist()]
    (x * x).values().sum().backward()
    assert v.grad.tolist() == (2 * rows()).tolist()


@pytest.mark.parametrize("given", [[0, 2, 5], (0, 2, 5), np.array([0, 2, 5], np.int32), np.array([0, 2, 5], np.uint8)])
def test_offsets_may_be_any_integers_and_are_copied(given):
    x = nested_tensor_from_jagged(rows(), given)
    if isinstance(given, np.ndarray):
        given[1] = 4
    assert x.offsets().tolist() == [0, 2, 5]
    assert x.offsets().dtype == rg.int64


def test_lengths_alone_follow_each_other():
    x = nested_tensor_from_jagged(rows(), lengths=[2, 0, 3])
    assert x.offsets().tolist() == [0, 2, 2, 5]
    assert x.lengths() is None


def test_lengths_next_to_offsets_leave_holes():
    v = rows().requires_grad_()
    x = nested_tensor_from_jagged(v, [0, 2, 5], [1, 2])
    assert (x.lengths().tolist(), x.offsets().tolist()) == ([1, 2], [0, 2, 4])
    assert x.values().shape == (5, 2)
    assert (x.numel(), x.size, x.nbytes) == (6, 6, 24)
    assert x.tolist() == [[[0.0, 1.0]], [[4.0, 5.0], [6.0, 7.0]]]
    (x * 3).values().sum().backward()
    assert v.grad.tolist() == [[3.0, 3.0], [0.0, 0.0], [3.0, 3.0], [3.0, 3.0], [0.0, 0.0]]


def test_components_may_share_rows():
    v = rg.arange(4.0).requires_grad_()
    x = nested_tensor_from_jagged(v, [0, 1, 2, 4], [3, 3, 2])
    assert x.tolist() == [[0, 1, 2], [1, 2, 3], [2, 3]]
    (x * 1).values().sum().backward()
    assert v.grad.tolist() == [1.0, 2.0, 3.0, 2.0]


def test_gradients_of_rows_in_holes_arrive_next_to_those_of_components():
    v = rows().requires_grad_()
    x = nested_tensor_from_jagged(v, [0, 2, 5], [1, 2])
    ((x * 2).values().sum() + x.values().sum() + (x * 3).values().sum()).backward()
    assert v.grad.tolist() == [[6.0] * 2, [1.0] * 2, [6.0] * 2, [6.0] * 2, [1.0] * 2]


def test_gradients_of_shared_rows_are_counted_once_for_each_component_in_every_use():
    v = rg.arange(4.0).requires_grad_()
    x = nested_tensor_from_jagged(v, [0, 1, 4], [3, 3])
    ((x * 2).values().sum() + (x * 3).values().sum()).backward()
    assert v.grad.tolist() == [5.0, 10.0, 10.0, 5.0]
    v.grad = None
    nested_tensor_from_jagged(v, [0, 1, 4], [3, 3]).backward(nested_tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    assert v.grad.tolist() == [1.0, 6.0, 8.0, 6.0]


def test_lengths_that_leave_no_holes_are_forgotten():
    x = nested_tensor_from_jagged(rows(), [0, 2, 5], [2, 3])
    assert x.lengths() is None
    assert x.shape == nested_tensor_from_jagged(rows(), [0, 2, 5]).shape


def test_the_ragged_dimension_may_stand_further_back():
    x = nested_tensor_from_jagged(rows().T, [0, 2, 5], jagged_dim=2)
    assert str(x.shape) == "(2, 2, j)"
    assert shapes(x) == [(2, 2), (2, 3)]


def test_a_nested_buffer_makes_sets_of_sets():
    x = nested_tensor_from_jagged(nested_tensor_from_jagged(rows(), [0, 2, 5]), [0, 2, 2])
    assert x.tolist() == [[rows()[:2].tolist(), rows()[2:].tolist()], []]


def test_there_may_be_no_components_over_no_rows():
    assert str(nested_tensor_from_jagged(rows()[:0], [0]).shape) == "(0, j, 2)"
    empty = nested_tensor_from_jagged(rows(), [0], lengths=[])
    assert empty.offsets().tolist() == [0]
    assert empty.tolist() == []


HUGE = 2**63 - 1


@pytest.mark.parametrize(
    ("offsets", "lengths", "error", "message"),
    [
        (None, None, RuntimeError, "At least one of offsets or lengths is required"),
        ([0.0, 2.0, 5.0], None, TypeError, "offsets must be integers, got float64"),
        ([True, False], None, TypeError, "offsets must be integers, got bool"),
        ([[0, 2, 5]], None, ValueError, r"offsets must have one dimension, got shape \(1, 3\)"),
        ([], None, ValueError, "one entry more than there are components, got none"),
        ([1, 2, 5], None, ValueError, "begin with 0, got 1"),
        ([-1, 2, 5], None, ValueError, "begin with 0, got -1"),
        ([0, 3, 2, 5], None, ValueError, "must not decrease, got 3 at index 1 and 2 after it"),
        ([0, HUGE, -HUGE - 1, 5], None, ValueError, "must not decrease, got 9223372036854775807 at index 1"),
        ([0, 3, 9], None, ValueError, "end at 9, but values has 5 rows"),
        ([0, 3, 4], None, ValueError, "end at 4, but values has 5 rows; give lengths"),
        ([0, 2, 5], [1], ValueError, "3 offsets and 1 lengths"),
        ([0, 2, 5], [3, -1], ValueError, r"lengths\[1\] is -1, which is negative"),
        ([0, 9, 5], [3, 1], ValueError, r"offsets\[1\] is 9, which is outside the 5 rows"),
        ([0, -2, 5], [3, 1], ValueError, r"offsets\[1\] is -2"),
        ([0, 2, 5], [3, 9], ValueError, "component 1 has length 9 from row 2 on, but values has 5 rows"),
        ([0, 2, 5], [3, HUGE], ValueError, "component 1 has length 9223372036854775807 from row 2 on"),
        ([0, 2, 5], [[3, 2]], ValueError, "lengths must have one dimension"),
        (None, [2, 4], ValueError, "lengths add up to 6, but values has 5 rows"),
        (None, [2, -4], ValueError, r"lengths\[1\] is -4"),
        (None, [HUGE, HUGE, 7], ValueError, r"lengths\[0\] is 9223372036854775807, which is more than the 5 rows"),
        (np.array([0, 2**63], np.uint64), None, ValueError, "too large"),
    ],
)
def test_offsets_and_lengths_from_outside_are_checked_first(offsets, lengths, error, message):
    with pytest.raises(error, match=message):
        nested_tensor_from_jagged(rows(), offsets, lengths)


@pytest.mark.parametrize("dim", [0, -1, 3])
def test_the_ragged_dimension_must_exist(dim):
    with pytest.raises(ValueError, match=f"Expected jagged_dim >=1, but got {dim}. At most it is 2"):
        nested_tensor_from_jagged(rows(), [0, 2, 5], jagged_dim=dim)
    with pytest.raises(ValueError, match="values must have a dimension"):
        nested_tensor_from_jagged(rg.tensor(1.0), [0, 1])


def test_bounds_of_the_lengths_are_checked():
    assert nested_tensor_from_jagged(rows(), [0, 2, 5], min_seqlen=0, max_seqlen=7).numel() == 10
    with pytest.raises(ValueError, match="component 1 has length 3, more than max_seqlen=2"):
        nested_tensor_from_jagged(rows(), [0, 2, 5], max_seqlen=2)
    with pytest.raises(ValueError, match="component 0 has length 2, less than min_seqlen=3"):
        nested_tensor_from_jagged(rows(), [0, 2, 5], min_seqlen=3)


def test_every_public_name_exists():
    assert all(hasattr(nested, name) for name in nested.__all__)


@pytest.mark.parametrize("dtype", [rg.float32, rg.float64, rg.float16, rg.complex64])
@pytest.mark.parametrize("like", [rg.rand_like, rg.randn_like])
def test_random_numbers_like_a_nested_tensor_have_its_layout(like, dtype):
    x = nested.nested_tensor([rg.ones(2, 3), rg.ones(0, 3), rg.ones(4, 3)], dtype=dtype)
    rg.manual_seed(0)
    out = like(x)
    rg.manual_seed(0)
    expected = like(x.values())
    assert out.shape == x.shape
    assert out.dtype == dtype
    assert rg.equal(out.values(), expected)


def test_random_integers_like_a_nested_tensor_have_its_layout():
    x = nested.nested_tensor([[1, 2], [3]])
    out = rg.randint_like(x, 5, 6)
    assert (out.shape, out.tolist()) == (x.shape, [[5, 5], [5]])
