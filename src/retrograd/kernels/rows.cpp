// Functions of rows: several passes over a row, which stays in the nearest cache, replace NumPy's passes over a matrix.

#include <algorithm>

#include "array_memory.hpp"
#include "rows.hpp"
#include "registration.hpp"

namespace retrograd {
namespace {

// ------------------------------------------------------------------------------------------------- one row

template <class T>
INLINE void softmax(const T* x, T* out, npy_intp n, Prefetch<T, 1> prefetch) {
    T scale = T(1 / exponentials(x, largest(x, n, prefetch), out, n));
    for (npy_intp i = 0; i < n; i++) out[i] *= scale;
}

template <class T>
INLINE void log_softmax(const T* x, T* out, npy_intp n, Prefetch<T, 1> prefetch) {
    T top = largest(x, n, prefetch), shift = T(std::log(sum_of_exponentials(x, top, n)));
    IN_ANY_ORDER
    for (npy_intp i = 0; i < n; i++) out[i] = (x[i] - top) - shift;
}

template <class T>
INLINE void softmax_grad(const T* g, const T* y, T* out, npy_intp n, Prefetch<T, 2> prefetch) {
    T level = T(summed<T>(n, [=](npy_intp i) { return g[i] * y[i]; }, prefetch));
    IN_ANY_ORDER
    for (npy_intp i = 0; i < n; i++) out[i] = y[i] * (g[i] - level);
}

template <class T>
INLINE void log_softmax_grad(const T* g, const T* y, T* out, npy_intp n, Prefetch<T, 2> prefetch) {
    T total = T(summed<T>(n, [=](npy_intp i) { return g[i]; }, prefetch));
    IN_ANY_ORDER
    for (npy_intp i = 0; i < n; i++) out[i] = g[i] - exp_of_negative(y[i]) * total;
}

template <class T>
INLINE T class_loss(const T* x, npy_int64 target, npy_intp n, Prefetch<T, 1> prefetch) {
    T top = largest(x, n, prefetch);
    return T(std::log(sum_of_exponentials(x, top, n))) - (x[target] - top);
}

template <class T>
INLINE void class_grad(const T* x, npy_int64 target, T g, T* out, npy_intp n, Prefetch<T, 1> prefetch) {
    double total = exponentials(x, largest(x, n, prefetch), out, n);
    T scale = T(1 / total);
    for (npy_intp i = 0; i < n; i++) out[i] *= scale;
    out[target] -= 1;
    for (npy_intp i = 0; i < n; i++) out[i] *= g;
}

// ---------------------------------------------------------------------------------------------- short rows

// Rows with fewer elements than a sum has lanes: most of the time of one would pass in waiting for its maximum, then for
// its sum. Those of several rows do not wait for each other, and exponentials of all their elements fill whole vectors.
template <class T>
constexpr npy_intp SHORT = LANES<T>;
constexpr npy_intp ROWS_AT_ONCE = 16, GROUPED = 4;

template <class T>
struct ShortRows {
    T shifted[ROWS_AT_ONCE * SHORT<T>], exponentials[ROWS_AT_ONCE * SHORT<T>];
    double totals[ROWS_AT_ONCE];

