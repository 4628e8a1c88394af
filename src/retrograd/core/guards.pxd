cimport cython
from retrograd.core.array cimport ndarray
from retrograd.core.tensor cimport TensorBase, attributes_of

@cython.final
cdef class TensorGuard:
    cdef public object attributes, kind, dtype, grad_guard, composite
    cdef public tuple shape, strides
    cdef public int ndim
    cdef public bint has_hooks, inference, is_leaf, is_view, requires_grad

    @cython.locals(t=TensorBase, guard=TensorGuard)
    cpdef bint holds(self, object value) except -1
    @cython.locals(a=ndarray, i=int)
    cdef bint _has_layout(self, object array) except -1

@cython.locals(own=TensorGuard, i=Py_ssize_t)
cpdef bint match_values(list guards, object values, list tensors, object is_same) except -1

@cython.locals(own=TensorGuard, i=Py_ssize_t)
cpdef bint all_hold(list guards, list tensors) except -1

@cython.locals(container=dict)
cpdef bint fields_hold(list fields, object missing, object is_same) except -1

@cython.locals(first=TensorBase, second=TensorBase, i=Py_ssize_t, k=Py_ssize_t, n=Py_ssize_t)
cpdef bint have_arrays_of_their_own(list tensors) except -1

@cython.locals(t=TensorBase, i=Py_ssize_t)
cpdef bint have_plain_arrays(list tensors, list arrays) except -1
