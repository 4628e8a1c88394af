cimport cython

@cython.final
cdef class VjpRule:
    cdef public object fn
    cdef public int count
    cdef public tuple kinds, keys
    cdef public unsigned long long needs_values, needs_avals
    cdef public long long needs_out
    cdef public bint depends

    @cython.locals(args=list, i=int, kind=int)
    cpdef object apply(self, object g, tuple inputs, object out, dict params)
