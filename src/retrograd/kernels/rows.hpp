// Rows of matrices in memory, and NumPy loops over them.
#pragma once

#include <memory>

#include "loops.hpp"
#include "sums.hpp"

namespace retrograd {

// ---------------------------------------------------------------------------------------------- rows in memory

// A contiguous row to read: in place, or a copy if it is strided.
template <class T>
class Reader {
public:
    explicit Reader(npy_intp step, npy_intp n) : step(step), n(n), copy(step == sizeof(T) ? nullptr : new T[n]) {}
    const T* at(const char* ptr) {
        if (!copy) return reinterpret_cast<const T*>(ptr);
        gather(ptr, step, n, copy.get());
        return copy.get();
    }

private:
    npy_intp step, n;
    std::unique_ptr<T[]> copy;
};

// A contiguous row to write to, which `finish` copies back if the row is strided.
template <class T>
class Writer {
public:
    explicit Writer(npy_intp step, npy_intp n) : step(step), n(n), copy(step == sizeof(T) ? nullptr : new T[n]) {}
    T* at(char* where) {
        ptr = where;
        return copy ? copy.get() : reinterpret_cast<T*>(ptr);
    }
    void finish() {
        if (!copy) return;
        scatter(copy.get(), n, ptr, step);
    }

private:
    npy_intp step, n;
    char* ptr = nullptr;
    std::unique_ptr<T[]> copy;
};

template <class T>
T number(const char* ptr) {
    return *reinterpret_cast<const T*>(ptr);
}

// ------------------------------------------------------------------------------------------- loops over all rows

// `steps` has the strides between rows, one per operand, then those within a row, one per operand that has rows.
#define LOOP(name) template <class T> INLINE void name(char** args, const npy_intp* dimensions, const npy_intp* steps, void*)
#define ROW_PTR(k) (args[k] + i * steps[k])

// The row of an operand that is read after the next one, for prefetching.
#define PREFETCH_PTR(k) (args[k] + (i + 2) * steps[k])

// A kernel's entry in the table.
#define ROW(name, operands, types, inputs, signature)                                                                     \
    {                                                                                                                     \
        #name, {parallel_loop<cpu_dispatch<name<float>>, operands, true>, parallel_loop<cpu_dispatch<name<double>>, operands, true>}, \
            types, inputs, signature                                                                                      \
    }

}  // namespace retrograd
