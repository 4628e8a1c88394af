cimport cython
from retrograd.core.array cimport ndarray
from retrograd.core.aval cimport Aval, make_aval

cdef class TensorBase

cdef extern from *:
    """
    /* The tp_new of the compiled base, without the cost of calling the type from Python or its `__new__` for users. */
    static PyObject *tensor_no_args = NULL;
    static newfunc tensor_base_new = NULL;
    static inline PyObject *tensor_new(PyObject *type) {
        return tensor_base_new((PyTypeObject *)type, tensor_no_args, NULL);
    }
    static inline int set_base_new(PyObject *base) {
        if (!tensor_no_args && !(tensor_no_args = PyTuple_New(0))) return -1;
        tensor_base_new = ((PyTypeObject *)base)->tp_new;
        return 0;
    }
    /* For what was just found to be a tensor: no second check of its type. */
    static inline PyObject *tensor_same(PyObject *tensor) { Py_INCREF(tensor); return tensor; }
    """
    object tensor_new(object type)
    int set_base_new(object base) except -1
    TensorBase known_tensor "tensor_same" (object tensor)

cdef extern from *:
    """
    /* Temporaries come and go by the million: keep some of their memory.  Only for the class itself; a
       subclass that Python makes gets allocators of its own. */
    #define TENSOR_POOL 256
    static PyObject *tensor_pool[TENSOR_POOL];
    static int tensor_pooled = 0;
    static PyObject *tensor_alloc(PyTypeObject *type, Py_ssize_t n) {
        if (tensor_pooled == 0) return PyType_GenericAlloc(type, n);
        PyObject *o = tensor_pool[--tensor_pooled];
        memset(o + 1, 0, type->tp_basicsize - sizeof(PyObject));
        (void)PyObject_Init(o, type);
        PyObject_GC_Track(o);
        return o;
    }
    static void tensor_free(void *o) {
        if (tensor_pooled < TENSOR_POOL) tensor_pool[tensor_pooled++] = (PyObject *)o;
        else PyObject_GC_Del(o);
    }
    static inline void pool_allocations(PyObject *cls) {
    #ifndef Py_GIL_DISABLED
        PyTypeObject *type = (PyTypeObject *)cls;
        if (type->tp_itemsize == 0) {
            type->tp_alloc = tensor_alloc;
            type->tp_free = tensor_free;
        }
    #endif
    }
    """
    void pool_allocations(object cls)

cdef extern from *:
    """
    /* A dictionary of attributes for each instance of `cls` and its subclasses, created on first use; `offset` is that
       of its pointer, NULL until then.  Python and Cython would both make classes whose instances cost more. */
    static PyGetSetDef tensor_dict = {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL};
    static inline int give_dict(PyObject *cls, Py_ssize_t offset) {
        PyTypeObject *type = (PyTypeObject *)cls;
        PyObject *descriptor = PyDescr_NewGetSet(type, &tensor_dict);
        if (!descriptor || PyDict_SetItemString(type->tp_dict, "__dict__", descriptor) < 0) {
            Py_XDECREF(descriptor);
            return -1;
        }
        Py_DECREF(descriptor);
        type->tp_dictoffset = offset;
        PyType_Modified(type);
        return 0;
    }
    """
    int give_dict(object cls, Py_ssize_t offset) except -1

@cython.final
@cython.freelist(64)
cdef class Version:
    cdef public Py_ssize_t count, rebases
    cdef public bint saved
    cdef public object snapshots, where, inverses

@cython.freelist(512)
cdef class TensorBase:
    cdef public object value, level, tag, _grad_fn, _grad, _hooks, _view
    cdef public Version version
    cdef public bint _requires_grad, _saved, _overrides
    cdef public int _output_nr
    cdef object __weakref__
    cdef void *attributes  # the dictionary of `Tensor`, which visits and frees it

cdef inline Py_ssize_t attributes_offset(TensorBase tensor):
    return <char *>&tensor.attributes - <char *><void *>tensor

cdef inline bint has_dict(TensorBase tensor):
    return tensor.attributes != NULL

cdef bint compiled
cdef object tensor_class, tensor_base

@cython.locals(out=TensorBase)
cpdef TensorBase make(object value, object level, object tag)

@cython.locals(out=TensorBase)
cpdef TensorBase alias(TensorBase tensor, object grad_fn)

cpdef object attributes_of(TensorBase tensor)

cpdef Aval aval_of_tensor(TensorBase tensor)

cpdef object unwrap_all(TensorBase tensor)

cpdef Version version_of(TensorBase tensor)

cpdef Py_ssize_t count_of(TensorBase tensor) except -2

@cython.locals(version=Version)
cpdef object bump_version(TensorBase tensor)

@cython.locals(version=Version)
cpdef object preserve_snapshots(TensorBase tensor)

cdef int EXTENSION, FLOAT, DOUBLE

@cython.locals(a=ndarray, b=ndarray)
cpdef bint needs_no_promotion(object x, object y) except -1

@cython.locals(a=ndarray, i=int)
cpdef bint share_real_dtype(list operands, int masks=*) except -1

@cython.locals(t=TensorBase)
cpdef bint have_no_half(tuple operands) except -1

cpdef bint is_weak_number(ndarray array, object number) except -1

@cython.locals(a=ndarray)
cpdef bint has_numpy_dtype(object x) except -1

@cython.locals(a=ndarray)
cpdef bint is_floating_array(object x) except -1

@cython.locals(a=ndarray)
cpdef bint is_real_array(object x) except -1

@cython.locals(a=ndarray)
cpdef bint is_integer_array(object x) except -1

@cython.locals(a=ndarray, size=Py_ssize_t, i=int)
cpdef bint is_plain(TensorBase t, Py_ssize_t most) except -1
@cython.locals(a=ndarray)
cpdef bint has_plain_memory(TensorBase t) except -1

@cython.locals(t=TensorBase, g=TensorBase)
cpdef tuple split_plain(object tensors, Py_ssize_t most)

@cython.locals(t=TensorBase)
cpdef list arrays_of(object tensors)

cpdef object bump_versions(object tensors)
cpdef list drop_grads(object tensors)

@cython.locals(a=ndarray, b=ndarray, i=int)
cpdef bint same_kind(object x, object y) except -1
