// Memory for arrays: aligned to cache lines, and kept for later arrays up to a bound (a data-memory handler, NEP 49).
//
// Fresh memory comes from the operating system page by page, at the first touch of each.  For an array of megabytes
// that takes longer than most operators need to fill it, and the C library returns freed memory to the system early.

#include "array_memory.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "registration.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#endif
#if !defined(_WIN32)
#include <pthread.h>
#endif

namespace retrograd {
namespace {

constexpr size_t ALIGNMENT = 64;  // a cache line, and the widest vectors
constexpr size_t PAGE = 4096;
constexpr size_t LEAST = PAGE;  // capacities: powers of two, and three sizes between two of them
constexpr int CLASSES = 4 * 52;
constexpr size_t HUGE_FROM = 4 << 20;  // as in NumPy: from here on, huge pages are asked for

// The header in front of the data of a block.
struct alignas(ALIGNMENT) Block {
    void* raw;        // the C library's pointer
    size_t capacity;  // of the data, in bytes
    int kind;         // index of the capacity, or CLASSES if it is too large to be kept
    Block *newer, *older;  // of all free blocks, by the time of their release
    Block *above, *below;  // of the free blocks of the same capacity
};
static_assert(sizeof(Block) == ALIGNMENT, "data follows directly");

int class_of(size_t size) {
    int kind = 0;
    for (size_t power = LEAST; kind < CLASSES; power *= 2)
        for (size_t quarter = 0; quarter < 4; quarter++, kind++)
            if (size <= power + quarter * (power / 4)) return kind;
    return CLASSES;
}

size_t capacity_of(int kind) {
    const size_t power = LEAST << (kind / 4);
    return power + (kind % 4) * (power / 4);
}

// The number of bytes by which a block's data is moved within its page.  Processors mistake a load for one of an earlier
// store at the same offset of another page, and wait: so arrays that are read and written together begin at others.
size_t next_offset() {
    static std::atomic<size_t> number{0};
    return number++ * 17 * ALIGNMENT % PAGE;
}

// All free blocks.  The oldest ones return to the C library when there are more than `limit` bytes of them.
class Cache {
    std::mutex mutex;
    Block *newest = nullptr, *oldest = nullptr;
    Block* tops[CLASSES] = {};
    size_t free_bytes = 0, limit = 0;

  public:
    std::atomic<bool> on{false};  // whether anything is kept

  private:

    void unlink(Block* b) {
        (b->newer ? b->newer->older : newest) = b->older;
        (b->older ? b->older->newer : oldest) = b->newer;
        (b->above ? b->above->below : tops[b->kind]) = b->below;
        if (b->below) b->below->above = b->above;
        free_bytes -= b->capacity;
    }

    void link(Block* b) {
        b->newer = b->above = nullptr;
        b->older = newest, b->below = tops[b->kind];
        (newest ? newest->newer : oldest) = b;
        if (b->below) b->below->above = b;
        newest = tops[b->kind] = b;
        free_bytes += b->capacity;
    }

    void shrink() {
        while (free_bytes > limit) {
            Block* b = oldest;
            unlink(b);
            std::free(b->raw);
        }
    }

  public:
    Block* pop(int kind) {
        std::lock_guard<std::mutex> locked(mutex);
        Block* b = tops[kind];
        if (b) unlink(b);
        return b;
    }

    void push(Block* b) {
        std::lock_guard<std::mutex> locked(mutex);
        if (b->capacity > limit) return std::free(b->raw);
        link(b);
        shrink();
    }

    size_t set_limit(size_t bytes) {
        std::lock_guard<std::mutex> locked(mutex);
        std::swap(limit, bytes);
        on = limit > 0;
        shrink();
        return bytes;
    }

    size_t size() {
        std::lock_guard<std::mutex> locked(mutex);
        return free_bytes;
    }

