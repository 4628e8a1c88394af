// Uniform random numbers, identical to NumPy's Philox generator, and dropout.
//
// Philox 4x64 with 10 rounds: J. Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC 2011.  Every four words
// are a function of a counter, so that threads need not wait for each other.

#include "loops.hpp"
#include "registration.hpp"

namespace retrograd {
namespace {

using Word = uint64_t;

constexpr int WORDS = 4, ROUNDS = 10;

INLINE Word product(Word a, Word b, Word& high) {
#if defined(__SIZEOF_INT128__)
    unsigned __int128 whole = static_cast<unsigned __int128>(a) * b;
    high = static_cast<Word>(whole >> 64);
    return static_cast<Word>(whole);
#else
    Word low = (a & 0xffffffffu) * (b & 0xffffffffu), left = (a >> 32) * (b & 0xffffffffu);
    Word right = (a & 0xffffffffu) * (b >> 32), middle = (low >> 32) + (left & 0xffffffffu) + right;
    high = (a >> 32) * (b >> 32) + (left >> 32) + (middle >> 32);
    return a * b;
#endif
}

// Computes the four words of a counter.
INLINE void words_of(const Word* counter, const Word* key, Word* out) {
    Word a = counter[0], b = counter[1], c = counter[2], d = counter[3], first = key[0], second = key[1];
    for (int round = 0; round < ROUNDS; round++) {
        Word high, other, low = product(0xD2E7470EE14C6C93u, a, high), rest = product(0xCA5A826395121157u, c, other);
        a = other ^ b ^ first;
        c = high ^ d ^ second;
        b = rest;
        d = low;
        first += 0x9E3779B97F4A7C15u;
        second += 0xBB67AE8584CAA73Bu;
    }
    out[0] = a, out[1] = b, out[2] = c, out[3] = d;
}

// Converts four words to values in [0, 1); single precision takes two from each word, the lower half first.
INLINE void to_numbers(const Word* words, float* out) {
    for (int i = 0; i < WORDS; i++) {
        out[2 * i] = static_cast<float>(static_cast<int32_t>(static_cast<uint32_t>(words[i]) >> 8)) * (1.0f / 16777216);
        out[2 * i + 1] = static_cast<float>(static_cast<int32_t>(words[i] >> 40)) * (1.0f / 16777216);
    }
}
INLINE void to_numbers(const Word* words, double* out) {
    for (int i = 0; i < WORDS; i++) out[i] = static_cast<double>(static_cast<int64_t>(words[i] >> 11)) * (1.0 / 9007199254740992);
}

// Writes the values of the counters `counter` + 1 + i, for i from `begin` on.
template <class T>
void draw(const Word* key, const Word* counter, npy_intp begin, npy_intp end, T* out) {
    constexpr npy_intp each = WORDS * (sizeof(Word) / sizeof(T));
    Word at[WORDS], words[WORDS], step = static_cast<Word>(begin) + 1;
    for (int i = 0; i < WORDS; i++) {
        at[i] = counter[i] + step;
        step = at[i] < step;  // the carry
    }
    for (npy_intp block = begin; block < end; block++) {
        words_of(at, key, words);
        to_numbers(words, out + block * each);
        for (int i = 0; i < WORDS && ++at[i] == 0; i++) {
        }
    }
}

PyObject* uniform(PyObject*, PyObject* args) {
    PyArrayObject *key, *counter, *out;
    if (!PyArg_ParseTuple(args, "O!O!O!", &PyArray_Type, &key, &PyArray_Type, &counter, &PyArray_Type, &out)) return nullptr;
    bool single = PyArray_TYPE(out) == NPY_FLOAT;
    npy_intp each = single ? 2 * WORDS : WORDS, n = PyArray_SIZE(out);
    bool words = PyArray_TYPE(key) == NPY_UINT64 && PyArray_SIZE(key) == 2 && PyArray_ISCARRAY_RO(key) &&
                 PyArray_TYPE(counter) == NPY_UINT64 && PyArray_SIZE(counter) == WORDS && PyArray_ISCARRAY_RO(counter);
    if (!words || !is_writable(out, type_of(out), PyArray_NDIM(out)) || n % each) return raise_mismatch("uniform");
    const Word *k = static_cast<Word*>(PyArray_DATA(key)), *c = static_cast<Word*>(PyArray_DATA(counter));
    void* data = PyArray_DATA(out);
    const auto some = [=](npy_intp begin, npy_intp end) {
        single ? draw(k, c, begin, end, static_cast<float*>(data)) : draw(k, c, begin, end, static_cast<double*>(data));
    };
    if (!without_gil([=] { parallel_for(n / each, ENOUGH / (4 * each), some); })) return nullptr;
    Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"uniform", separate<uniform, 1>, METH_VARARGS, "The numbers in [0, 1) that Philox draws after a counter."},
    {nullptr, nullptr, 0, nullptr},
};

// ---------------------------------------------------------------------------------------------------- dropout

template <class T>
INLINE void apply_mask(const npy_bool* mask, const T* x, T scale, T* out, npy_intp n) {
    IN_ANY_ORDER
    for (npy_intp i = 0; i < n; i++) out[i] = x[i] * (mask[i] ? scale : T(0));
}

template <class T>
void masked(char** args, const npy_intp* dimensions, const npy_intp* steps, void*) {
    constexpr npy_intp size = sizeof(T);
    npy_intp n = dimensions[0];
    bool contiguous = steps[0] == 1 && steps[1] == size && steps[2] == 0 && steps[3] == size;
    for (npy_intp start = 0, count = contiguous ? n : 1; start < n; start += count) {
        char* at[4];
        for (int k = 0; k < 4; k++) at[k] = args[k] + start * steps[k];
        cpu_dispatch<apply_mask<T>>(reinterpret_cast<npy_bool*>(at[0]), reinterpret_cast<T*>(at[1]), *reinterpret_cast<T*>(at[2]),
               reinterpret_cast<T*>(at[3]), count);
    }
}

const Kernel kernels[] = {
    {"masked", {parallel_loop<masked<float>, 4, false>, parallel_loop<masked<double>, 4, false>}, "?TTT", 3, nullptr},
};

}  // namespace

const Part part_dropout_rng{kernels, methods};

}  // namespace retrograd
