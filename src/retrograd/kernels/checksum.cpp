// Checksums of memory.

#include <cstdint>
#include <cstring>

#include "cpu_dispatch.hpp"
#include "registration.hpp"
#include "vectors.hpp"

namespace retrograd {
namespace {

constexpr uint64_t FACTOR = 6364136223846793005u;  // of the polynomial, as in reference.py
constexpr uint64_t SQUARE = FACTOR * FACTOR, CUBE = SQUARE * FACTOR, FOURTH = CUBE * FACTOR;

// Returns a word whose lower half depends on its upper half, of which short floats leave most bits zero.
inline uint64_t word_at(const char* data, size_t bytes = 8) {
    uint64_t word = 0;
    std::memcpy(&word, data, bytes);
    return word ^ (word >> 32);
}

// Continues the polynomial of the words; a step of four words waits for one product of the step before.
void add_words(const char* data, size_t size, uint64_t* total) {
    uint64_t sum = *total;
    size_t i = 0;
    for (; i + 32 <= size; i += 32) {
        const uint64_t first = word_at(data + i) * FOURTH + word_at(data + i + 8) * CUBE;
        sum = sum * FOURTH + (first + (word_at(data + i + 16) * SQUARE + word_at(data + i + 24) * FACTOR));
    }
    for (; i < size; i += 8) sum = (sum + word_at(data + i, size - i < 8 ? size - i : 8)) * FACTOR;
    *total = sum;
}

constexpr uint64_t power(int exponent) { return exponent ? FACTOR * power(exponent - 1) : 1; }

// The same with AVX-512, whose products of 64 bits are one instruction: each of LANES sums continues with every LANES-th
// word.
FOR_WIDEST void add_words_in_lanes(const char* data, size_t size, uint64_t* total) {
    constexpr int LANES = 32, WIDTH = 8, STEP = LANES * 8;
    using V = Vector<uint64_t, WIDTH * 8>;
    const size_t steps = size / STEP;
    typename V::type sums[LANES / WIDTH] = {};
    for (size_t step = 0; step < steps; step++) {
        uint64_t words[LANES];
        NOT_UNROLLED
        for (int lane = 0; lane < LANES; lane++) words[lane] = word_at(data + step * STEP + lane * 8);
        UNROLL
        for (int i = 0; i < LANES / WIDTH; i++) {
            sums[i] = power(LANES) * sums[i];
            sums[i] += V::at(words + i * WIDTH);
        }
    }
    for (size_t step = 0; step < steps; step++) *total *= power(LANES);
    for (int lane = 0; lane < LANES; lane++) *total += reinterpret_cast<const uint64_t*>(sums)[lane] * power(LANES - lane);
    add_words(data + steps * STEP, size % STEP, total);
}

PyObject* checksum(PyObject*, PyObject* buffers) {
    if (!PyList_Check(buffers)) return raise_mismatch("checksum");
    const auto add = MOST_VECTOR_BYTES == 64 && vector_bytes == 64 ? add_words_in_lanes : add_words;
    uint64_t sum = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(buffers); i++) {
        Py_buffer view;
        if (PyObject_GetBuffer(PyList_GET_ITEM(buffers, i), &view, PyBUF_SIMPLE)) return nullptr;
        add(static_cast<const char*>(view.buf), view.len, &sum);
        PyBuffer_Release(&view);
    }
    return PyLong_FromUnsignedLong(((sum ^ (sum >> 32)) * FACTOR) >> 32);
}

PyMethodDef methods[] = {
    {"checksum", checksum, METH_O, "Return a 32-bit checksum of the bytes of the buffers of a list, in their order."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

const Part part_checksum{methods};

}  // namespace retrograd
