cimport cython
from retrograd.core.array cimport ndarray
from retrograd.core.array cimport ndarray
from retrograd.core.state cimport State, current
from retrograd.core.level cimport grad_mode_below
from retrograd.core.op cimport OpBase, any_foreign, compound, is_foreign
from retrograd.core.record cimport record, record2
from retrograd.core.tensor cimport TensorBase, is_floating_array, bump_version, has_numpy_dtype, has_plain_memory, is_integer_array, is_real_array, is_weak_number, known_tensor, make, needs_no_promotion, same_kind, share_real_dtype, unwrap_all
from retrograd.core.views cimport forget_hidden_bases, is_view_of, requires_grad_synced, sync_view, track_view

cdef bint compiled

cdef extern from *:
    """
    /* `x.sin()` then calls the operator with x. Types made by Python do not inherit the flag. */
    static inline void mark_method_descriptor(PyObject *cls) {
        ((PyTypeObject *)cls)->tp_flags |= Py_TPFLAGS_METHOD_DESCRIPTOR;
    }
    """
    void mark_method_descriptor(object cls)

cdef class Op(OpBase):
    @cython.locals(params=dict, i=int, extra=int, spread=cython.bint)
    cpdef dict quick_params(self, tuple args, dict kwargs)
    cdef bint is_absent(self, str name, object value) except -1
    @cython.locals(params=dict, inputs=list, i=int, given=int, named=int)
    cpdef tuple quick_bind(self, tuple args, dict kwargs)

cpdef bint fits_exactly(object kind, object value) except -1

@cython.locals(state=State, t=TensorBase, out=TensorBase, requires_grad=cython.bint)
cpdef object call1(Op op, object a, dict params)

cpdef object call_fast(Op op, tuple args, dict params)

@cython.locals(state=State, t=TensorBase, out=TensorBase, requires_grad=cython.bint, results=list)
cpdef list detach_all(Op op, object tensors)

@cython.locals(state=State, t=TensorBase, u=TensorBase, out=TensorBase, requires_grad=cython.bint)
cpdef object call2(Op op, object a, object b)

@cython.locals(state=State, t=TensorBase, requires_grad=cython.bint, on_host=cython.bint)
cpdef object call(Op op, tuple args, dict params)

@cython.locals(grad_enabled=cython.bint)
cpdef object process_below(object level, Op op, tuple args, dict params, State state)

@cython.locals(state=State, x=TensorBase, t=TensorBase, requires_grad=cython.bint, fits=cython.bint, arrays=list)
cpdef bint write_plain(Op op, object out, tuple args) except -1
cpdef bint write_ufunc(Op op, TensorBase x, object arrays) except -1

cpdef object run_compose(Op op, tuple args, dict params)
cdef object name_results(Op op, object out)

@cython.locals(result=TensorBase)
cpdef object ground(Op op, tuple args, dict params)
cpdef object raw(Op op, object a)
@cython.locals(array=ndarray)
cpdef object in_order(Op op, object arrays, object out)
@cython.locals(array=ndarray)
cpdef bint are_row_major(object operands) except -1

cpdef object note_cut(TensorBase out, object reason)
cpdef object note_detached(Op op, TensorBase out, State state)