    INLINE void read(const char* x, npy_intp step, npy_intp within, npy_intp rows, npy_intp n) {
        for (npy_intp r = 0; r < rows; r += GROUPED) {
            // A group may repeat the last row.
            const T* from[GROUPED];
            T top[GROUPED];
            for (npy_intp k = 0; k < GROUPED; k++) {
                const npy_intp row = std::min(r + k, rows - 1);
                from[k] = within == sizeof(T) ? reinterpret_cast<const T*>(x + row * step) : exponentials + row * n;
                if (within != sizeof(T)) gather(x + row * step, within, n, exponentials + row * n);
                top[k] = -INFINITY;
            }
            NOT_UNROLLED
            for (npy_intp i = 0; i < n; i++)
                UNROLL
                for (npy_intp k = 0; k < GROUPED; k++) top[k] = from[k][i] > top[k] ? from[k][i] : top[k];
            for (npy_intp k = 0; k < GROUPED && r + k < rows; k++)
                for (npy_intp i = 0; i < n; i++) shifted[(r + k) * n + i] = from[k][i] - top[k];
        }
        for (npy_intp i = 0; i < rows * n; i++) exponentials[i] = exp_of_negative(shifted[i]);
        for (npy_intp r = 0; r < rows; r += GROUPED) {
            double total[GROUPED] = {};
            NOT_UNROLLED
            for (npy_intp i = 0; i < n; i++)
                UNROLL
                for (npy_intp k = 0; k < GROUPED; k++) total[k] += exponentials[std::min(r + k, rows - 1) * n + i];
            for (npy_intp k = 0; k < GROUPED && r + k < rows; k++) totals[r + k] = total[k];
        }
    }
};

template <class T>
INLINE void softmax(const ShortRows<T>& of, npy_intp r, T* out, npy_intp n) {
    const T scale = T(1 / of.totals[r]);
    for (npy_intp i = 0; i < n; i++) out[i] = of.exponentials[r * n + i] * scale;
}

template <class T>
INLINE void log_softmax(const ShortRows<T>& of, npy_intp r, T* out, npy_intp n) {
    const T shift = T(std::log(of.totals[r]));
    for (npy_intp i = 0; i < n; i++) out[i] = of.shifted[r * n + i] - shift;
}

// ------------------------------------------------------------------------------------------------ all rows

#define SHORT_ROWS(name)                                                                       \
    template <class T>                                                                         \
    INLINE void name##_short(char** args, const npy_intp* dimensions, const npy_intp* steps) { \
        const npy_intp n = dimensions[1];                                                      \
        ShortRows<T> some;                                                                     \
        Writer<T> write(steps[3], n);                                                          \
        for (npy_intp start = 0; start < dimensions[0]; start += ROWS_AT_ONCE) {               \
            const npy_intp rows = std::min(ROWS_AT_ONCE, dimensions[0] - start);               \
            some.read(args[0] + start * steps[0], steps[0], steps[2], rows, n);                \
            for (npy_intp r = 0; r < rows; r++) {                                              \
                name(some, r, write.at(args[1] + (start + r) * steps[1]), n);                  \
                write.finish();                                                                \
            }                                                                                  \
        }                                                                                      \
    }

SHORT_ROWS(softmax)
SHORT_ROWS(log_softmax)

#define ONE_TO_ONE(name)                                                                        \
    LOOP(name##_rows) {                                                                         \
        npy_intp n = dimensions[1];                                                                \
        if (n < SHORT<T>) return name##_short<T>(args, dimensions, steps);                         \
        Reader<T> read(steps[2], n);                                                               \
        Writer<T> write(steps[3], n);                                                              \
        for (npy_intp i = 0; i < dimensions[0]; i++) {                                             \
            name(read.at(ROW_PTR(0)), write.at(ROW_PTR(1)), n, Prefetch<T, 1>{{PREFETCH_PTR(0)}}); \
            write.finish();                                                                        \
        }                                                                                          \
    }

#define TWO_TO_ONE(name)                                                                       \
    LOOP(name##_rows) {                                                                        \
        npy_intp n = dimensions[1];                                                               \
        Reader<T> first(steps[3], n), second(steps[4], n);                                        \
        Writer<T> write(steps[5], n);                                                             \
        for (npy_intp i = 0; i < dimensions[0]; i++) {                                            \
            const Prefetch<T, 2> prefetch{{PREFETCH_PTR(0), PREFETCH_PTR(1)}};                    \
            name(first.at(ROW_PTR(0)), second.at(ROW_PTR(1)), write.at(ROW_PTR(2)), n, prefetch); \
            write.finish();                                                                       \
        }                                                                                         \
    }

ONE_TO_ONE(softmax)
ONE_TO_ONE(log_softmax)
TWO_TO_ONE(softmax_grad)
TWO_TO_ONE(log_softmax_grad)
LOOP(class_loss_rows) {
    npy_intp n = dimensions[1];
    Reader<T> read(steps[4], n);
    for (npy_intp i = 0; i < dimensions[0]; i++) {
        npy_int64 target = number<npy_int64>(ROW_PTR(1));
        bool ignored = target == number<npy_int64>(ROW_PTR(2));
        const Prefetch<T, 1> prefetch{{PREFETCH_PTR(0)}};
        *reinterpret_cast<T*>(ROW_PTR(3)) = ignored ? T(0) : class_loss(read.at(ROW_PTR(0)), target, n, prefetch);
    }
}
LOOP(class_grad_rows) {
    npy_intp n = dimensions[1];
    Reader<T> read(steps[5], n);
    Writer<T> write(steps[6], n);
    for (npy_intp i = 0; i < dimensions[0]; i++) {
        npy_int64 target = number<npy_int64>(ROW_PTR(1));
        T* out = write.at(ROW_PTR(4));
        if (target == number<npy_int64>(ROW_PTR(2))) std::fill(out, out + n, T(0));
        else class_grad(read.at(ROW_PTR(0)), target, number<T>(ROW_PTR(3)), out, n, Prefetch<T, 1>{{PREFETCH_PTR(0)}});
        write.finish();
    }
}


// Returns the sum of the squares of the differences from the mean.
template <class T>
INLINE double squared_deviations(const T* x, npy_intp n, Prefetch<T, 1> prefetch) {
    const T mean = T(summed<T>(n, [=](npy_intp i) { return x[i]; }, prefetch) / n);
    return summed<T>(n, [=](npy_intp i) { return (x[i] - mean) * (x[i] - mean); });
}

LOOP(variance_rows) {
    npy_intp n = dimensions[1];
    Reader<T> read(steps[3], n);
    for (npy_intp i = 0; i < dimensions[0]; i++) {
        const Prefetch<T, 1> prefetch{{PREFETCH_PTR(0)}};
        const double sum = squared_deviations(read.at(ROW_PTR(0)), n, prefetch);
        *reinterpret_cast<T*>(ROW_PTR(2)) = T(sum / number<T>(ROW_PTR(1)));
    }
}

// ------------------------------------------------------------------------------------ for other kernels too

template <class T>
INLINE void exponentials_inline(const T* x, T top, T* out, npy_intp n, double* sum) {
    IN_ANY_ORDER
    for (npy_intp i = 0; i < n; i++) out[i] = exp_of_negative(x[i] - top);
    *sum = summed<T>(n, [=](npy_intp i) { return out[i]; });
}

template <class T>
double dispatch_exponentials(const T* x, T top, T* out, npy_intp n) {
    double sum;
    cpu_dispatch<exponentials_inline<T>>(x, top, out, n, &sum);
    return sum;
}

// --------------------------------------------------------------------------------------------- means of few rows

// The mean of `class_loss_rows`, and its gradient, with the check of the classes in the same call: for few rows, NumPy's
// calls take longer than the computation.
constexpr npy_intp FEW_ROWS = 128;  // NumPy adds up to this many numbers in one block, as `sum_of_few`

template <class T>
T sum_of_few(const T* x, npy_intp n) {
    T total = 0;
    npy_intp i = 0;
    if (n >= 8) {
        T lanes[8];
        std::copy(x, x + 8, lanes);
        for (i = 8; i + 8 <= n; i += 8)
            for (int k = 0; k < 8; k++) lanes[k] += x[i + k];
        total = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
    }
    for (; i < n; i++) total += x[i];
    return total;
}

// Rows, their classes, and how many of these are not ignored: none if the operands are others, or a class is out of range.
struct FewRows {
    PyArrayObject *x, *classes;
    npy_int64 ignored = 0;
    npy_intp rows = 0, size = 0, counted = 0;

