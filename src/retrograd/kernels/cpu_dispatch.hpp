// Code for several generations of processors in one build, one of which is selected at run time.
#pragma once

// Sanitizers may not be called as early as the processor is asked, so their builds have code for one processor.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && !defined(RETROGRAD_ONE_PROCESSOR)
#define SELECTS_AT_RUN_TIME
#define FOR_WIDEST __attribute__((target("arch=x86-64-v4")))
#define FOR_WIDE __attribute__((target("arch=x86-64-v3")))
#else
#define FOR_WIDEST
#define FOR_WIDE
#endif

#if defined(__GNUC__)
#define NOT_INLINE __attribute__((noinline))
#else
#define NOT_INLINE
#endif

namespace retrograd {

// The width of the widest vectors that this build has code for: 64 bytes (AVX-512), 32 (AVX2), or 16 (every processor).
// Kernels compile nothing for wider ones.
#if defined(SELECTS_AT_RUN_TIME) || defined(__AVX512F__)
constexpr int MOST_VECTOR_BYTES = 64;
#elif defined(__AVX2__)
constexpr int MOST_VECTOR_BYTES = 32;
#else
constexpr int MOST_VECTOR_BYTES = 16;
#endif

// The width of the widest vectors that the processor and this build support.
inline int supported_vector_bytes() {
#if defined(SELECTS_AT_RUN_TIME)
    return __builtin_cpu_supports("x86-64-v4") ? 64 : __builtin_cpu_supports("x86-64-v3") ? 32 : 16;
#else
    return MOST_VECTOR_BYTES;
#endif
}

// The width that kernels use; `set_vector_bytes` of the module sets it.
inline int vector_bytes = supported_vector_bytes();

template <auto body, auto narrow_body, auto wide_body>
struct CpuDispatch;

template <class... A, void (*body)(A...), void (*narrow_body)(A...), void (*wide_body)(A...)>
struct CpuDispatch<body, narrow_body, wide_body> {
    FOR_WIDEST static void widest(A... arguments) { body(arguments...); }
    FOR_WIDE static void wide(A... arguments) { wide_body(arguments...); }
    static void narrow(A... arguments) { narrow_body(arguments...); }
    static void call(A... arguments) {
        if constexpr (MOST_VECTOR_BYTES == 64) (vector_bytes == 64 ? widest : vector_bytes == 32 ? wide : narrow)(arguments...);
        else if constexpr (MOST_VECTOR_BYTES == 32) (vector_bytes == 32 ? wide : narrow)(arguments...);
        else narrow(arguments...);
    }
};

// A function whose code is that of `body`, an INLINE function, compiled for each generation of processors; for those
// without AVX2, that of `narrow_body`, and for those without AVX-512, that of `wide_body`.
template <auto body, auto narrow_body = body, auto wide_body = body>
constexpr auto cpu_dispatch = &CpuDispatch<body, narrow_body, wide_body>::call;

// The three versions of a function that is not inlined into its callers.
template <auto widest_body, auto wide_body, auto narrow_body>
struct Outlined;

template <class... A, void (*widest_body)(A...), void (*wide_body)(A...), void (*narrow_body)(A...)>
struct Outlined<widest_body, wide_body, narrow_body> {
    FOR_WIDEST NOT_INLINE static void widest(A... arguments) { widest_body(arguments...); }
    FOR_WIDE NOT_INLINE static void wide(A... arguments) { wide_body(arguments...); }
    NOT_INLINE static void narrow(A... arguments) { narrow_body(arguments...); }
};

// Calls the version for vectors of `bytes`.  A large function that is called in several places is compiled once, not
// once for each of them: compiling the attention kernels takes half as long.
template <int bytes, auto widest_body, auto wide_body, auto narrow_body, class... A>
inline void outlined(A... arguments) {
    using Versions = Outlined<widest_body, wide_body, narrow_body>;
    if constexpr (bytes == 64) Versions::widest(arguments...);
    else if constexpr (bytes == 32) Versions::wide(arguments...);
    else Versions::narrow(arguments...);
}

}  // namespace retrograd
