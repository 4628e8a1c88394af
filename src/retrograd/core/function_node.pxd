cimport cython
from retrograd.core.array cimport ndarray
from retrograd.core.graph cimport GradFn, node
from retrograd.core.record cimport map_saved, saved_output, saved_version
from retrograd.core.state cimport State, current
from retrograd.core.tensor cimport TensorBase, alias, count_of, is_real_array, make

@cython.locals(state=State, recorded=cython.bint, mode=cython.bint, given=tuple, t=TensorBase, out=TensorBase)
cpdef object run_on_plain(object op, object kernel, tuple operands)

@cython.locals(t=TensorBase, u=TensorBase)
cpdef bint is_separate(object result, object operands) except -1

cpdef list shapes_and_dtypes(object inputs)
@cython.locals(i=int, found=list)
cpdef list describe_tensors(object values)
@cython.locals(t=TensorBase, found=list)
cpdef list cotangents_for_users(object cotangents)
cpdef list needed_inputs(object inputs, object level)

@cython.locals(edges=list, numbers=list, several=cython.bint, number=int, t=TensorBase, fn=GradFn)
cpdef GradFn function_node(object op, object ctx, object inputs, list needed)

@cython.locals(saved=list, versions=list, changed=cython.bint, number=int, version=cython.Py_ssize_t, state=State)
cpdef object save_tensors(GradFn fn, object ctx, tuple outputs)

@cython.locals(i=int)
cpdef int index_of(object tensor, tuple tensors) except -2
cpdef bint contains_tensor(object tensor, tuple tensors) except -1

@cython.locals(i=int, found=list)
cpdef tuple unpack_saved(GradFn fn)

@cython.locals(i=int, found=list)
cpdef list select_fitting(object grads, list avals, object needed)

@cython.locals(t=TensorBase)
cpdef bint fits_input(object g, object shape, object dtype) except -1
