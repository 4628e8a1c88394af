cimport cython
from retrograd.core.array cimport ndarray
from retrograd.core.gradfn cimport GradFn
from retrograd.core.level cimport at
from retrograd.core.tensor cimport TensorBase, make, same_kind

@cython.final
cdef class Pass:
    cdef public list heap
    cdef public dict pending, arrived, captured
    cdef public set owned
    cdef public object needed, targets
    cdef public bint retain, in_place

    @cython.locals(fn=GradFn)
    cpdef object deliver(self, object edge, int number, object g)
    cpdef object deliver_one_of(self, GradFn fn, int number, object g)
    cpdef object summed(self, object key, object old, object g)
    @cython.locals(fn=GradFn)
    cpdef object run(self)
    @cython.locals(i=int, last=int)
    cpdef object step(self, GradFn fn, object g)
    cpdef object fresh(self, object leaf)
    cpdef bint wanted(self, object edge) except -1
    cpdef object capture(self, GradFn fn, object g)

cpdef bint is_fresh(TensorBase result, object g) except -1
