cimport cython

cdef extern from *:
    """
    /* Borrowed from threading.local; a State that dies takes the pointer back. */
    #if defined(__GNUC__) && defined(__linux__)
    __attribute__((tls_model("initial-exec")))  /* eight bytes: found without a call */
    #endif
    static _Thread_local PyObject *retrograd_thread_state = NULL;
    static inline PyObject *thread_state_get(void) {
        PyObject *state = retrograd_thread_state ? retrograd_thread_state : Py_None;
        Py_INCREF(state);
        return state;
    }
    static inline void thread_state_set(PyObject *state) { retrograd_thread_state = state; }
    static inline void thread_state_forget(PyObject *state) {
        if (retrograd_thread_state == state) retrograd_thread_state = NULL;
    }
    """
    object thread_state_get()
    void thread_state_set(object state)
    void thread_state_forget(object state)

cdef bint compiled

@cython.final
cdef class State:
    cdef public object level
    cdef public bint grad_enabled, inference, multithreading
    cdef public object saving, saving_refused, running, device
    cdef public tuple watchers
    cdef public int depth, overrides_off
    cdef public list grad_blocks

@cython.locals(state=State)
cpdef State current()

cpdef tuple modes_of(State state)
cpdef object set_modes(State state, tuple modes)

@cython.final
cdef class at:
    cdef object _level, _old_level
    cdef bint _grad_enabled, _old_grad_enabled
