"""Python's arithmetic and comparison operators on tensors."""

from retrograd.core.dispatch import call1, call2
from retrograd.core.op import takes_over
from retrograd.core.tensor import TensorBase

compiled = not __file__.endswith(".py")


def bind_arithmetic(operators):
    """Set the registered operators that Python's operators call."""
    global ADD, SUB, MUL, DIV, MATMUL, POW, NEG, REMAINDER, FLOOR_DIVIDE, LT, LE, GT, GE, EQ, NE
    ADD, SUB, MUL, DIV = operators["add"], operators["sub"], operators["mul"], operators["div"]
    MATMUL, POW, NEG = operators["matmul"], operators["pow"], operators["neg"]
    REMAINDER, FLOOR_DIVIDE = operators["remainder"], operators["floor_divide"]
    LT, LE, GT, GE = operators["lt"], operators["le"], operators["gt"], operators["ge"]
    EQ, NE = operators["eq"], operators["ne"]


ADD = SUB = MUL = DIV = MATMUL = POW = NEG = REMAINDER = FLOOR_DIVIDE = LT = LE = GT = GE = EQ = NE = None


class Arithmetic(TensorBase):
    """Python's operators, which call the entry for two operands directly."""

    __slots__ = ()
    __array_ufunc__ = None  # makes `ndarray + tensor` call __radd__ below

    def __add__(self, other):
        if takes_over(other, "__radd__"):
            return NotImplemented
        return call2(ADD, self, other)

    def __radd__(self, other):
        if takes_over(other, "__add__"):
            return NotImplemented
        return call2(ADD, other, self)

    def __sub__(self, other):
        if takes_over(other, "__rsub__"):
            return NotImplemented
        return call2(SUB, self, other)

    def __rsub__(self, other):
        if takes_over(other, "__sub__"):
            return NotImplemented
        return call2(SUB, other, self)

    def __mul__(self, other):
        if takes_over(other, "__rmul__"):
            return NotImplemented
        return call2(MUL, self, other)

    def __rmul__(self, other):
        if takes_over(other, "__mul__"):
            return NotImplemented
        return call2(MUL, other, self)

    def __truediv__(self, other):
        if takes_over(other, "__rtruediv__"):
            return NotImplemented
        return call2(DIV, self, other)

    def __rtruediv__(self, other):
        if takes_over(other, "__truediv__"):
            return NotImplemented
        return call2(DIV, other, self)

    def __floordiv__(self, other):
        if takes_over(other, "__rfloordiv__"):
            return NotImplemented
        return call2(FLOOR_DIVIDE, self, other)

    def __rfloordiv__(self, other):
        if takes_over(other, "__floordiv__"):
            return NotImplemented
        return call2(FLOOR_DIVIDE, other, self)

    def __mod__(self, other):
        if takes_over(other, "__rmod__"):
            return NotImplemented
        return call2(REMAINDER, self, other)

    def __rmod__(self, other):
        if takes_over(other, "__mod__"):
            return NotImplemented
        return call2(REMAINDER, other, self)

    def __matmul__(self, other):
        if takes_over(other, "__rmatmul__"):
            return NotImplemented
        return call2(MATMUL, self, other)

    def __rmatmul__(self, other):
        if takes_over(other, "__matmul__"):
            return NotImplemented
        return call2(MATMUL, other, self)

    def __pow__(self, other, modulo=None):
        if takes_over(other, "__rpow__"):
            return NotImplemented
        return call2(POW, self, other)

    def __rpow__(self, other, modulo=None):
        if takes_over(other, "__pow__"):
            return NotImplemented
        return call2(POW, other, self)

    def __neg__(self):
        return call1(NEG, self, NEG.params)

    def __pos__(self):
        return self

    def __lt__(self, other):
        if takes_over(other, "__gt__"):
            return NotImplemented
        return call2(LT, self, other)

    def __le__(self, other):
        if takes_over(other, "__ge__"):
            return NotImplemented
        return call2(LE, self, other)

    def __gt__(self, other):
        if takes_over(other, "__lt__"):
            return NotImplemented
        return call2(GT, self, other)

    def __ge__(self, other):
        if takes_over(other, "__le__"):
            return NotImplemented
        return call2(GE, self, other)

    def __eq__(self, other):
        if takes_over(other, "__eq__"):
            return NotImplemented
        return call2(EQ, self, other)

    def __ne__(self, other):
        if takes_over(other, "__ne__"):
            return NotImplemented
        return call2(NE, self, other)

    def __hash__(self):
        if compiled:
            return address(self)  # noqa: F821 (declared in arithmetic.pxd)
        return id(self)
