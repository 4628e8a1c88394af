// Adapters that turn elementwise functions into ufuncs of several arrays, settings (scalars for all elements), and
// several outputs.
#pragma once

#include "loops.hpp"

namespace retrograd {

constexpr npy_intp BLOCK = 512;

// The operands of a kernel: contiguous arrays, and settings.
template <class T, int arrays, int settings, int outputs>
struct Operands {
    T* in[arrays];
    T set[settings ? settings : 1];
    T* out[outputs];
};

// A NumPy loop over arrays of any strides, which calls `kernel` on blocks; `settings` are the last inputs.  If one has
// a nonzero stride, every element is a separate block.
template <class T, int arrays, int settings, int outputs, void (*kernel)(const Operands<T, arrays, settings, outputs>&, npy_intp)>
void anywhere(char** args, const npy_intp* dimensions, const npy_intp* steps, void*) {
    constexpr int first_out = arrays + settings;
    Operands<T, arrays, settings, outputs> operands;
    T from[arrays][BLOCK], to[outputs][BLOCK];
    bool contiguous = true, constant = true;
    for (int k = 0; k < first_out + outputs; k++) {
        bool setting = k >= arrays && k < first_out;
        (setting ? constant : contiguous) &= steps[k] == (setting ? 0 : npy_intp(sizeof(T)));
    }
    npy_intp n = dimensions[0], block = !constant ? 1 : contiguous ? n : BLOCK;
    for (npy_intp start = 0; start < n; start += block) {
        npy_intp count = n - start < block ? n - start : block;
        for (int k = 0; k < settings; k++)
            operands.set[k] = *reinterpret_cast<T*>(args[arrays + k] + start * steps[arrays + k]);
        for (int k = 0; k < arrays; k++) {
            char* ptr = args[k] + start * steps[k];
            operands.in[k] = contiguous ? reinterpret_cast<T*>(ptr) : from[k];
            if (!contiguous) gather(ptr, steps[k], count, from[k]);
        }
        for (int k = 0; k < outputs; k++)
            operands.out[k] = contiguous ? reinterpret_cast<T*>(args[first_out + k] + start * steps[first_out + k]) : to[k];
        kernel(operands, count);
        if (!contiguous)
            for (int k = 0; k < outputs; k++) {
                char* ptr = args[first_out + k] + start * steps[first_out + k];
                scatter(to[k], count, ptr, steps[first_out + k]);
            }
    }
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
