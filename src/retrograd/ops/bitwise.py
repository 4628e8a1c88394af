"""Operators on integers and booleans: bitwise logic, shifts, common divisors and multiples."""

import math

from retrograd.core import Aval, op, xp
from retrograd.core import dtype as dtypes
from retrograd.ops.family import Pointwise, pointwise


def _bitwise(name, impl, doc):
    def samples(r):
        yield (r.ints(9, (4, 1)), r.ints(9, (3,))), {}
        yield (r.booleans(3), r.booleans(3)), {}

    return pointwise(f"{name}(Tensor a, Tensor b) -> Tensor", impl, doc,
        differentiable=False, samples=samples, oracle=f"numpy.{name}")  # fmt: skip


def _bitwise_not_samples(r):
    yield (r.ints(9, (4,)),), {}
    yield (r.booleans(3),), {}


bitwise_and = _bitwise("bitwise_and", xp.bitwise_and, "Bitwise AND; of booleans, whether both are true.")
bitwise_or = _bitwise("bitwise_or", xp.bitwise_or, "Bitwise OR; of booleans, whether one is true.")
bitwise_xor = _bitwise("bitwise_xor", xp.bitwise_xor, "Bitwise XOR; of booleans, whether they differ.")
bitwise_not = pointwise("bitwise_not(Tensor x) -> Tensor", xp.bitwise_not,
    "Bitwise NOT; of booleans, their negation.",
    differentiable=False, samples=_bitwise_not_samples, oracle="numpy.bitwise_not")  # fmt: skip


def _shift_samples(r):
    yield (r.ints(9, (4, 1)) - 4, r.ints(5, (3,))), {}
    yield (r.ints(9, (3,)), 2), {}


def _integer_samples(r):
    yield (r.ints(30, (4, 1)) - 15, r.ints(12, (3,))), {}
    yield (r.ints(30, (3,)), 6), {}


bitwise_left_shift = pointwise("bitwise_left_shift(Tensor a, Tensor b) -> Tensor", xp.left_shift,
    "Shift the bits of a left by b: a times 2 to the power b.",
    differentiable=False, samples=_shift_samples, oracle=lambda np, a, b: a * 2**b)  # fmt: skip
bitwise_right_shift = pointwise("bitwise_right_shift(Tensor a, Tensor b) -> Tensor", xp.right_shift,
    "Shift the bits of a right by b, preserving the sign: a divided by 2 to the power b, rounded down.",
    differentiable=False, samples=_shift_samples, oracle=lambda np, a, b: np.floor(a / 2**b))  # fmt: skip
gcd = pointwise("gcd(Tensor a, Tensor b) -> Tensor", xp.gcd,
    "Greatest common divisor of |a| and |b|; gcd(0, b) is |b|.",
    differentiable=False, samples=_integer_samples, oracle=lambda np, a, b: np.vectorize(math.gcd)(a, b))  # fmt: skip
lcm = pointwise("lcm(Tensor a, Tensor b) -> Tensor", xp.lcm,
    "Least common multiple of |a| and |b|; 0 where one is 0.",
    differentiable=False, samples=_integer_samples, oracle=lambda np, a, b: np.vectorize(math.lcm)(a, b))  # fmt: skip


@op("bitwise_count(Tensor x) -> Tensor")
class bitwise_count(Pointwise, differentiable=False, in_place=False):
    """Count the bits of |x| that are 1, in uint8.

    >>> import retrograd as rg
    >>> rg.bitwise_count(rg.tensor([0, 5, 255])).tolist()
    [0, 2, 8]
    """

    impl = xp.bitwise_count

    def shape(x):
        return Aval(x.shape, dtypes.uint8)

    def oracle(np, x):
        return np.vectorize(lambda x: abs(int(x)).bit_count())(x)

    def samples(r):
        yield (r.ints(300, (4,)),), {}
