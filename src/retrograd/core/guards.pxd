cimport cython
from retrograd.core.array cimport ndarray
from retrograd.core.state cimport State, current
from retrograd.core.tensor cimport TensorBase, attributes_of

cdef extern from *:
    """
    /* The version of a dict, which another one replaces at each change; 0 if there is none: then it is compared.
       Until Python 3.12 each dict has one. Later ones call a function when a dict changes that is watched, and all
       watched dicts have the number of these calls as their version: only namespaces are watched, which seldom change. */
    #if PY_VERSION_HEX < 0x030D0000
    static inline unsigned long long version_of(PyObject *d) {
    #if defined(__GNUC__)
    #pragma GCC diagnostic push
    #pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    #endif
        return d == Py_None ? 0 : ((PyDictObject *)d)->ma_version_tag;
    #if defined(__GNUC__)
    #pragma GCC diagnostic pop
    #endif
    }
    static inline unsigned long long watched_version(PyObject *d) { return version_of(d); }
    #else
    static unsigned long long retrograd_changes = 1;
    static int retrograd_watcher = -2;  /* -2: not asked for, -1: refused */
    static int note_change(PyDict_WatchEvent event, PyObject *d, PyObject *key, PyObject *value) {
        retrograd_changes++;
        return 0;
    }
    static inline unsigned long long version_of(PyObject *d) { return 0; }
    static inline unsigned long long watched_version(PyObject *d) {
        if (retrograd_watcher == -2 && (retrograd_watcher = PyDict_AddWatcher(note_change)) < 0) PyErr_Clear();
        if (retrograd_watcher < 0) return 0;
        if (PyDict_Watch(retrograd_watcher, d) < 0) { PyErr_Clear(); return 0; }
        return retrograd_changes;
    }
    #endif
    static inline PyObject *bases_of(PyObject *owner) {
        PyObject *bases = ((PyTypeObject *)owner)->tp_mro;
        if (!bases) bases = Py_None;
        Py_INCREF(bases);
        return bases;
    }
    static inline PyObject *members_of(PyObject *owner) {
    #if PY_VERSION_HEX < 0x030C0000
        PyObject *members = ((PyTypeObject *)owner)->tp_dict;
        Py_XINCREF(members);
        return members;
    #else
        return PyType_GetDict((PyTypeObject *)owner);
    #endif
    }
    static inline PyObject *own_dict(PyObject *value) { return PyObject_GenericGetDict(value, NULL); }
    """
    unsigned long long version_of(dict)
    unsigned long long watched_version(dict)
    object bases_of(object)
    object members_of(object)
    object own_dict(object)

@cython.final
cdef class TensorGuard:
    cdef public object attributes, kind, dtype, grad_guard, composite
    cdef public tuple shape, strides
    cdef public int ndim
    cdef public bint has_hooks, inference, is_leaf, is_view, requires_grad

    @cython.locals(t=TensorBase, guard=TensorGuard)
    cpdef bint holds(self, object value) except -1
    @cython.locals(a=ndarray, i=int)
    cdef bint _has_layout(self, object array) except -1

@cython.locals(own=TensorGuard, i=Py_ssize_t)
cpdef bint match_values(list guards, object values, list tensors, object is_same) except -1

@cython.locals(own=TensorGuard, i=Py_ssize_t)
cpdef bint all_hold(list guards, list tensors) except -1

@cython.final
cdef class Namespace:
    cdef object __weakref__
    cdef public dict container, content
    cdef public object owner
    cdef unsigned long long _version

    @cython.locals(version="unsigned long long")
    cpdef dict look(self)
    cdef bint _has_bases(self) except -1
    cdef dict _copy(self)
    cdef bint _is_same(self) except -1

cpdef object mro_of(object owner)

@cython.locals(own=Namespace, i=Py_ssize_t, content=dict)
cpdef bint namespaces_hold(list namespaces, list contents, object names) except -1

@cython.final
cdef class DictGuard:
    cdef public dict container
    cdef list _fields, _entries
    cdef unsigned long long _version

    @cython.locals(version="unsigned long long")
    cpdef bint holds(self, object missing, object is_same) except -1

@cython.locals(own=DictGuard, container=list, members=tuple, i=Py_ssize_t)
cpdef bint values_hold(list codes, list kinds, list dicts, list lists, object missing, object is_same) except -1

@cython.locals(first=TensorBase, second=TensorBase, i=Py_ssize_t, k=Py_ssize_t, n=Py_ssize_t)
cpdef bint have_arrays_of_their_own(list tensors) except -1

@cython.locals(t=TensorBase, i=Py_ssize_t)
cpdef bint have_plain_arrays(list tensors, list arrays) except -1

@cython.final
cdef class GuardedCall:
    cdef object _play, _explain, _dtype, _names, _missing, _is_same
    cdef bint _any_grad_mode, _grad_enabled
    cdef list _args, _namespaces, _contents, _tensor_guards, _tensors
    cdef tuple _values
    cdef frozenset _arrays

    @cython.locals(state=State, tensors=list, codes=list, kinds=list, dicts=list, lists=list, others=list)
    cpdef object run(self, tuple args)
    cdef bint _are_new(self, list tensors) except -1