    FewRows(PyObject* logits, PyObject* target, PyObject* number) {
        if (!PyArray_CheckExact(logits) || !PyArray_CheckExact(target) || !PyLong_CheckExact(number)) return;
        x = reinterpret_cast<PyArrayObject*>(logits), classes = reinterpret_cast<PyArrayObject*>(target);
        if (!is(x, type_of(x), 2) || !is(classes, NPY_INT64, 1)) return;
        rows = PyArray_DIM(x, 0), size = PyArray_DIM(x, 1);
        if (rows != PyArray_DIM(classes, 0) || rows > FEW_ROWS || rows * size > ENOUGH) return;
        int overflow = 0;
        ignored = PyLong_AsLongLongAndOverflow(number, &overflow);
        const npy_int64* ids = static_cast<npy_int64*>(PyArray_DATA(classes));
        npy_intp found = 0;
        for (npy_intp i = 0; i < rows; i++) {
            if (ids[i] == ignored) continue;
            if (ids[i] < 0 || ids[i] >= size) return;
            found++;
        }
        counted = overflow ? 0 : found;
    }
};

template <class T>
PyObject* mean_loss(FewRows& of) {
    PyObject* result = PyArray_SimpleNew(0, nullptr, PyArray_TYPE(of.x));
    if (!result) return nullptr;
    T losses[FEW_ROWS];
    char* args[4] = {PyArray_BYTES(of.x), PyArray_BYTES(of.classes), reinterpret_cast<char*>(&of.ignored), reinterpret_cast<char*>(losses)};
    const npy_intp dimensions[2] = {of.rows, of.size}, steps[5] = {of.size * npy_intp(sizeof(T)), 8, 0, sizeof(T), sizeof(T)};
    cpu_dispatch<class_loss_rows<T>>(args, dimensions, steps, nullptr);
    *static_cast<T*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(result))) = sum_of_few(losses, of.rows) / T(of.counted);
    std::feclearexcept(FE_ALL_EXCEPT);
    return result;
}

