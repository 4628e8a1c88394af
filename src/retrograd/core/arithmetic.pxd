from retrograd.core.dispatch cimport Op, call1, call2
from retrograd.core.op cimport takes_over
from retrograd.core.tensor cimport TensorBase

cdef extern from *:
    """
    /* Objects are aligned: the lowest bits say nothing. */
    static inline Py_hash_t tensor_address(PyObject *o) { return (Py_hash_t)((uintptr_t)o >> 4); }
    """
    Py_hash_t address "tensor_address" (object tensor)

cdef bint compiled

cdef Op ADD, SUB, MUL, DIV, MATMUL, POW, NEG, REMAINDER, FLOOR_DIVIDE, LT, LE, GT, GE, EQ, NE

cdef class Arithmetic(TensorBase):
    pass
