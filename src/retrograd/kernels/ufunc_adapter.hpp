// Adapters that turn elementwise functions into ufuncs of several arrays, settings (scalars for all elements), and
// several outputs.
#pragma once

#include "loops.hpp"

namespace retrograd {

constexpr npy_intp BLOCK = 512;

// The operands of a kernel: contiguous arrays, and settings.
template <class T, int arrays, int settings, int outputs>
struct Operands {
    const T* in[arrays];
    T set[settings ? settings : 1];
    T* out[outputs];
};

// Elements of an operand at any stride, block by block: where they are if they are contiguous, else in a copy, which is
// made once if one number is repeated.
template <class T>
class Source {
public:
    Source() {}
    void open(const char* at, npy_intp stride, npy_intp n) {
        base = at, step = stride;
        if (step == 0) std::fill_n(copy, std::min(n, BLOCK), *reinterpret_cast<const T*>(base));
    }
    bool contiguous() const { return step == sizeof(T); }
    const T* elements(npy_intp start, npy_intp count) {
        if (contiguous()) return reinterpret_cast<const T*>(base) + start;
        if (step) gather(base + start * step, step, count, copy);
        return copy;
    }

private:
    const char* base;
    npy_intp step;
    T copy[BLOCK];
};

// Calls `kernel` on blocks of arrays of any strides; `settings` are the last inputs.  If one has a nonzero stride, every
// element is a separate block.  Not inlined: kernels of as many operands share it.
template <class T, int arrays, int settings, int outputs>
NOT_INLINE void call_on_blocks(void (*kernel)(const Operands<T, arrays, settings, outputs>&, npy_intp), char** args, npy_intp n,
                               const npy_intp* steps) {
    constexpr int first_out = arrays + settings;
    Operands<T, arrays, settings, outputs> operands;
    Source<T> from[arrays];
    T to[outputs][BLOCK];
    bool whole = true, direct = true, constant = true;
    for (int k = 0; k < arrays; k++) from[k].open(args[k], steps[k], n), whole &= from[k].contiguous();
    for (int k = arrays; k < first_out; k++) constant &= steps[k] == 0;
    for (int k = first_out; k < first_out + outputs; k++) direct &= steps[k] == npy_intp(sizeof(T));
    const npy_intp block = !constant ? 1 : whole && direct ? n : BLOCK;
    for (npy_intp start = 0; start < n; start += block) {
        const npy_intp count = std::min(n - start, block);
        for (int k = 0; k < settings; k++)
            operands.set[k] = *reinterpret_cast<T*>(args[arrays + k] + start * steps[arrays + k]);
        for (int k = 0; k < arrays; k++) operands.in[k] = from[k].elements(start, count);
        for (int k = 0; k < outputs; k++) {
            char* at = args[first_out + k] + start * steps[first_out + k];
            operands.out[k] = direct ? reinterpret_cast<T*>(at) : to[k];
        }
        kernel(operands, count);
        for (int k = 0; k < outputs && !direct; k++)
            scatter(to[k], count, args[first_out + k] + start * steps[first_out + k], steps[first_out + k]);
    }
}

// A NumPy loop.
template <class T, int arrays, int settings, int outputs, void (*kernel)(const Operands<T, arrays, settings, outputs>&, npy_intp)>
void anywhere(char** args, const npy_intp* dimensions, const npy_intp* steps, void*) {
    call_on_blocks<T, arrays, settings, outputs>(kernel, args, dimensions[0], steps);
}

#define KERNEL(name, arrays, settings, outputs) \
    template <class T>                          \
    INLINE void name(const Operands<T, arrays, settings, outputs>& operands, npy_intp n)

template <class T, int arrays, int settings, int outputs, void (*kernel)(const Operands<T, arrays, settings, outputs>&, npy_intp)>
constexpr PyUFuncGenericFunction loop =
    parallel_loop<anywhere<T, arrays, settings, outputs, kernel>, arrays + settings + outputs, false>;

#define OF_NUMBERS(name, arrays, settings, outputs, types)                        \
    {                                                                             \
        #name,                                                                    \
            {loop<float, arrays, settings, outputs, cpu_dispatch<name<float>>>,   \
             loop<double, arrays, settings, outputs, cpu_dispatch<name<double>>>}, \
            types, arrays + settings, nullptr                                     \
    }

}  // namespace retrograd
