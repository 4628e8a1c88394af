"""Permitted differences of programs, and the reason for each."""

import re
from collections import Counter

from .differential import Difference
from .proofs import of_proof

Key = tuple[str, str]

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
EXEMPT: dict[Key, str] = {
    ("", r"PyTorch refuses backward: (the )?derivative for .+ is not implemented"): MORE,
    (r"L\.autograd|backward|L\.func", r"PyTorch raises \w+: (the )?derivative for .+ is not implemented"): MORE,
    (_SPECIAL, _LEAF): MORE,
    (r"backward\(|grad\(", r"PyTorch raises RuntimeError: one of the variables needed .* modified by an inplace"): (
        "ours saves another value, or a copy of it, so that the write does no harm"
    ),
    ("", r"PyTorch refuses backward: (Negation|Subtraction), the `-` operator, (on|with) a bool tensor"): (
        THEIRS + ": the rule subtracts booleans, which it refuses"
    ),
    (r"(squeeze|transpose|swapaxes|[.]t)_\(", r"PyTorch raises RuntimeError: (a view of a leaf|Output \d of)"): (
        "only the view becomes another one; nothing is written to the leaf"
    ),
    ("", r"requires_grad of (u?int\d+|bool) True"): THEIRS + ": a tensor of integers or booleans requires grad",
    (
        r"out=",
        r"ours raises \w+: (.*(out=\.\.\.|is a view)|a (view of a )?leaf|in-place write to a)",
    ): ("a write that no graph knows of, to a tensor that requires grad or by an operator that has a derivative here"),
    (r"out=", r"gradient of"): "PyTorch leaves the graph of a tensor that out= wrote to as it was; ours cuts it off",
    (r"lu_unpack", r"requires_grad of \w+ True"): "an output that is not asked for is empty",
    (r"mode='complete'", r"value at"): UNDEFINED + ": the basis of the orthogonal complement",
    (r"cum(sum|prod)_\(", r"can't be cast to bool"): THEIRS + ": only tensors of one element are accepted",
    (r"combinations\(.*r=0|triangular_solve\(.*\)\[1\]|qr\(.*mode='r'", r"requires_grad"): "a copy or an empty result",
    (_SPECIAL, r"value at .*, ours nan"): THEIRS + ": NaN gives a number",
    (r"L\.abs\(|abs_\(|log_softmax", r"value at .*: -?0\.0, ours nan"): "the derivative at NaN is NaN; PyTorch's is 0",
    (r"ldexp\(.*-\d", r"gradient|value at .*: -?0\.0, ours"): THEIRS + ": its rule raises integers to negative powers",
    (r"digamma|polygamma|lgamma", r"(gradient|grad).*(inf|nan|e\+\d+)"): UNDEFINED + ": the derivative at a pole",
    (r"as_strided", r"ours raises \w+: as_strided: .* reach index"): (
        UNDEFINED + ": memory of the storage outside of what the tensor shows"
    ),
    (r"lerp|alpha=", r"ours (refuses backward|raises).*a second time.*: the values that (lerp|mul) saved"): (
        "PyTorch saves nothing where the weight is a number; ours refuses, retain_graph=True helps"
    ),
    (r"scatter", r"PyTorch refuses backward: .* (returned an invalid gradient|must match the size)"): THEIRS
    + ": a source larger than the index",
    ("", r"ours raises \w+: .*would lose their imaginary parts"): REFUSED,
    (r"\] \S+= ", r"PyTorch raises RuntimeError: a leaf Variable that requires grad"): (
        THEIRS + ": a view whose base has become part of a graph counts as a leaf until somebody asks for its grad_fn"
    ),
    ("", r"PyTorch refuses backward: Output \d of \w+ is a view and its base"): "ours keeps the history of such views",
    (r"\b(var|std)", r"value at .*: -?(inf|nan), ours -?(inf|nan)"): UNDEFINED + ": the deviation of one element",
    (r"cholesky_(solve|inverse)", r"gradient|value at .*, ours -?0\.0"): THEIRS
    + ": a derivative by the triangle that is not read",
    (r"gelu\(", r"nan, ours"): THEIRS + ": 0 times infinity",
    (r"addcdiv", r"(gradient|grad).*nan, ours -?inf"): "ours adds up what was broadcast before it divides by 0",
    ("", r"ours raises \w+: .* is a view in PyTorch, but here a copy"): REFUSED,
    (r"lerp", r"value at .*nan, ours -?inf"): "PyTorch subtracts infinities from each other",
    (r"quantile", r"requires_grad"): "the midpoint does not depend on q; PyTorch's graph ends there",
    (r"einsum|linalg", r"ours raises \w+: [\w.]+: operands must have one dtype"): (
        REFUSED + "; PyTorch promotes where its implementation happens to multiply element by element"
    ),
    (r"detach_\(", r"PyTorch raises RuntimeError: Can't detach views"): (
        "the operator returns a view of something that nobody has in PyTorch, and a tensor of its own here"
    ),
    (r"@|matmul", r"ours (refuses backward|raises).*: backward of matmul .*modified by an inplace"): (
        "PyTorch saves a copy where it folds a stack into one matrix; ours refuses"
    ),
    (r"polygamma|digamma", r"value at .*inf"): UNDEFINED + ": the value at a pole",
    ("", r"value at .*: \((?=\S*(inf|nan))\S*j\), ours \((?=\S*(inf|nan))\S*j\)$"): "the parts of complex infinities",
    (r"True \*\*", r"INTERNAL ASSERT"): THEIRS + ": it says so itself",
    (_SPECIAL, r"ours raises \w+: .*this tensor is a view"): MORE + ", which needs the history of the view",
    (r"linalg", r"ours raises \w+: [\w.]+: expected a floating"): REFUSED,
    ("L.func.*" + _SPECIAL, r"value at .*: -?0\.0, ours"): MORE,
    ("", r"PyTorch refuses backward: Trying to use a saved tensor that has been detached"): "ours saves another value",
    ("", r"PyTorch raises RuntimeError: Output \d of \w+ is a view and its base or another view of its base has"): (
        "ours keeps the history of such a view after a write under no_grad, and refuses it after a recorded one"
    ),
    (r"fmod|remainder|%", r"value at .*: -?nan, ours -?(0\.0|[\d.]+e-3[12]\d)$"): THEIRS
    + ": the quotient of the largest number overflows",
    (r"retain_grad|register_hook|requires_grad = ", r"ours raises \w+: .*this tensor is a view, and "): (
        "PyTorch refuses such a view too, once it is used"
    ),
    (r"detach_\(", r"ours (refuses backward|raises).*saved tensor that has been detached in-place"): (
        "ours saves the operand where PyTorch saves the result or a view: its detaching is refused, not wrong"
    ),
    (r"atan2", r"(gradient|grad).*: -?\d[\d.e-]*, ours (nan|-?inf)$"): (
        THEIRS + ": squares that underflow give 0; ours are infinities, and two of both signs are added up"
    ),
    (r"L\.abs\(|abs_\(|i0e|i1e", r"gradient of .*, ours nan"): "the derivative at NaN is NaN; PyTorch's is 0",
    (r"inputs=", r"PyTorch (refuses|raises).*backward through the graph a second time"): "ours frees what it ran only",
    (r"div\(v\[(\d+)\], v\[\1\]\)|v\[(\d+)\] / v\[\2\]$", r"gradient of .*: value at"): (
        "the two terms of the derivative of x / x cancel, and their rounding is left"
    ),
    (r"istft", r"ours raises OverflowError"): "a window of zeros, which PyTorch divides by",
    ("", r"PyTorch refuses backward: Expected isFloatingType\(grad"): THEIRS + ": a rule for real and complex operands",
    (r"\b(sign|sgn)(_\(|\()", r"value at .*: [-+]?0\.0, ours nan"): "NumPy's sign of NaN is NaN, as the array API says",
    (r"addcmul", r"result is float\d+ and can't be cast to u?int|dtype u?int\d+, ours float\d+"): (
        UNDEFINED + ": PyTorch rounds `value` of integers without a word"
    ),
    (r"func\.(jac|hessian)", r"dtype \w+, ours|must have one dtype|expected both float32"): (
        "examples without dimensions promote as a loop over them would, in PyTorch as their stack does"
    ),
    (r"detach_\(", r"ours raises \w+: Can't detach views"): REFUSED,
    (r"requires_grad", r"requires_grad of \w+ True, leaf (True|False), ours False, leaf True"): (
        THEIRS + ": a view that was made before its base required grad is a leaf with a gradient of its own"
    ),
    (r"conv", r"ours raises \w+: \w+: operands must have one dtype"): THEIRS + ": no check of the bias' dtype",
    (
        r"(\d|True) / v\[|reciprocal|rsqrt",
        r"ours (refuses backward|raises).*: backward of (div|reciprocal|rsqrt) .*modified by an inplace",
    ): ("PyTorch saves the reciprocal, ours the operand: a write to it is refused, not wrong"),
    (r"sorted=False", r"value at"): UNDEFINED + ": the order of results that are not sorted",
    (
        "",
        r"PyTorch refuses backward: result type \w+ can't be cast to the desired output type (?!Float|Double)",
    ): (THEIRS + ": the rule divides into a tensor of integers"),
    (r"\*\*|pow", r"gradient of .*: value at .*nan, ours [-+]?0\.0"): "ours is the limit, as for real numbers: 0 ** x",
    (r"\*\*|pow", r"value at .*: \(nan\+nanj\), ours \(1\+0j\)"): (
        THEIRS + ": 0 ** 0 of complex numbers by their logarithm; it is 1 for numbers as exponents, and in NumPy"
    ),
    (r"as_strided_scatter", r"gradient of|grad: value"): THEIRS + ": elements that are not written to lose theirs",
    (r"as_strided", r"ours raises \w+: as_strided: .* has gaps"): REFUSED,
    (r"\d / v\[", r"value at .*: nan, ours -?0\.0"): THEIRS + ": the reciprocal of a subnormal number overflows",
    (r"(clamp|clip)_?\(.*-\d", r"value at .*: \d+, ours \d+$"): THEIRS
    + ": a negative bound of unsigned integers wraps",
    (r"zeta\(", r"value at .*: nan, ours 0\.0"): THEIRS + ": the limit at infinity is 0",
    (r"addr", r"PyTorch refuses backward: addmv input tensors must have the same dtype"): (
        THEIRS + ": its rule does not promote"
    ),
    (r"sigmoid", r"value at .*: \(nan\+nanj\), ours (0j|\(-?0)"): "the limit at -inf; PyTorch divides infinities",
    (r"func\.grad", r"ours raises \w+: grad: the function must return a real scalar"): REFUSED,
    (r"kl_div\(.*log_target=True", r"value at .*: nan, ours 0\.0"): "the limit; PyTorch multiplies 0 by infinity",
    (r"fft", r"value at .*: -?(inf|nan), ours -?(inf|nan)$"): "infinities that are added in another order",
    (r"\.(to|type_as)\(", r"value at .*: -?\d+, ours -?\d+$"): UNDEFINED + ": a number that the integer can't hold",
    (r"func\.|autograd\.grad|slogdet|lstsq|inputs=", r"(gradient|grad).*: (zeros, ours none|none, ours zeros)"): (
        "nothing flows; one of the graphs holds a product with zero"
    ),
    (r"lstsq\(.*\[[13]\]", r"requires_grad|gradient"): MORE + ": of the residuals and singular values",
    (r"func.*(pow|\*\*)", r"value at .*: nan, ours -?\d"): THEIRS + ": 0 to a power of -1 times an exponent of 0",
    (r"cross_entropy|nll_loss", r"value at .*: nan, ours -?inf"): "weights that add up to 0: a sum or a quotient first",
    (r"(\*\*=?|pow_?\().*True", r"ours raises \w+: pow: not defined for bool"): (
        THEIRS + ": it copies where the exponent is 1, before it looks at the dtype"
    ),
    (r"func.*binary_cross_entropy.*weight=x", r"value at .*: -?0\.0, ours"): MORE,
    (r"func.*(digamma|lgamma)", r"value at .*, ours nan"): UNDEFINED + ": the derivative at a pole",
    (r"(func|autograd\.grad).*norm\(", r"value at .*: nan, ours -?0\.0"): UNDEFINED + ": the second derivative at 0",
    (r"func.*as_strided_scatter", r"value at"): THEIRS + ": elements that are not written to lose theirs",
    (r"log(cum)?sumexp", r"(gradient|grad).*value at .*: nan, ours -?inf"): "the derivative by inf",
    (r"logsumexp\(", r"gradient of .*: nan, ours -?\d"): THEIRS
    + ": the logarithm of a sum of zeros has a derivative, the limit",
    (r"logcumsumexp", r"gradient of .*: -?\d[\d.e-]*, ours nan"): (
        "the derivative at NaN is NaN; PyTorch's is that of a sum of one element"
    ),
    (r"gammainc|igamma", r"gradient of .*: nan, ours -?\d"): THEIRS
    + ": its derivative at 0 has 0 times the logarithm of 0",
    (r"airy_ai", r"value at .*: nan, ours -?0\.0"): THEIRS + ": the limit at infinity is 0",
    (r"kron\(", r"ours (refuses backward|raises).*modified by an inplace"): "PyTorch's reshape of an operand is a copy",
    (r"lerp", r"PyTorch refuses backward: Subtraction, .* with two bool tensors"): THEIRS + ": it subtracts booleans",
    (r"view_as_real", r"PyTorch refuses backward: Tensor must have a last dimension with stride 1"): THEIRS,
    (r"pairwise_distance|cdist|l1_loss|L1", r"value at .*: -?0\.0, ours nan"): "the derivative at NaN is NaN",
    ("", r"ours raises \w+: .* data was assigned to"): REFUSED,
    (
        r"@|matmul|m[vm]\(|dot\(|einsum|(group|layer|batch|instance)_norm",
        r"value at .*: -?(inf|nan), ours -?(inf|nan)$",
    ): "sums that overflow on the way",
    (
        r"addc(mul|div)",
        r"(gradient|grad).*value at .*, ours nan",
    ): "ours adds up what was broadcast before it multiplies",
    (r"combinations\(.*r=0|\.grad$", r"ours raises \w+: .*this tensor is a view"): (
        "PyTorch looks at the history of a view only where it is used"
    ),
    (r"qr\(", r"PyTorch (refuses backward|raises RuntimeError): The derivative of linalg.qr depends on Q"): MORE,
    (r"householder_product|orgqr|ormqr", r"value at .*, ours nan"): "NaN times the zeros above the diagonal",
    (r"func.*(i0e|i1e)", r"value at .*, ours nan"): "the derivative at NaN is NaN; PyTorch's is 0",
    (r"func.*\b(var|std)\(", r"value at .*: -?0\.0, ours nan"): UNDEFINED + ": the deviation of one element",
    (r"pow|\*\*", r"value at .*: -inf, ours inf"): THEIRS + ": -0.0 to the power of -0.5 is inf by IEEE 754 and in C",
    (r"func.*\bstd\(", r"value at .*: -?0\.0, ours"): UNDEFINED + ": the deviation of equal elements",
    (r"checkpoint", r"PyTorch refuses backward: torch.utils.checkpoint: Recomputed values"): (
        UNDEFINED + ": a function that is not the same when it is computed again"
    ),
    ("sparse_grad=True", r"PyTorch refuses backward: .*SparseCPU"): THEIRS + ": sparse gradients take no part in it",
    (r"cdist\(.*p=float\('inf'\)", r"value at .*, ours nan"): THEIRS + ": NaN is not the largest",
    (r"slogdet\(.*\[0\]", r"gradient of .*, ours nan"): "the derivative of the sign is 0, which ours multiplies by NaN",
    (r"func\.jvp.*(pow|\*\*)", r"value at .*[-+]0j\), ours \("): THEIRS + ": the tangent of a real exponent stays real",
    (r"binary_cross_entropy", r"(gradient|grad).*value at .*: -?inf, ours -?\d"): (
        THEIRS + ": the loss clamps logarithms, its derivative by the target does not"
    ),
    ("", r"PyTorch refuses backward: \"\w+\" not implemented for 'Half'"): MORE,
    (r"func\.jvp.*nextafter", r"dtype float32, ours float64"): THEIRS + ": a tangent of another dtype than the result",
    (r"L\.func\.vmap", r"ours raises NotBatchedError: .* the value of a tensor that differs between examples"): REFUSED,
    (r"L\.func.*quantile\(", r"ours raises \w+: \w+: q must be from 0 to 1"): (
        THEIRS + ": inside transforms it does not check the values of q, and extrapolates"
    ),
    (r"det\(", r"ours refuses backward, LinAlgError: linalg.inv: .*matrix is singular"): REFUSED,
}

