// Checksums of memory.

#include <cstdint>
#include <cstring>

#include "registration.hpp"

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

// Returns the polynomial of the words, continued; a step of four words waits for one product of the step before.
uint64_t add_words(const char* data, size_t size, uint64_t sum) {
    size_t i = 0;
    for (; i + 32 <= size; i += 32) {
        const uint64_t first = word_at(data + i) * FOURTH + word_at(data + i + 8) * CUBE;
        sum = sum * FOURTH + (first + (word_at(data + i + 16) * SQUARE + word_at(data + i + 24) * FACTOR));
    }
    for (; i < size; i += 8) sum = (sum + word_at(data + i, size - i < 8 ? size - i : 8)) * FACTOR;
    return sum;
}

PyObject* checksum(PyObject*, PyObject* buffers) {
    if (!PyList_Check(buffers)) return raise_mismatch("checksum");
    uint64_t sum = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(buffers); i++) {
        Py_buffer view;
        if (PyObject_GetBuffer(PyList_GET_ITEM(buffers, i), &view, PyBUF_SIMPLE)) return nullptr;
        sum = add_words(static_cast<const char*>(view.buf), view.len, sum);
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
