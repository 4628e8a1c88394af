cdef bint _is_one(value)
cdef bint _is_list(value)

cdef class Schema:
    cdef public object name, returns, last_positional
    cdef public tuple parameters, inputs, params, positional_params
    cdef public dict defaults, exact, _by_name
    cdef public bint variadic, inputs_lead

    cpdef tuple bind(self, args, kwargs)
    cpdef dict given(self, args, kwargs)
    cpdef dict _positional(self, args)
    cpdef object _resolve(self, key)
    cpdef object _convert(self, parameter, dict given)
    cpdef tuple _flatten(self, dict given)