    void lock() { mutex.lock(); }
    void unlock() { mutex.unlock(); }
};

Cache& cache() {
    static Cache* const one = new Cache;  // never destroyed: arrays may outlive the module
    return *one;
}

// A forked child inherits the free blocks, in a consistent state.
#if !defined(_WIN32)
[[maybe_unused]] const int registered =
    pthread_atfork([] { cache().lock(); }, [] { cache().unlock(); }, [] { cache().unlock(); });
#endif

Block* block_of(void* data) { return static_cast<Block*>(data) - 1; }

Block* allocate_block(size_t size, int kind, bool zeros) {
    const size_t capacity = kind < CLASSES ? capacity_of(kind) : size, whole = capacity + 2 * PAGE + sizeof(Block);
    if (whole < size) return nullptr;
    void* raw = zeros ? std::calloc(1, whole) : std::malloc(whole);
    if (!raw) return nullptr;
    const size_t address = reinterpret_cast<size_t>(raw), page = (address + PAGE - 1) / PAGE * PAGE;
    Block* b = reinterpret_cast<Block*>(static_cast<char*>(raw) + (page - address) + next_offset());
    b->raw = raw, b->capacity = capacity, b->kind = kind;
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    const size_t pages = (address + whole) / PAGE * PAGE - page;
    if (capacity >= HUGE_FROM) madvise(reinterpret_cast<void*>(page), pages, MADV_HUGEPAGE);
#endif
    return b;
}

void* allocate(void*, size_t size) {
    const int kind = class_of(size);
    Block* b = kind < CLASSES ? cache().pop(kind) : nullptr;
    if (!b) b = allocate_block(size, kind, false);
    return b ? b + 1 : nullptr;
}

void* allocate_zeros(void*, size_t count, size_t each) {
    if (each && count > SIZE_MAX / each) return nullptr;
    const size_t size = count * each;
    const int kind = class_of(size);
    Block* b = kind < CLASSES ? cache().pop(kind) : nullptr;
    if (b) return std::memset(b + 1, 0, size);
    b = allocate_block(size, kind, true);
    return b ? b + 1 : nullptr;
}

void release(void*, void* data, size_t) {
    if (!data) return;
    Block* b = block_of(data);
    b->kind < CLASSES ? cache().push(b) : std::free(b->raw);
}

void* reallocate(void*, void* data, size_t size) {
    if (!data) return allocate(nullptr, size);
    const size_t before = block_of(data)->capacity;
    if (size <= before && size >= before / 2) return data;
    void* new_data = allocate(nullptr, size);
    if (!new_data) return nullptr;
    std::memcpy(new_data, data, std::min(before, size));
    release(nullptr, data, before);
    return new_data;
}

PyDataMem_Handler functions = {"retrograd", 1, {nullptr, allocate, allocate_zeros, reallocate, release}};

PyObject* handler() {
    static PyObject* const capsule = PyCapsule_New(&functions, "mem_handler", nullptr);
    return capsule;
}

PyObject* set_limit(PyObject*, PyObject* number) {
    const size_t bytes = PyLong_AsSize_t(number);
    if (bytes == static_cast<size_t>(-1) && PyErr_Occurred()) return nullptr;
    return PyLong_FromSize_t(cache().set_limit(bytes));
}

PyObject* size(PyObject*, PyObject*) { return PyLong_FromSize_t(cache().size()); }

// ------------------------------------------------------------------------------------------- for arrays made here

PyObject* empty(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (count != 2) return PyErr_SetString(PyExc_TypeError, "empty: expected a shape and a dtype"), nullptr;
    PyArray_Dims shape = {nullptr, 0};
    PyArray_Descr* dtype = nullptr;
    if (!PyArray_IntpConverter(args[0], &shape)) return nullptr;
    PyObject* result = nullptr;
    if (PyArray_DescrConverter(args[1], &dtype)) {
        const npy_intp elements = std::max<npy_intp>(0, PyArray_OverflowMultiplyList(shape.ptr, shape.len));
        CachedMemory memory(elements * PyDataType_ELSIZE(dtype));
        result = PyArray_Empty(shape.len, shape.ptr, dtype, 0);  // takes the reference to dtype
    }
    PyDimMem_FREE(shape.ptr);
    return result;
}

// NumPy makes an iterator for this, which takes most of the time on few elements.
PyObject* broadcast_to(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (count != 2 || !PyArray_Check(args[0]))
        return PyErr_SetString(PyExc_TypeError, "broadcast_to: expected an array and a shape"), nullptr;
    PyArrayObject* x = reinterpret_cast<PyArrayObject*>(args[0]);
    PyArray_Dims shape = {nullptr, 0};
    if (!PyArray_IntpConverter(args[1], &shape)) return nullptr;
    const int lead = shape.len - PyArray_NDIM(x);
    npy_intp strides[NPY_MAXDIMS] = {};
    bool fits = lead >= 0;
    for (int d = 0; fits && d < shape.len; d++) {
        const npy_intp old = d < lead ? 1 : PyArray_DIM(x, d - lead);
        fits = shape.ptr[d] >= 0 && (old == 1 || old == shape.ptr[d]);
        if (old != 1) strides[d] = PyArray_STRIDE(x, d - lead);
    }
    PyArrayObject* result = nullptr;
    if (fits) {
        PyArray_Descr* dtype = PyArray_DESCR(x);
        Py_INCREF(dtype);  // taken by the result
        const int flags = PyArray_FLAGS(x) & ~NPY_ARRAY_WRITEABLE;
        result = reinterpret_cast<PyArrayObject*>(PyArray_NewFromDescr(&PyArray_Type, dtype, shape.len, shape.ptr, strides,
                                                                       PyArray_DATA(x), flags, nullptr));
        if (result && PyArray_SetBaseObject(result, Py_NewRef(args[0])) < 0) Py_CLEAR(result);
    } else {
        PyErr_SetString(PyExc_ValueError, "broadcast_to: the array does not broadcast to the shape");
    }
    PyDimMem_FREE(shape.ptr);
    return reinterpret_cast<PyObject*>(result);
}

// The results of the function use the cached memory if its first operand is large.
PyObject* call_caching(PyObject* self, PyObject* const* args, size_t flags, PyObject* names) {
    CachedMemory memory(PyVectorcall_NARGS(flags) ? bytes_of(args[0]) : 0);
    return PyObject_Vectorcall(reinterpret_cast<Wrapper*>(self)->function, args, flags, names);
}

PyObject* getattr(PyObject* self, PyObject* name) {
    return PyObject_GetAttr(reinterpret_cast<Wrapper*>(self)->function, name);
}

PyObject* repr(PyObject* self) { return PyObject_Repr(reinterpret_cast<Wrapper*>(self)->function); }

void dealloc(PyObject* self) {
    Py_DECREF(reinterpret_cast<Wrapper*>(self)->function);
    Py_XDECREF(reinterpret_cast<Wrapper*>(self)->other);
    PyObject_Free(self);
}

PyTypeObject wrapper_type() {
    PyTypeObject type = {PyVarObject_HEAD_INIT(nullptr, 0)};
    type.tp_name = "retrograd.kernels.native.Wrapper";
    type.tp_basicsize = sizeof(Wrapper);
    type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL;
    type.tp_vectorcall_offset = offsetof(Wrapper, vectorcall);
    type.tp_call = PyVectorcall_Call;
    type.tp_getattro = getattr;
    type.tp_repr = repr;
    type.tp_dealloc = dealloc;
    return type;
}

PyObject* caching_method(PyObject*, PyObject* function) { return caching(function); }

PyObject* address(PyObject*, PyObject* x) {
    if (!PyArray_Check(x)) return PyErr_Format(PyExc_TypeError, "address: expected an array");
    return PyLong_FromVoidPtr(PyArray_DATA(reinterpret_cast<PyArrayObject*>(x)));
}

PyMethodDef methods[] = {
    {"address", address, METH_O, "Return the address of the first element of an array."},
    {"set_cache_limit", set_limit, METH_O, "Keep at most this many bytes of free memory; return the previous limit."},
    {"cached_bytes", size, METH_NOARGS, "Return the number of bytes of free memory that are cached."},
    {"empty", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(empty)), METH_FASTCALL, "numpy.empty(shape, dtype)."},
    {"broadcast_to", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(broadcast_to)), METH_FASTCALL,
     "numpy.broadcast_to(x, shape)."},
    {"caching", caching_method, METH_O, "Return the function with its results in cached memory if its first operand is large."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

const Part part_array_memory{methods};

PyObject* ufunc_of(PyObject* object) {
    const bool is_wrapper = Py_TYPE(object)->tp_dealloc == dealloc;
    return is_wrapper ? reinterpret_cast<Wrapper*>(object)->function : object;
}

PyObject* wrap(PyObject* function, vectorcallfunc call, PyObject* other) {
    static PyTypeObject type = wrapper_type();
    if (PyType_Ready(&type) < 0) return nullptr;
    Wrapper* result = PyObject_New(Wrapper, &type);
    if (!result) return nullptr;
    result->vectorcall = call;
    result->function = Py_NewRef(function);
    result->other = Py_XNewRef(other);
    return reinterpret_cast<PyObject*>(result);
}

PyObject* caching(PyObject* function) { return wrap(function, call_caching); }

CachedMemory::CachedMemory(size_t bytes) {
    if (bytes < LEAST_CACHED || !cache().on || !handler()) return;
    before = PyDataMem_SetHandler(handler());
    if (!before) PyErr_Clear();  // the array gets NumPy's memory
}

CachedMemory::~CachedMemory() {
    if (!before) return;
    PyObject *type, *value, *trace;  // the error of a call that failed
    PyErr_Fetch(&type, &value, &trace);
    Py_XDECREF(PyDataMem_SetHandler(before));
    Py_DECREF(before);
    PyErr_Restore(type, value, trace);
}

}  // namespace retrograd
