"""Products of small floats with scales by tensor, row and block, and what is refused."""

import pytest

import retrograd as rg
from retrograd.nn.functional import ScalingType, SwizzleType, scaled_mm

TENSOR, ROW, SMALL, BLOCK = (
    ScalingType.TensorWise,
    ScalingType.RowWise,
    ScalingType.BlockWise1x128,
    ScalingType.BlockWise128x128,
)
A = (rg.arange(3 * 200) % 5 - 2).reshape(3, 200).to(rg.float8_e4m3fn)
B = (rg.arange(200 * 4) % 3 - 1).reshape(200, 4).to(rg.float8_e5m2)
ONE = rg.ones(())


@pytest.mark.parametrize(
    ("scale", "kind", "expanded"),
    [
        (rg.tensor(3.0), TENSOR, rg.full((3, 200), 3.0)),
        (rg.tensor([[1.0], [2.0], [4.0]]), ROW, rg.tensor([[1.0], [2.0], [4.0]]).expand(3, 200)),
        (rg.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), SMALL, None),
        (rg.tensor([[2.0, 8.0]]), BLOCK, rg.cat([rg.full((3, 128), 2.0), rg.full((3, 72), 8.0)], 1)),
    ],
    ids=["tensor", "row", "1x128", "128x128"],
)
def test_each_scale_multiplies_its_elements(scale, kind, expanded):
    if expanded is None:
        expanded = rg.cat([scale[:, :1].expand(3, 128), scale[:, 1:].expand(3, 72)], 1)
    a, b = A.float(), B.float()
    found = scaled_mm(A, B, scale, kind, ONE, TENSOR, bias=rg.ones(4), output_dtype=rg.float32)
    assert found.tolist() == ((a * expanded) @ b + 1).tolist()
    mirrored = scaled_mm(B.mT, A.mT, ONE, TENSOR, scale.mT, kind, output_dtype=rg.float32)
    assert mirrored.tolist() == (b.mT @ (a * expanded).mT).tolist()


def test_two_scales_multiply_and_the_result_is_bfloat16():
    found = scaled_mm(A, B, [rg.tensor(2.0), rg.ones(3, 1)], [TENSOR, ROW], ONE, TENSOR)
    assert found.dtype == rg.bfloat16
    assert found.float().tolist() == (2 * (A.float() @ B.float())).to(rg.bfloat16).float().tolist()


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="expected matrices"):
        scaled_mm(A, A, ONE, TENSOR, ONE, TENSOR)
    with pytest.raises(ValueError, match="scale_b does not fit RowWise"):
        scaled_mm(A, B, ONE, TENSOR, rg.ones(1, 3), ROW)
    with pytest.raises(ValueError, match="scale_a needs a recipe for each scale, got 2 and 1"):
        scaled_mm(A, B, [ONE, ONE], TENSOR, ONE, TENSOR)
    with pytest.raises(NotImplementedError, match="scale_a has to be in the order of its shape"):
        scaled_mm(A, B, ONE, TENSOR, ONE, TENSOR, swizzle_a=SwizzleType.SWIZZLE_32_4_4)
    with pytest.raises(RuntimeError, match="there are no gradients"):
        scaled_mm(rg.ones(3, 200, requires_grad=True), B, ONE, TENSOR, ONE, TENSOR)
