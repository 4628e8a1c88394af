// Functions of arrays that NumPy would make in many passes, as NumPy ufuncs: one pass each, vectorised.
//
// Each has a twin of the same name in twins.py, which is its definition and its fallback.  Loops over contiguous memory
// are compiled for several instruction sets, of which the processor picks one when the module is loaded.

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <Python.h>
#include <numpy/ndarrayobject.h>
#include <numpy/ufuncobject.h>

#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__)
#define FOR_PROCESSORS __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FOR_PROCESSORS
#endif
#if defined(__GNUC__)
#define INLINE inline __attribute__((always_inline))
#else
#define INLINE inline
#endif

namespace {

// ------------------------------------------------------------------------------------------- of one number

INLINE float bits_as_float(int32_t bits) {
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

// exp(z) for z <= 0: 2^k times a polynomial in the rest, at most log(2) / 2; numbers below -87 count as that.
INLINE float exp_of_negative(float z) {
    z = z < -87.0f ? -87.0f : z;
    const float shift = 12582912.0f;  // 1.5 * 2^23: adding it rounds to whole numbers
    float k = (z * 1.44269504f + shift) - shift;
    float r = z - k * 0.693359375f;  // log(2) in two parts, of which the first times k is exact
    r -= k * -2.12194440e-4f;
    float p = 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    return p * bits_as_float((static_cast<int32_t>(k) + 127) << 23);
}

// The rational function of twins.py.
INLINE float erf_of(float x) {
    float y = x < -3.95f ? -3.95f : x;
    y = y > 3.95f ? 3.95f : y;
    float z = y * y;
    float above = 2.0117344511229603e-06f;
    above = above * z + 2.8760165552651037e-04f;
    above = above * z + 3.917361155784924e-03f;
    above = above * z + 5.3207189619104e-02f;
    above = above * z + 1.9403669602557594e-01f;
    above = above * z + 1.1283790060995655f;
    float below = 3.7839682456963244e-05f;
    below = below * z + 1.1982115627276156e-03f;
    below = below * z + 1.5270787025490024e-02f;
    below = below * z + 1.1559116622713242e-01f;
    below = below * z + 5.052920314920322e-01f;
    below = below * z + 1.0f;
    float q = y * (above / below);
    q = q > 1.0f ? 1.0f : q;
    return q < -1.0f ? -1.0f : q;
}

INLINE double erf_of(double x) { return std::erf(x); }

// x times the normal density; from `far` on that is 0 in all digits, at infinity too.
INLINE float weighted_density(float x) {
    const float far = 13.0f;
    float y = x < -far ? -far : x;
    y = y > far ? far : y;
    return y * 0.398942280401f * exp_of_negative(-0.5f * y * y);
}
INLINE double weighted_density(double x) {
    const double far = 37.0;
    double y = x < -far ? -far : x;
    y = y > far ? far : y;
    return y * 0.39894228040143267794 * std::exp(-0.5 * y * y);
}

template <class T>
INLINE T gelu_of(T x) {
    return x * (T(0.5) * (T(1) + erf_of(x * T(0.70710678118654752440))));
}

template <class T>
INLINE T gelu_slope_of(T x) {
    return T(0.5) * (T(1) + erf_of(x * T(0.70710678118654752440))) + weighted_density(x);
}

// ------------------------------------------------------------------------------------- of every number

constexpr npy_intp BLOCK = 256;

// A loop for NumPy over numbers anywhere in memory, by way of `contiguous` on blocks of them.
template <class T, void (*contiguous)(const T*, T*, npy_intp)>
void elementwise(char** args, const npy_intp* dimensions, const npy_intp* steps, void*) {
    const char* in = args[0];
    char* out = args[1];
    npy_intp n = dimensions[0], step = steps[0], stride = steps[1];
    if (step == sizeof(T) && stride == sizeof(T)) {
        contiguous(reinterpret_cast<const T*>(in), reinterpret_cast<T*>(out), n);
    } else {
        T from[BLOCK], to[BLOCK];
        for (npy_intp start = 0; start < n; start += BLOCK) {
            npy_intp count = n - start < BLOCK ? n - start : BLOCK;
            for (npy_intp i = 0; i < count; i++) from[i] = *reinterpret_cast<const T*>(in + (start + i) * step);
            contiguous(from, to, count);
            for (npy_intp i = 0; i < count; i++) *reinterpret_cast<T*>(out + (start + i) * stride) = to[i];
        }
    }
    std::feclearexcept(FE_ALL_EXCEPT);  // infinities and NaN are no accidents here
}

#define OF_EVERY_NUMBER(name, T)                                                        \
    FOR_PROCESSORS void name##_##T(const T* in, T* out, npy_intp n) {                   \
        for (npy_intp i = 0; i < n; i++) out[i] = name##_of(in[i]);                     \
    }

OF_EVERY_NUMBER(erf, float)
OF_EVERY_NUMBER(erf, double)
OF_EVERY_NUMBER(gelu, float)
OF_EVERY_NUMBER(gelu, double)
OF_EVERY_NUMBER(gelu_slope, float)
OF_EVERY_NUMBER(gelu_slope, double)

// ------------------------------------------------------------------------------------------------ of rows

constexpr npy_intp LANES = 16, PIECE = 1024;

// The sum of f(i) for i < n: lanes side by side, pieces in double precision.
template <class T, class F>
INLINE double summed(npy_intp n, F f) {
    double total = 0;
    for (npy_intp start = 0; start < n; start += PIECE) {
        npy_intp end = n - start < PIECE ? n : start + PIECE, i = start;
        T lanes[LANES] = {};
        for (; i + LANES <= end; i += LANES)
            for (npy_intp k = 0; k < LANES; k++) lanes[k] += f(i + k);
        T rest = 0;
        for (; i < end; i++) rest += f(i);
        for (npy_intp k = 0; k < LANES; k++) rest += lanes[k];
        total += rest;
    }
    return total;
}

// A row whose numbers lie apart in memory.
template <class T>
struct Apart {
    char* first;
    npy_intp step;
    T& operator[](npy_intp i) const { return *reinterpret_cast<T*>(first + i * step); }
};

template <class T, class X, class Out>
INLINE void standardize(X x, T eps, Out out, T& mean, T& variance, npy_intp n) {
    T m = T(summed<T>(n, [=](npy_intp i) { return x[i]; }) / n);
    T v = T(summed<T>(n, [=](npy_intp i) { return (x[i] - m) * (x[i] - m); }) / n);
    T scale = 1 / std::sqrt(v + eps);
    for (npy_intp i = 0; i < n; i++) out[i] = (x[i] - m) * scale;
    mean = m;
    variance = v;
}

template <class T, class X, class Y, class Out>
INLINE void mix(X x, T p, T q, Y y, T r, Out out, npy_intp n) {
    for (npy_intp i = 0; i < n; i++) out[i] = x[i] * p + y[i] * r + q;
}

template <class X, class Weight, class Bias, class Out>
INLINE void affine(X x, Weight weight, Bias bias, Out out, npy_intp n) {
    for (npy_intp i = 0; i < n; i++) out[i] = x[i] * weight[i] + bias[i];
}

// `steps` has those from row to row first, one for each array, then those in a row, one for each array that has rows.
#define ROW(T, k) reinterpret_cast<T*>(args[k] + i * steps[k])
#define APART(T, k, j) Apart<T>{args[k] + i * steps[k], steps[j]}
#define NUMBER(T, k) (*ROW(T, k))
#define LOOP(name, T) FOR_PROCESSORS void name##_##T(char** args, const npy_intp* dimensions, const npy_intp* steps, void*)

#define OF_ROWS(T)                                                                                                   \
    LOOP(standardize_rows, T) {                                                                                      \
        npy_intp n = dimensions[1];                                                                                  \
        bool close = steps[5] == sizeof(T) && steps[6] == sizeof(T);                                                 \
        for (npy_intp i = 0; i < dimensions[0]; i++) {                                                               \
            if (close) standardize<T>(ROW(T, 0), NUMBER(T, 1), ROW(T, 2), NUMBER(T, 3), NUMBER(T, 4), n);            \
            else standardize<T>(APART(T, 0, 5), NUMBER(T, 1), APART(T, 2, 6), NUMBER(T, 3), NUMBER(T, 4), n);        \
        }                                                                                                            \
        std::feclearexcept(FE_ALL_EXCEPT); /* a row without numbers has no mean */                              \
    }                                                                                                                \
    LOOP(mix_rows, T) {                                                                                              \
        npy_intp n = dimensions[1];                                                                                  \
        bool close = steps[6] == sizeof(T) && steps[7] == sizeof(T) && steps[8] == sizeof(T);                        \
        for (npy_intp i = 0; i < dimensions[0]; i++) {                                                               \
            T p = NUMBER(T, 1), q = NUMBER(T, 2), r = NUMBER(T, 4);                                                  \
            if (close) mix<T>(ROW(T, 0), p, q, ROW(T, 3), r, ROW(T, 5), n);                                          \
            else mix<T>(APART(T, 0, 6), p, q, APART(T, 3, 7), r, APART(T, 5, 8), n);                                 \
        }                                                                                                            \
    }                                                                                                                \
    LOOP(affine_rows, T) {                                                                                           \
        npy_intp n = dimensions[1];                                                                                  \
        bool close = true;                                                                                           \
        for (int j = 4; j < 8; j++) close = close && steps[j] == sizeof(T);                                          \
        for (npy_intp i = 0; i < dimensions[0]; i++) {                                                               \
            if (close) affine(ROW(T, 0), ROW(T, 1), ROW(T, 2), ROW(T, 3), n);                                        \
            else affine(APART(T, 0, 4), APART(T, 1, 5), APART(T, 2, 6), APART(T, 3, 7), n);                          \
        }                                                                                                            \
    }

OF_ROWS(float)
OF_ROWS(double)

// ---------------------------------------------------------------------------------------------- the module

void* none[2] = {nullptr, nullptr};

#define PAIR(name) {name##_float, name##_double}

PyUFuncGenericFunction of_erf[] = {elementwise<float, erf_float>, elementwise<double, erf_double>};
PyUFuncGenericFunction of_gelu[] = {elementwise<float, gelu_float>, elementwise<double, gelu_double>};
PyUFuncGenericFunction of_gelu_slope[] = {elementwise<float, gelu_slope_float>, elementwise<double, gelu_slope_double>};
PyUFuncGenericFunction of_standardize_rows[] = PAIR(standardize_rows);
PyUFuncGenericFunction of_mix_rows[] = PAIR(mix_rows);
PyUFuncGenericFunction of_affine_rows[] = PAIR(affine_rows);

struct Kernel {
    const char* name;
    PyUFuncGenericFunction* loops;
    int inputs, outputs;
    const char* signature;  // null: of every number
};

const Kernel kernels[] = {
    {"erf", of_erf, 1, 1, nullptr},
    {"gelu", of_gelu, 1, 1, nullptr},
    {"gelu_slope", of_gelu_slope, 1, 1, nullptr},
    {"standardize_rows", of_standardize_rows, 2, 3, "(n),()->(n),(),()"},
    {"mix_rows", of_mix_rows, 5, 1, "(n),(),(),(n),()->(n)"},
    {"affine_rows", of_affine_rows, 3, 1, "(n),(n),(n)->(n)"},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "native", "Kernels in C++; see twins.py for what they compute.", -1};

}  // namespace

PyMODINIT_FUNC PyInit_native() {
    import_array();
    import_umath();
    PyObject* module = PyModule_Create(&definition);
    if (!module) return nullptr;
    for (const Kernel& k : kernels) {
        // NumPy keeps the pointer to the types: of each function its own, two rows of as many as it has operands.
        int operands = k.inputs + k.outputs;
        char* own = static_cast<char*>(PyMem_Malloc(2 * operands));
        if (!own) return PyErr_NoMemory();
        std::memset(own, NPY_FLOAT, operands);
        std::memset(own + operands, NPY_DOUBLE, operands);
        PyObject* ufunc = PyUFunc_FromFuncAndDataAndSignature(
            k.loops, none, own, 2, k.inputs, k.outputs, PyUFunc_None, k.name, "", 0, k.signature);
        if (!ufunc || PyModule_AddObject(module, k.name, ufunc) < 0) return nullptr;
    }
    return module;
}
