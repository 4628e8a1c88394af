cimport cython
from retrograd.core.array cimport ndarray
from retrograd.core.state cimport State, at, current
from retrograd.core.tensor cimport TensorBase, Version, alias, count_of, make, version_of
from retrograd.core.vjp_rule cimport VjpRule

@cython.final
cdef class Counter:
    cdef public long long last

cdef bint compiled
cdef Counter counter

@cython.final
@cython.freelist(64)
cdef class Snapshot:
    cdef public object value, level, tag, edge
    cdef public int number
    cdef public Py_ssize_t count
    cdef public Version version
    cdef object __weakref__

    cpdef object preserve(self)
    cpdef bint is_overwritten(self) except -1
    cpdef TensorBase unpack(self)

@cython.locals(new=Snapshot, version=Version, references=set)
cpdef Snapshot snapshot_of(TensorBase tensor)
cpdef object history_of(TensorBase tensor)
cpdef TensorBase attach(TensorBase tensor, object edge, int number)

@cython.final
@cython.freelist(4096)
cdef class GradFn:
    cdef public object op, _hooks, trace
    cdef public tuple rules, edges, numbers, saved, versions, avals, out_avals
    cdef public dict params
    cdef public object out_kind
    cdef public int out_ndim
    cdef public Py_ssize_t[5] out_sizes
    cdef public long long sequence
    cdef public bint freed, has_list_input
    cdef object __weakref__

    @cython.locals(rule=VjpRule, i=int, args=list)
    cpdef object vjp(self, int index, object g)
    cpdef object fetch(self, int kind, object key)
    @cython.locals(t=TensorBase)
    cpdef object value(self, int index)
    cpdef object restore(self, object saved, Py_ssize_t version)
    @cython.locals(count=cython.Py_ssize_t)
    cpdef object check(self, TensorBase saved, Py_ssize_t version)
    cpdef object check_attached(self, TensorBase saved, object edge)
    cpdef object output(self)
    cpdef object release(self)

@cython.locals(out=TensorBase, made=GradFn)
cpdef object connect_to_input(TensorBase g, GradFn fn, int index)

cdef int MOST_SIZES

@cython.locals(array=ndarray, i=int)
cpdef GradFn note_output(GradFn fn, TensorBase out)

cpdef long long reserve_numbers(long long n) except -1
@cython.locals(fn=GradFn)
cpdef GradFn node(object op, tuple rules, dict params, tuple edges, bint has_list_input)
