// Code for several generations of processors in one build, one of which is selected at run time.
#pragma once

// Sanitizers may not be called as early as the processor is asked, so their builds have code for one processor.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && !defined(RETROGRAD_ONE_PROCESSOR)
#define FOR_WIDEST __attribute__((target("arch=x86-64-v4")))
#define FOR_WIDE __attribute__((target("arch=x86-64-v3")))
#else
#define FOR_WIDEST
#define FOR_WIDE
#endif

namespace retrograd {

// The width of the widest vectors that the processor and this build support: 64 bytes (AVX-512), 32 (AVX2), or 16
// (every processor).
inline int supported_vector_bytes() {
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && !defined(RETROGRAD_ONE_PROCESSOR)
    return __builtin_cpu_supports("x86-64-v4") ? 64 : __builtin_cpu_supports("x86-64-v3") ? 32 : 16;
#elif defined(__AVX512F__)
    return 64;
#elif defined(__AVX2__)
    return 32;
#else
    return 16;
#endif
}

// The width that kernels use; `set_vector_bytes` of the module sets it.
inline int vector_bytes = supported_vector_bytes();

template <auto body>
struct CpuDispatch;

template <class... A, void (*body)(A...)>
struct CpuDispatch<body> {
    FOR_WIDEST static void widest(A... arguments) { body(arguments...); }
    FOR_WIDE static void wide(A... arguments) { body(arguments...); }
    static void narrow(A... arguments) { body(arguments...); }
    static void call(A... arguments) {
        (vector_bytes == 64 ? widest : vector_bytes == 32 ? wide : narrow)(arguments...);
    }
};

// A function whose code is that of `body`, an INLINE function, compiled for each generation of processors.
template <auto body>
constexpr auto cpu_dispatch = &CpuDispatch<body>::call;

}  // namespace retrograd
