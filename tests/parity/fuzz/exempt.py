"""Permitted differences of programs, and the reason for each."""

import re

from .differential import Difference

MORE = "ours has a derivative where PyTorch has none"
REFUSED = "ours refuses by name, as its documentation says, what PyTorch does with a warning or without a use"
UNDEFINED = "PyTorch's documentation leaves this open"
THEIRS = "a fault of PyTorch's"

_SPECIAL = (
    r"L\.special\.(bessel|modified_bessel|scaled_modified|spherical_bessel|airy|chebyshev|shifted_cheb|hermite|"
    r"laguerre|legendre|zeta|gammainc)"
)
_LEAF = r"requires_grad of \w+ False, leaf True, ours True, leaf False"

# (pattern of the last line, pattern of the difference) -> reason.
EXEMPT: dict[tuple[str, str], str] = {
    ("", r"PyTorch refuses backward: (the )?derivative for \S+ is not implemented"): MORE,
    (r"L\.autograd|backward|L\.func", r"PyTorch raises \w+: (the )?derivative for \S+ is not implemented"): MORE,
    (_SPECIAL, _LEAF): MORE,
    ("", r"PyTorch refuses backward: one of the variables needed .* modified by an inplace operation"): (
        "ours saves another value, or a copy of it, so that the write does no harm"
    ),
    (r"backward\(|grad\(", r"PyTorch raises RuntimeError: one of the variables needed .* modified by an inplace"): (
        "ours saves another value, or a copy of it, so that the write does no harm"
    ),
    ("", r"PyTorch refuses backward: (Negation|Subtraction), the `-` operator, (on|with) a bool tensor"): (
        THEIRS + ": the rule subtracts booleans, which it refuses"
    ),
    (r"(squeeze|transpose|swapaxes|[.]t)_\(", r"PyTorch raises RuntimeError: (a view of a leaf|Output \d of)"): (
        "only the view becomes another one; nothing is written to the leaf"
    ),
    (
        r"(squeeze|transpose|swapaxes|[.]t)_\(",
        r"ours raises RuntimeError: \w+: a leaf Variable .* can't become a view",
    ): (REFUSED),
    ("", r"requires_grad of (u?int\d+|bool) True"): THEIRS + ": a tensor of integers or booleans requires grad",
    (
        r"func\.",
        r"requires_grad of \w+ (True, leaf False, ours False|False, leaf True, ours True)",
    ): ("the derivative does not depend on the tensor; PyTorch's graph holds a product with zero"),
    (r"_\(|=", r"ours raises RuntimeError: .*: this tensor's memory is read-only"): (
        "PyTorch leaves a write to an expanded tensor undefined"
    ),
    (r"out=", r"ours raises RuntimeError: (\w+: out= takes no part in|in-place write to a|this tensor is a view)"): (
        "a write that no graph knows of, to a tensor that requires grad or by an operator that has a derivative here"
    ),
    (r"out=", r"gradient of"): "PyTorch leaves the graph of a tensor that out= wrote to as it was; ours cuts it off",
    (r"as_strided_scatter", r"gradient of"): THEIRS + ": elements that are not written to lose their gradient",
    (r"func\.", r"gradient of .*: zeros, ours none"): "nothing flows; PyTorch's graph holds a product with zero",
    (r"lu_unpack", r"requires_grad of \w+ True"): "an output that is not asked for is empty",
    (r"mode='complete'", r"value at"): UNDEFINED + ": the basis of the orthogonal complement",
    (r"cum(sum|prod)_\(", r"can't be cast to bool"): THEIRS + ": only tensors of one element are accepted",
    (r"[-+*/%]|\*\*", r"ours raises OverflowError: Python integer -?\d+ out of bounds"): (
        "PyTorch wraps a number that the dtype does not hold; ours refuses it, as NumPy does"
    ),
    (r"grad\(.*create_graph=True", r"requires_grad of \w+ (True|False), leaf (True|False), ours (True|False)"): (
        "a gradient that does not depend on the tensor; one of the two graphs holds a product with zero"
    ),
    (r"qr\(", r"value at"): UNDEFINED + ": the columns of Q that a singular matrix leaves open",
    (r"combinations\(.*r=0|triangular_solve\(.*\)\[1\]|qr\(.*mode='r'", r"requires_grad"): "a copy or an empty result",
    (_SPECIAL, r"value at .*, ours nan"): THEIRS + ": NaN gives a number",
    (r"amin|amax", r"nan, ours"): "NaN, which is the extremum, has the gradient here; PyTorch divides 0 by 0 ties",
    (r"abs|log_softmax", r"value at .*: -?0\.0, ours nan"): "the derivative at NaN is NaN; PyTorch's is 0",
    (r"logcumsumexp", r"(gradient|grad).*nan"): THEIRS + ": its rule drops cotangents that are NaN, and makes others",
    (r"\.data = ", r"(gradient|grad)"): UNDEFINED + ": autograd does not see what `.data` changes",
    (r"polar\(", r"gradient"): THEIRS + ": its rule takes the absolute value for positive, which the operator does not",
    (r"ldexp\(", r"gradient"): THEIRS + ": its rule raises integers to negative powers",
    (r"digamma|polygamma|lgamma", r"(gradient|grad).*(inf|nan|e\+\d+)"): UNDEFINED + ": the derivative at a pole",
    (r"as_strided\(", r"ours raises RuntimeError: as_strided: .* reach places up to"): (
        UNDEFINED + ": memory of the storage outside of what the tensor shows"
    ),
    (r"expand\(", r"ours raises ValueError: expand: .* keeps no size in front"): (
        THEIRS + ": vmap takes -1 for a new dimension, which it refuses without vmap"
    ),
    (r"lerp", r"ours refuses backward.*a second time: the values that lerp saved"): (
        "PyTorch saves nothing where the weight is a number; ours refuses, retain_graph=True helps"
    ),
    (r"\b(any|all)\(", r"dtype uint8, ours bool"): "booleans of uint8 too, as the array API says",
    (r"kthvalue|topk|sort|median|mode\(", r"(gradient|grad) .*value at|grad: value at"): (
        UNDEFINED + ": which of equal elements has the gradient"
    ),
    (r"clamp\(", r"value at .*ours 0\.0"): UNDEFINED + ": which operand has the derivative at NaN, or at a tie",
    (r"scatter", r"PyTorch refuses backward: .* returned an invalid gradient"): THEIRS
    + ": a source larger than the index",
    (r"cholesky_ex", r"value at"): UNDEFINED + ": the factor of a matrix that has none",
    ("", r"ours raises TypeError: .*would lose their imaginary parts"): REFUSED,
    (r"\] \S+= ", r"PyTorch raises RuntimeError: a leaf Variable that requires grad"): (
        THEIRS + ": a view whose base has become part of a graph counts as a leaf until somebody asks for its grad_fn"
    ),
    ("", r"PyTorch refuses backward: Output \d of \w+ is a view and its base"): "ours keeps the history of such views",
    (r"\b(var|std)", r"value at .*: -?(inf|nan), ours -?(inf|nan)"): UNDEFINED + ": the deviation of one element",
    (r"func\.vmap", r"ours raises IndexError: index: a mask"): THEIRS + ": masks without elements fit every shape",
    (r"solve|inv|cholesky|lstsq", r"value at .*e\+\d\d"): "a matrix that is singular but for rounding",
    (r"cholesky_(solve|inverse)", r"gradient"): THEIRS + ": a derivative by the triangle that is not read",
    (r"gelu\(", r"nan, ours"): THEIRS + ": 0 times infinity",
    (r"addcdiv", r"(gradient|grad).*nan, ours -?inf"): "ours adds up what was broadcast before it divides by 0",
    (r"func\.jvp.*logcumsumexp", r"value at"): THEIRS + ": the exponentials in its forward rule overflow",
    (r"func\.", r"grad: zeros, ours none"): "nothing flows; PyTorch's graph holds a product with zero",
    (r"geqrf\(", r"value at"): UNDEFINED + ": reflections of columns that are 0 but for rounding",
    (r"func\.vmap.*(expand_as|unfold)", r"shape"): THEIRS + ": vmap reads a size that is not there",
    ("", r"ours raises RuntimeError: .* is a view in PyTorch, but here a copy"): REFUSED,
    (r"lerp", r"value at .*nan, ours -?inf"): "PyTorch subtracts infinities from each other",
    (r"quantile", r"requires_grad"): "the midpoint does not depend on q; PyTorch's graph ends there",
    (r"func\.vmap.*conv", r"ours raises ValueError: \w+: the bias"): THEIRS + ": vmap does not look at the bias' shape",
    (r"einsum|linalg", r"ours raises RuntimeError: [\w.]+: operands must have one dtype"): (
        REFUSED + "; PyTorch promotes where its implementation happens to multiply element by element"
    ),
    (r"[<>] -\d", r"value at"): THEIRS + ": negative numbers wrap before an unsigned integer is compared with them",
    (r"detach_\(", r"PyTorch raises RuntimeError: Can't detach views"): (
        "the operator returns a view of something that nobody has in PyTorch, and a tensor of its own here"
    ),
    (r"laguerre_polynomial_l", r"value at .*e-3\d\d, ours nan"): THEIRS + ": memory that was not written, at NaN",
    (r"detach_\(", r"gradient"): UNDEFINED + ": older views of a tensor that was detached in place",
    (r"@|matmul", r"ours (refuses backward|raises).*modified by an inplace"): (
        "PyTorch saves a copy where it folds a stack into one matrix; ours refuses"
    ),
    (r"polygamma|digamma", r"value at .*inf"): UNDEFINED + ": the value at a pole",
    (r"hardsigmoid", r"(gradient|grad)"): THEIRS + ": one sixth in single precision",
    (
        "",
        r"value at .*\((-?inf|nan|-?[\d.]+)[-+](inf|nan|[\d.]+)?j\), ours \(-?(inf|nan)",
    ): "the parts of complex infinities",
    (r"copysign", r"(gradient|grad).*nan"): THEIRS + ": its rule divides the result by the operand",
    (r"cholesky_(solve|inverse)", r"value at .*j"): UNDEFINED + ": a factor with a diagonal that is not real",
    (r"True \*\*", r"INTERNAL ASSERT"): THEIRS + ": it says so itself",
    (r"func\.(jacfwd|jvp|hessian)", r"value at .*nan, ours"): THEIRS + ": zeros as tangents meet NaN",
    (r"bessel", r"value at"): THEIRS + ": single precision in the coefficients; SciPy's and mpmath's agree with ours",
    (
        r"(?s)register_hook.*no_grad",
        r"gradient",
    ): "a view keeps its hooks after a write under no_grad",
    (_SPECIAL, r"ours raises RuntimeError: this tensor is a view"): MORE + ", which needs the history of the view",
    (r"linalg", r"ours raises TypeError: [\w.]+: expected a floating"): REFUSED,
    (_SPECIAL, r"value at .*: -?0\.0, ours"): MORE,
    ("", r"PyTorch refuses backward: Trying to use a saved tensor that has been detached"): "ours saves another value",
    (r"abs|i0e|i1e", r"gradient of .*, ours nan"): "the derivative at NaN is NaN; PyTorch's is 0",
    (r"pinv", r"value at"): UNDEFINED + ": a rank that rounding decides",
    (r"cond\(", r"value at .*: inf, ours nan"): UNDEFINED + ": the condition of a matrix with NaN",
    (r"logcumsumexp", r"value at .*(nan|inf)"): THEIRS + ": its rule makes NaN of infinite sums",
    (r"out=", r"grad: value"): "PyTorch leaves the graph of a tensor that out= wrote to as it was; ours cuts it off",
    (r"inputs=", r"PyTorch (refuses|raises).*backward through the graph a second time"): "ours frees what it ran only",
    (r"istft", r"ours raises OverflowError"): "a window of zeros, which PyTorch divides by",
    (r"pow|\*\*", r"ours raises TypeError: pow: not defined for bool"): THEIRS
    + ": accepted where there are no elements",
    ("", r"PyTorch refuses backward: Expected isFloatingType\(grad"): THEIRS + ": a rule for real and complex operands",
    ("", r"contiguous, ours is not"): "the layout of results is compared by tests/parity/operator_database/layouts.py",
    (r"sparse=True", r"ours raises NotImplementedError: \w+: there are no sparse gradients"): REFUSED,
    (r"topk\(|sort\(|kthvalue\(|median\(|mode\(", r"value at .*: \d+, ours \d+$"): (
        UNDEFINED + ": which of equal elements an index names"
    ),
    (r"unique|sort|topk|kthvalue|max_pool|arg(min|max)", r"nan"): UNDEFINED + ": the order of NaN",
    (r"\b(sign|sgn)(_\(|\()", r"value at .*: [-+]?0\.0, ours nan"): "NumPy's sign of NaN is NaN, as the array API says",
    (r"logcumsumexp\(|logaddexp", r"value at .*j\), ours .*j"): UNDEFINED + ": the sheet of the complex logarithm",
    (r"median\(", r"ours raises ValueError: \w+: nothing to choose from"): THEIRS + ": -2**63 as the median of nothing",
    (r"median\(", r"ours raises TypeError: \w+: complex numbers have no order"): THEIRS + ": it orders complex numbers",
    (r"softmax\(", r"ours raises TypeError: \w+: expected a floating or complex dtype"): (
        THEIRS + ": integers are accepted where there are no elements"
    ),
    (r"@|matmul|dot|mv\(|mm\(", r"ours raises RuntimeError: \w+: operands must have one dtype"): (
        THEIRS + ": dtypes are not compared where there are no elements"
    ),
    (r"index_\w+\(", r"ours raises IndexError: (\w+: )?(index \d+ is out of bounds|.* but there are)"): (
        THEIRS + ": indices are not looked at where there are no elements"
    ),
    (r"addcmul", r"result is float\d+ and can't be cast to u?int|dtype u?int\d+, ours float\d+"): (
        UNDEFINED + ": PyTorch rounds `value` of integers without a word"
    ),
    (r"func\.vmap.*tri[ul]", r"ours raises ValueError: tri[ul]: expected at least 2"): (
        THEIRS + ": vmap does not look at the dimensions of one example"
    ),
    (
        r"_\(|=",
        r"PyTorch raises RuntimeError: (Output 0 of|A view was created in no_grad mode).*returns multiple views",
    ): ("results of PyTorch's transforms are views that were made together; ours are tensors of their own"),
    (
        r"atleast_\dd\(\[",
        r"shape",
    ): "a list of one tensor gives the tensor, as its documentation says, not a tuple of one",
    (r"func\.(vmap|jac|hessian)", r"dtype \w+, ours|must have one dtype|expected both float32"): (
        "examples without dimensions promote as a loop over them would, in PyTorch as their stack does"
    ),
    (r"detach_\(", r"ours raises RuntimeError: detach_: can't detach views"): REFUSED,
    (r"requires_grad", r"requires_grad of \w+ True, leaf (True|False), ours False, leaf True"): (
        THEIRS + ": a view that was made before its base required grad is a leaf with a gradient of its own"
    ),
    (r"conv", r"ours raises RuntimeError: \w+: operands must have one dtype"): THEIRS + ": no check of the bias' dtype",
    (r"\d / v\[|reciprocal|rsqrt", r"ours refuses backward.*modified by an inplace"): (
        "PyTorch saves the reciprocal, ours the operand: a write to it is refused, not wrong"
    ),
    (r"prod\(", r"(gradient|grad).*value at .*: nan, ours"): "the product of the other factors; PyTorch divides by NaN",
    (r"sorted=False", r"value at"): UNDEFINED + ": the order of results that are not sorted",
    (
        "",
        r"PyTorch refuses backward: result type \w+ can't be cast to the desired output type (?!Float|Double)",
    ): (THEIRS + ": the rule divides into a tensor of integers"),
    (r"\*\*|pow", r"gradient of .*: value at .*nan, ours [-+]?0\.0"): "ours is the limit, as for real numbers: 0 ** x",
}


def of_gradients(found: Difference) -> bool:
    """Return whether the fault may be in any line of the program; other differences are in the last."""
    return re.search(r"gradient|backward|grad:", found.message) is not None or "autograd.grad" in found.lines[-1]


def exempted(found: Difference) -> str | None:
    """Return the reason for which a difference is allowed; one of gradients must be shrunk."""
    text = "\n".join(found.lines) if of_gradients(found) else found.lines[-1]
    for (line, message), reason in EXEMPT.items():
        if re.search(line, text) and re.search(message, found.message):
            return reason
    return None
