cimport cython
from retrograd.core.state cimport State, at, current
from retrograd.core.tensor cimport TensorBase, known_tensor, make

cpdef bint grad_mode_below(object level, State state) except -1

@cython.locals(t=TensorBase, values=list)
cpdef tuple values_at(object level, tuple args)

@cython.locals(t=TensorBase, tags=list, found=cython.bint)
cpdef tuple tags_at(object level, tuple args)

@cython.locals(t=TensorBase, found=list)
cpdef tuple tagged_at(object level, tuple args)

@cython.locals(t=TensorBase, i=int, rank=int, shared=int, ndim=int)
cpdef bint broadcasts_batched(tuple args, tuple batched, int masks) except -1

cpdef object wrap_result(object level, object out, object tag)
