cimport cython
from retrograd.core.array cimport ndarray
from retrograd.core.level cimport State, at, current
from retrograd.core.op cimport OpBase
from retrograd.core.record cimport record, record2
from retrograd.core.tensor cimport (
    TensorBase, View, set_view, unwrap_all, floating, known_tensor, make, plain, is_view_of,
    version_of,
)

cdef bint compiled

cdef class Op(OpBase):
    @cython.locals(params=dict, i=int, extra=int)
    cpdef dict quick_params(self, tuple args, dict kwargs)

cpdef bint fits_exactly(object kind, object value) except -1

@cython.locals(state=State, t=TensorBase, out=TensorBase, wanted=cython.bint)
cpdef object call1(Op op, object a)

@cython.locals(state=State, t=TensorBase, u=TensorBase, out=TensorBase, wanted=cython.bint)
cpdef object call2(Op op, object a, object b)

@cython.locals(state=State, t=TensorBase, wanted=cython.bint)
cpdef object call(Op op, tuple args, dict params)

cpdef object composed(Op op, tuple args, dict params)

@cython.locals(result=TensorBase)
cpdef object ground(Op op, tuple args, dict params)
cpdef object raw(Op op, object a)

cpdef object track_view(Op op, TensorBase out, TensorBase source, dict params, State state)

@cython.locals(view=View, base=TensorBase)
cpdef object sync_view(TensorBase t)
cpdef bint requires_grad_synced(TensorBase t) except -1

cpdef bint passes(View view) except -1
cpdef object replay_view(View view)

@cython.locals(view=View, base=TensorBase)
cpdef object sync_view_copy(TensorBase t)

@cython.locals(view=View, base=TensorBase)
cpdef object regenerate_view(TensorBase t)

@cython.locals(number=int)
cpdef object rebase_history(TensorBase t, TensorBase new)
cpdef object how_made(State state)
cpdef object note_cut(TensorBase out, object reason)
cpdef object note_detached(Op op, TensorBase out, State state)
cpdef bint is_foreign(object a) except -1
