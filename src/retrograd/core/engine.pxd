cimport cython
from retrograd.core.array cimport ndarray
from retrograd.core.graph cimport GradFn
from retrograd.core.state cimport State, current, modes_of, set_modes
from retrograd.core.tensor cimport TensorBase, make, same_kind, bump_version, is_real_array

@cython.final
@cython.freelist(8)
cdef class BackwardPass:
    cdef public list heap, callbacks, roots
    cdef public GradFn first
    cdef public dict pending, arrived, captured, left
    cdef public set owned, needed, targets
    cdef public object accumulate, reachable
    cdef public tuple watchers
    cdef public bint retain, in_place, careful, adds, counting
    cdef object __weakref__

    @cython.locals(fn=GradFn)
    cpdef object deliver(self, object edge, int number, object g)
    @cython.locals(rival=GradFn)
    cpdef object enqueue(self, GradFn fn)
    @cython.locals(fn=GradFn)
    cpdef GradFn next(self)
    cpdef object deliver_output(self, GradFn fn, int number, object g)
    @cython.locals(total=TensorBase, term=TensorBase)
    cpdef object add_cotangents(self, object key, object old, object g)
    @cython.locals(state=State, grad_enabled=cython.bint, i=int)
    cpdef object execute(self, object level, bint create_graph, list roots, list cotangents)
    @cython.locals(fn=GradFn, nothing=cython.bint)
    cpdef object run(self)
    @cython.locals(i=int, last=int)
    cpdef object step(self, GradFn fn, object g)
    @cython.locals(old=object, total=object)
    cpdef object accumulate_leaf(self, TensorBase leaf, object g, bint fresh)
    cpdef object run_output_hooks(self, GradFn fn, object g)
    @cython.locals(i=int, ours=cython.bint, user_code=cython.bint, gs=tuple)
    cpdef object watched_step(self, GradFn fn, object g)
    @cython.locals(i=int, last=int, needs_input_grad=list)
    cpdef object gradients(self, GradFn fn, object gs)
    @cython.locals(owned=cython.bint)
    cpdef object finalize_leaf(self, TensorBase leaf)
    cpdef object count(self)
    cpdef object copy_shared_grads(self)
    cpdef object capture(self, GradFn fn, object g)

@cython.locals(state=State, t=TensorBase, u=TensorBase, a=ndarray, i=int)
cpdef object plain_seed(object root, object g)
@cython.locals(t=TensorBase, ends=list, found=dict)
cpdef object simple_gradients(object root, object targets, bint retain)
cpdef bint simple_backward(object root, object g, bint retain, object accumulate) except -1
cpdef bint calls_user_code(GradFn fn) except -1
cpdef bint is_large(TensorBase g) except -1
cpdef bint add_into(TensorBase total, TensorBase term) except -1
@cython.locals(t=TensorBase)
cpdef bint accumulate_plain(TensorBase leaf, TensorBase g, bint owned) except -1
cpdef object match_layout(TensorBase g, TensorBase leaf, bint owned)
cpdef bint is_fresh(TensorBase result, object g) except -1

@cython.locals(fn=GradFn, needed=set, before=cython.longlong)
cpdef set needed_for(list roots, list targets)
@cython.locals(fn=GradFn, seen=set, nodes=list)
cpdef list nodes_behind(object roots)
cpdef bint leads_to(GradFn fn, set ends) except -1
cpdef tuple edge_of(TensorBase tensor)
@cython.locals(needed=set, targets=set, ends=list, run=BackwardPass, depth=int)
cpdef object run_pass(list roots, list cotangents, object level, object inputs, bint create_graph, bint retain, object accumulate)
