cimport cython
from retrograd.core.state cimport current
from retrograd.core.tensor cimport TensorBase, has_numpy_dtype, unwrap_all
from retrograd.core.vjp_rule cimport VjpRule

cdef class OpBase:
    cdef public object schema, definition, kernel, ufunc, widened_rules, name, result_class
    cdef public dict params, kernels, device_rules, exact, orders
    cdef public list slots
    cdef public tuple rules, positional
    cdef public int last, simple, optional, leading, required, masks
    cdef public unsigned long long snapshots
    cdef public bint promotes, to_float, differentiable, reduces_cotangent, view, composite, variadic
    cdef public bint several_views, random, unary, takes_none, spreads

@cython.locals(t=TensorBase)
cpdef bint is_foreign(object a) except -1
cpdef bint any_foreign(object values) except -1
cpdef bint takes_over(object a, str reflected) except -1
cpdef object compound(TensorBase t)
