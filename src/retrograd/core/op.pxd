cimport cython
from retrograd.core.array cimport ndarray
from retrograd.core.gradfn cimport GradFn, VjpRule, node
from retrograd.core.level cimport State, current
from retrograd.core.tensor cimport (
    TensorBase, alias, count_of, floating, known_tensor, make, plain, same_kind, version_of
)

cdef extern from *:
    """
    /* Objects are aligned: the lowest bits say nothing. */
    static inline Py_hash_t tensor_address(PyObject *o) { return (Py_hash_t)((uintptr_t)o >> 4); }
    """
    Py_hash_t address "tensor_address" (object tensor)

cdef bint compiled

cdef class Op:
    cdef public object schema, definition, kernel, name
    cdef public dict params, kernels, exact
    cdef public tuple rules, positional
    cdef public int last, simple, leading, required
    cdef public bint promotes, to_float, differentiable, fits, view, inlined, variadic

    @cython.locals(params=dict, i=int, extra=int)
    cpdef dict quick_params(self, tuple args, dict kwargs)

cpdef bint fits_exactly(object kind, object value) except -1

@cython.locals(state=State, t=TensorBase, out=TensorBase)
cpdef object call1(Op op, object a)

@cython.locals(state=State, t=TensorBase, u=TensorBase, out=TensorBase, wanted=cython.bint)
cpdef object call2(Op op, object a, object b)

@cython.locals(state=State, t=TensorBase)
cpdef object call(Op op, tuple args, dict params)

@cython.locals(result=TensorBase)
cpdef object ground(Op op, tuple args, dict params)
cpdef object raw(Op op, object a)

@cython.locals(
    values=cython.ulonglong, avals=cython.ulonglong, keeps_out=cython.bint, rule=VjpRule, fn=GradFn,
    m=cython.Py_ssize_t, n=cython.Py_ssize_t,
)
cpdef object record2(Op op, object a, object b, TensorBase out)

@cython.locals(t=TensorBase)
cpdef object edge_to(Op op, int index, object a)

cpdef Py_ssize_t written(object a) except -1

@cython.locals(
    single=cython.bint, edges=list, i=cython.int, values=cython.ulonglong, avals=cython.ulonglong,
    keeps_out=cython.bint, rule=VjpRule, fn=GradFn, t=TensorBase, u=TensorBase,
)
cpdef object record(Op op, tuple args, dict params, object out, object level)

@cython.locals(i=cython.int, last=cython.int, saved=list, versions=list)
cpdef object save(GradFn fn, Op op, tuple args, object out, unsigned long long wanted, bint keeps_out)

@cython.locals(i=cython.int, needed=cython.bint, avals=list)
cpdef object keep_avals(GradFn fn, Op op, tuple args, object out, unsigned long long wanted)

cpdef object kept_output(object out)
cpdef object aval_of(object a)
cpdef bint agrees(TensorBase a, TensorBase out) except -1

cdef Op ADD, SUB, MUL, DIV, MATMUL, POW, NEG, REMAINDER, FLOOR_DIVIDE, LT, LE, GT, GE, EQ, NE

cdef class Arithmetic(TensorBase):
    pass
