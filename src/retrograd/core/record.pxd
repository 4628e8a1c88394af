cimport cython
from retrograd.core.graph cimport GradFn, node, note_output, snapshot_of
from retrograd.core.op cimport OpBase
from retrograd.core.state cimport State, current
from retrograd.core.tensor cimport (
    TensorBase, alias, aval_of_tensor, count_of, is_floating_array, has_numpy_dtype, known_tensor, same_kind, unwrap_all, version_of
)
from retrograd.core.views cimport check_stale_view
from retrograd.core.vjp_rule cimport VjpRule

cdef bint compiled

@cython.locals(
    values=cython.ulonglong, avals=cython.ulonglong, keeps_out=cython.bint, rule=VjpRule, fn=GradFn,
    m=cython.Py_ssize_t, n=cython.Py_ssize_t,
)
cpdef object record2(OpBase op, object a, object b, TensorBase out, State state)

@cython.locals(t=TensorBase)
cpdef object edge_to(OpBase op, int index, object a)

@cython.locals(t=TensorBase, count=cython.Py_ssize_t)
cpdef Py_ssize_t saved_version(object op, object a) except -1

@cython.locals(
    single=cython.bint, edges=list, rules=tuple, i=cython.int, values=cython.ulonglong, avals=cython.ulonglong,
    outs=cython.longlong, rule=VjpRule, fn=GradFn, t=TensorBase, u=TensorBase, state=State,
)
cpdef object record(OpBase op, tuple args, dict params, object out, object level)

@cython.locals(i=cython.int, last=cython.int, written=cython.bint, saved=list, versions=list)
cpdef object save(GradFn fn, OpBase op, tuple args, object out, unsigned long long arg_bits, long long outs)

@cython.locals(i=cython.int, needed=cython.bint, mixed=cython.bint, avals=list)
cpdef object save_avals(GradFn fn, OpBase op, tuple args, object out, unsigned long long arg_bits)

cpdef object notify_watchers(tuple watchers, GradFn fn)
cpdef object map_saved(object saved, object form)

cpdef TensorBase saved_output(TensorBase out)
cpdef object kept_outputs(object out, long long outs)
cpdef object versions_of(object out)
cpdef object aval_of(object a)
cpdef bint agrees(TensorBase a, TensorBase out) except -1

@cython.locals(t=TensorBase)
cpdef bint mixes(tuple args) except -1