PyObject* try_mean_loss(PyObject* const* args, Py_ssize_t count) {
    if (count != 3) return nullptr;
    FewRows of(args[0], args[1], args[2]);
    if (!of.counted) return nullptr;
    return PyArray_TYPE(of.x) == NPY_FLOAT ? mean_loss<float>(of) : mean_loss<double>(of);
}

template <class T>
PyObject* mean_grad(FewRows& of, PyArrayObject* g) {
    CachedMemory memory(PyArray_NBYTES(of.x));
    PyObject* result = PyArray_SimpleNew(2, PyArray_DIMS(of.x), PyArray_TYPE(of.x));
    if (!result) return nullptr;
    T share = *static_cast<T*>(PyArray_DATA(g)) / T(of.counted);
    char* args[5] = {PyArray_BYTES(of.x), PyArray_BYTES(of.classes), reinterpret_cast<char*>(&of.ignored),
                     reinterpret_cast<char*>(&share), PyArray_BYTES(reinterpret_cast<PyArrayObject*>(result))};
    const npy_intp row = of.size * npy_intp(sizeof(T)), dimensions[2] = {of.rows, of.size};
    const npy_intp steps[7] = {row, 8, 0, 0, row, sizeof(T), sizeof(T)};
    cpu_dispatch<class_grad_rows<T>>(args, dimensions, steps, nullptr);
    std::feclearexcept(FE_ALL_EXCEPT);
    return result;
}

PyObject* try_mean_grad(PyObject* const* args, Py_ssize_t count) {
    if (count != 4 || !PyArray_CheckExact(args[0])) return nullptr;
    FewRows of(args[1], args[2], args[3]);
    PyArrayObject* g = reinterpret_cast<PyArrayObject*>(args[0]);
    if (!of.counted || !is(g, PyArray_TYPE(of.x), 0)) return nullptr;
    return PyArray_TYPE(of.x) == NPY_FLOAT ? mean_grad<float>(of, g) : mean_grad<double>(of, g);
}

PyMethodDef methods[] = {
    {"small_class_loss", wrap_method<try_mean_loss>, METH_O, "Return a mean class loss that calls the wrapped one unless there are few rows."},
    {"small_class_grad", wrap_method<try_mean_grad>, METH_O, "Return its gradient, which calls the wrapped one unless there are few rows."},
    {nullptr, nullptr, 0, nullptr},
};

const Kernel kernels[] = {
    ROW(softmax_rows, 2, "TT", 1, "(n)->(n)"),
    ROW(log_softmax_rows, 2, "TT", 1, "(n)->(n)"),
    ROW(softmax_grad_rows, 3, "TTT", 2, "(n),(n)->(n)"),
    ROW(log_softmax_grad_rows, 3, "TTT", 2, "(n),(n)->(n)"),
    ROW(class_loss_rows, 4, "TllT", 3, "(n),(),()->()"),
    ROW(class_grad_rows, 5, "TllTT", 4, "(n),(),(),()->(n)"),
    ROW(variance_rows, 3, "TTT", 2, "(n),()->()"),
};

}  // namespace

double exponentials(const float* x, float top, float* out, npy_intp n) { return dispatch_exponentials(x, top, out, n); }
double exponentials(const double* x, double top, double* out, npy_intp n) { return dispatch_exponentials(x, top, out, n); }

const Part part_rows{kernels, methods};

}  // namespace retrograd