# (pattern of the shrunk program, pattern of the difference) -> reason.
PROGRAMS: dict[Key, str] = {
    (r"(?s)out=.*L\.autograd\.grad|out=.*backward", r"value at"): (
        "PyTorch leaves the graph of a tensor that out= wrote to as it was; ours cuts it off"
    ),
    (
        r"(?s)(no_grad|out=).*(L\.autograd\.grad\(|inputs=\[)",
        r"tensors \[|ours raises \w+: backward of .* modified by an inplace",
    ): "PyTorch gives a view a new history after a write that is not recorded; ours keeps the old one",
    (r"(?s)as_strided_scatter.*autograd\.grad\(", r"value at"): THEIRS
    + ": elements that are not written to lose theirs",
    (r"(?s)norm\(.*autograd\.grad", r"value at .*: nan, ours -?0\.0"): UNDEFINED + ": the second derivative at 0",
    (
        r"(?s)(unfold|as_strided).*out=",
        r"ours raises \w+: \w+: the memory of out is read-only, or its elements",
    ): (UNDEFINED + ": writes to elements that share memory"),
    (r"(?s)autograd\.grad\(.*create_graph=False", r"PyTorch raises RuntimeError: A view was created in no_grad mode"): (
        "a gradient that is a view of something that nobody has in PyTorch, and a tensor of its own here"
    ),
    (r"(?s)(unbind|split|chunk).*as_strided", r"(gradient|grad).*value at .*: -?0\.0, ours"): (
        "PyTorch drops the gradients of elements outside of the part that split made"
    ),
    (r"as_strided", r"PyTorch raises RuntimeError: .* output of a function that returns multiple views"): (
        "a view beyond the part that split made: here it is a view of the whole, which has the history of the write"
    ),
    ("unsafe_(chunk|split)", r"ours raises \w+: a view of a leaf Variable"): (
        UNDEFINED + ": writes to what unsafe_split made"
    ),
    (r"L\.func", r"PyTorch refuses backward: (one of the variables|Trying to backward through the graph a second)"): (
        "ours saves another value; PyTorch's transforms can't save copies, to compare with"
    ),
    (r"L\.autograd\.grad|L\.func", r"value at .*: -?(inf|nan), ours -?(inf|nan)$"): (
        UNDEFINED + ": derivatives of derivatives at a pole"
    ),
    (r"L\.autograd\.grad|L\.func", r"ours (refuses backward|raises).*: backward of .* modified by an inplace"): (
        "which values a derivative saves for the next one; ours refuses"
    ),
    (
        r"(?s)(split|chunk|unbind).*requires_grad = True",
        r"PyTorch raises RuntimeError: A view was created in no_grad mode",
    ): (THEIRS + ": a view that was made before its base required grad counts as one of no_grad mode"),
    (r"(?m)\.data$", r"gradient|grad"): UNDEFINED + ": autograd does not see what is written to `.data`",
    (r"(?s)(t_|squeeze_|transpose_|swapaxes_|rot90)\(.*L\.autograd\.grad", r"tensors \["): (
        "a tensor that is a view of something that nobody has in PyTorch, and a tensor of its own here, or vice versa"
    ),
    (r"\.data = ", r"ours unknown"): UNDEFINED + ": autograd does not see what `.data` changes",
    (r"(?s)uint8.*(atan2|remainder|%)", r"(gradient|grad).*value at"): THEIRS + ": its rule negates unsigned integers",
    ("unsafe_(chunk|split)", r"requires_grad of|gradient of|grad: "): UNDEFINED + ": writes to what unsafe_split made",
}


