cimport cython

cpdef object symbolic(object shape)

@cython.final
@cython.freelist(64)
cdef class Aval:
    cdef public tuple shape
    cdef public object dtype

@cython.locals(new=Aval)
cpdef Aval make_aval(object shape, object dtype)
