cimport cython
from retrograd.core.array cimport ndarray
from retrograd.core.state cimport State, at
from retrograd.core.op cimport OpBase, compound
from retrograd.core.tensor cimport TensorBase, alias, bump_version, has_plain_memory, is_floating_array
from retrograd.core.tensor cimport is_plain, is_weak_number, same_kind, version_of

@cython.final
@cython.freelist(64)
cdef class View:
    cdef public TensorBase base
    cdef public tuple chain
    cdef public object creation_meta, inverses
    cdef public Py_ssize_t attr_version

@cython.locals(a=ndarray, b=ndarray)
cpdef bint is_view_of(object array, object source) except -1

@cython.locals(view=View)
cpdef object track_view(OpBase op, TensorBase out, TensorBase source, dict params, State state)
@cython.locals(known=View)
cpdef object set_view(TensorBase out, TensorBase source, object op, dict params, object creation_meta)
cpdef object creation_meta_of(State state)

cpdef object forget_hidden_bases(object out, tuple args)
@cython.locals(view=View, s=TensorBase)
cpdef bint is_view_of_any(TensorBase t, tuple tensors) except -1

cpdef bint requires_grad_synced(TensorBase t) except -1
cpdef object synced_grad_fn(TensorBase tensor)
@cython.locals(view=View, base=TensorBase)
cpdef object sync_view(TensorBase t)
@cython.locals(view=View, base=TensorBase)
cpdef object sync_view_copy(TensorBase t)
@cython.locals(view=View, base=TensorBase)
cpdef object regenerate_view(TensorBase t)
cpdef object replay_view(View view)
@cython.locals(base=TensorBase, inner=View)
cpdef TensorBase base_of(View view)

cdef Py_ssize_t MOST
@cython.locals(t=TensorBase, u=TensorBase, pair=tuple, own=cython.bint)
cpdef list copy_plain(object kind, list pairs)
cpdef bint fill_plain(TensorBase t, object number, object mask) except -1
cpdef bint is_differentiable_view(View view) except -1
@cython.locals(number=int)
cpdef object rebase_history(TensorBase t, TensorBase new)
@cython.locals(view=View)
cpdef object check_stale_view(TensorBase t)
@cython.locals(view=View)
cpdef object unlink_copy(TensorBase g)
