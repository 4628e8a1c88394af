# NumPy's array as the compiled core sees it: its type tests cost a pointer comparison.

cdef extern from "numpy/arrayobject.h":
    int PyArray_NDIM(ndarray)
    bint PyArray_ISCARRAY(ndarray)
    bint PyArray_IS_C_CONTIGUOUS(ndarray)
    void *PyArray_DIMS(ndarray)
    void *PyArray_STRIDES(ndarray)
    ctypedef class numpy.dtype [object PyArray_Descr, check_size ignore]:
        @property
        cdef inline int num(self) noexcept:
            return descr_num(self)
    ctypedef class numpy.ndarray [object PyArrayObject, check_size ignore]:
        @property
        cdef inline dtype dtype(self):
            return array_descr(self)
        @property
        cdef inline int ndim(self) noexcept:
            return PyArray_NDIM(self)
        @property
        cdef inline Py_ssize_t *shape(self) noexcept:
            return <Py_ssize_t *>PyArray_DIMS(self)
        @property
        cdef inline Py_ssize_t *strides(self) noexcept:
            return <Py_ssize_t *>PyArray_STRIDES(self)
        @property
        cdef inline bint is_carray(self) noexcept:
            return PyArray_ISCARRAY(self)
        @property
        cdef inline bint is_row_major(self) noexcept:
            return PyArray_IS_C_CONTIGUOUS(self)
        @property
        cdef inline object base(self):
            return array_base(self)

cdef extern from *:
    """
    static inline PyArray_Descr *array_descr(PyArrayObject *a) {
        PyArray_Descr *d = PyArray_DESCR(a);
        Py_INCREF(d);
        return d;
    }
    static inline PyObject *array_base(PyArrayObject *a) {
        PyObject *base = PyArray_BASE(a) ? PyArray_BASE(a) : Py_None;
        Py_INCREF(base);
        return base;
    }
    static inline int descr_num(PyArray_Descr *d) { return d->type_num; }
    """
    dtype array_descr(ndarray)
    object array_base(ndarray)
    int descr_num(dtype)