used: Counter[Key] = Counter()  # how often each exemption was the reason


def of_gradients(found: Difference) -> bool:
    """Return whether the fault may be in any line of the program; other differences are in the last."""
    return re.search(r"gradient|backward|grad:", found.message) is not None or "autograd.grad" in found.lines[-1]


def exempted(found: Difference) -> str | None:
    """Return the reason for which a difference is allowed whatever the program before it; for gradients, shrunk."""
    return _reason(EXEMPT, "\n".join(found.lines) if of_gradients(found) else found.lines[-1], found.message)


def exempted_program(found: Difference) -> str | None:
    """Return the reason for which the difference of a shrunk program is allowed."""
    return exempted(found) or _reason(PROGRAMS, "\n".join(found.lines), found.message) or of_proof(found)


def _reason(table: dict[Key, str], text: str, message: str) -> str | None:
    for key, reason in table.items():
        if re.search(key[0], text) and re.search(key[1], message):
            used[key] += 1
            return reason
    return None


def used_exemptions(counted: Counter[Key]) -> str:
    """Return how often each exemption was used, the most frequent first, and how many were not."""
    reasons = EXEMPT | PROGRAMS
    lines = [f"{count:6} {reasons[key]}: {key[0][:40]} | {key[1][:60]}" for key, count in counted.most_common()]
    return "\n".join([*lines, f"{len(reasons) - len(counted)} exemptions were not used"])
