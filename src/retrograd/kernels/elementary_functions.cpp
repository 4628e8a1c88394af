// Loops of elementary functions in place of NumPy's.
//
// For processors with AVX-512, NumPy has vector instructions for most functions; for those with AVX2 and no more, it calls
// the C library for each number, which takes 3 to 10 times as long as these loops.  Elements with a result that is not
// finite, and operands that are too large for a reduction, are left to NumPy's loop, by blocks.  So its warnings, infinities
// and NaN stay what they are.
//
// The errors are at most 2.5 units in the last place, 3.1 of `tan` (tests/kernels/test_elementary_functions.py).

#include "elementary_functions.hpp"

#include "ufunc_adapter.hpp"

namespace retrograd {
namespace {

template <class T>
constexpr T NONE = std::numeric_limits<T>::quiet_NaN();

// ------------------------------------------------------------------------------------------------- exponentials

// From this number on, exponentials overflow, and from its opposite on they round to 0.
template <class T>
constexpr T EXP_FAR = -Format<T>::lowest;
template <class T>
constexpr T EXP2_FAR = sizeof(T) == 4 ? T(152) : T(1080);

// x, but no farther from 0 than `far`.  A comparison with each bound is no substitute: from the second on, GCC computes
// everything for the bounds too, and selects at the end, which takes 1.3 times as long.
template <class T>
INLINE T within(T x, T far) {
    return std::fabs(x) > far ? std::copysign(far, x) : x;
}

// p 2^k for 1/2 < p < 2, given k + shift, by two powers: one alone may be too large or too small for a normal number.
template <class T>
INLINE T scaled(T p, T moved) {
    const bool large = moved > Format<T>::shift;
    return p * power_of_two(moved, large ? -64 : 64) * (large ? T(0x1p64) : T(0x1p-64));
}

template <class T>
INLINE T exp_of(T x) {
    T r, moved = split(within(x, EXP_FAR<T>), r);
    return scaled(T(1) + (r + r * r * exp_rest(r)), moved);
}

template <class T>
INLINE T exp2_of(T x) {
    const T z = within(x, EXP2_FAR<T>), moved = z + Format<T>::shift;
    const T r = (z - (moved - Format<T>::shift)) * T(0.69314718055994530942);
    return scaled(T(1) + (r + r * r * exp_rest(r)), moved);
}

// 2^k (near + 1 - 2^-k) by the same two powers.
template <class T>
INLINE T expm1_of(T x) {
    T r, moved = split(within(x, EXP_FAR<T>), r), near = r + r * r * exp_rest(r);
    const bool large = moved > Format<T>::shift;
    const T first = power_of_two(moved, large ? -64 : 64), one = large ? T(0x1p-64) : T(0x1p64);
    return std::copysign((first * near + (first - one)) * (large ? T(0x1p64) : T(0x1p-64)), x);
}

// exp(|x|) / 2, which overflows where the hyperbolic functions do.
template <class T>
INLINE T half_exp_of(T size) {
    T r, moved = split(size > EXP_FAR<T> ? EXP_FAR<T> : size, r);
    return (T(1) + (r + r * r * exp_rest(r))) * power_of_two(moved, -65) * T(0x1p64);
}

template <class T>
INLINE T cosh_of(T x) {
    const T half = half_exp_of(std::fabs(x));
    return half + T(0.25) / half;
}

// (sinh(x) - x) / x^3 in x^2 for |x| <= 1, by the Taylor series.
INLINE float sinh_rest(float z) {
    return polynomial<float>(z, {1.0f / 6, 1.0f / 120, 1.0f / 5040, 1.0f / 362880, 1.0f / 39916800});
}
INLINE double sinh_rest(double z) {
    return polynomial<double>(z, {1.0 / 6, 1.0 / 120, 1.0 / 5040, 1.0 / 362880, 1.0 / 39916800, 1.0 / 6227020800,
        1.0 / 1307674368000, 1.0 / 355687428096000, 1.0 / 121645100408832000});
}

template <class T>
INLINE T sinh_of(T x) {
    const T z = x * x, near = x + x * z * sinh_rest(z), half = half_exp_of(std::fabs(x));
    return std::fabs(x) < T(1) ? near : std::copysign(half - T(0.25) / half, x);
}

// --------------------------------------------------------------------------------------------------- logarithms

// Only normal numbers have one here.
template <class T>
INLINE bool has_log(T x) {
    return x >= std::numeric_limits<T>::min() && x <= std::numeric_limits<T>::max();
}

template <class T>
INLINE T log_of(T x) {
    return has_log(x) ? log_of_normal(x) : NONE<T>;
}
template <class T>
INLINE T log2_of(T x) {
    T k, f = fraction_of(x, k);
    return has_log(x) ? k + log_sum(f) * T(1.44269504088896340736) : NONE<T>;
}
template <class T>
INLINE T log10_of(T x) {
    T k, f = fraction_of(x, k), rest = log_sum(f) * T(0.43429448190325182765) + k * T(4.60503898119521373889e-6);
    return has_log(x) ? k * T(0.301025390625) + rest : NONE<T>;
}

// log(1 + x): u is 1 + x without the digits that the sum loses; these are c.
template <class T>
INLINE T log1p_of(T x) {
    T u = T(1) + x, k, f = fraction_of(u, k), lost = x >= T(1) ? T(1) - (u - x) : x - (u - T(1));
    const bool near = k == T(0);
    const T found = log_sum(near ? x : f, k * Format<T>::log2_rest + (near ? T(0) : lost / u));
    return has_log(u) ? std::copysign(k * Format<T>::log2_first + found, x) : NONE<T>;
}

template <class T>
INLINE T arcsinh_of(T x) {
    const T a = std::fabs(x), square = a * a;
    return std::copysign(log1p_of(a + square / (T(1) + std::sqrt(square + T(1)))), x);
}
template <class T>
INLINE T arccosh_of(T x) {
    const T t = x - T(1);
    return t >= T(0) ? log1p_of(t + std::sqrt(T(2) * t + t * t)) : NONE<T>;
}
template <class T>
INLINE T arctanh_of(T x) {
    const T a = std::fabs(x);
    return std::copysign(T(0.5) * log1p_of(T(2) * a / (T(1) - a)), x);
}

// --------------------------------------------------------------------------------- trigonometric functions

// x = n pi/2 + r with an integer n; returns n + shift.  pi/2 is in three parts.  The first difference is exact for |x| up to
// FAR, and the others have no more than that to cancel (W. J. Cody and W. Waite, 1980).
constexpr double FAR = 0x1p20;
INLINE double quarter_turns(double x, double& r) {
    const double moved = x * 0.63661977236758134308 + Format<double>::shift, n = moved - Format<double>::shift;
    r = std::fma(-n, 1.5707963267948966, x);
    r = std::fma(-n, 6.123233995736766e-17, r);
    r = std::fma(-n, -1.4973849048591833e-33, r);
    r = n == 0 ? x : r;  // -0 too
    return moved;
}

// (sin(r) - r) / r^3 and (cos(r) - 1 + r^2 / 2) / r^4 in r^2 for |r| <= pi/4, by the Taylor series.
INLINE float sin_rest(float z) {
    return polynomial<float>(z, {-1.0f / 6, 1.0f / 120, -1.0f / 5040, 1.0f / 362880});
}
INLINE float cos_rest(float z) {
    return polynomial<float>(z, {1.0f / 24, -1.0f / 720, 1.0f / 40320, -1.0f / 3628800});
}
INLINE double sin_rest(double z) {
    return polynomial<double>(z, {-1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800,
        -1.0 / 1307674368000, 1.0 / 355687428096000});
}
INLINE double cos_rest(double z) {
    return polynomial<double>(z, {1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600, -1.0 / 87178291200,
        1.0 / 20922789888000, -1.0 / 6402373705728000});
}
template <class T>
INLINE T near_sin(T r) {
    const T z = r * r;
    return std::copysign(r + r * z * sin_rest(z), r);
}
template <class T>
INLINE T near_cos(T r) {
    const T z = r * r;
    return T(1) - (T(0.5) * z - z * z * cos_rest(z));
}

// sin(x + turns pi/2).
INLINE double sin_of(double x, uint64_t turns) {
    double r, moved = quarter_turns(x, r);
    const uint64_t n = bits_of(moved) + turns;
    const double found = n & 1 ? near_cos(r) : near_sin(r);
    return n & 2 ? -found : found;
}
INLINE double sin_of(double x) { return sin_of(x, 0); }
INLINE double cos_of(double x) { return sin_of(x, 1); }

template <class T>
INLINE T tan_of(T x) {
    double rest, moved = quarter_turns(x, rest);
    const T r = static_cast<T>(rest), s = near_sin(r), c = near_cos(r);
    return bits_of(moved) & 1 ? -c / s : s / c;
}

// (arctan(t) / t - 1) / t^2 in t^2 for |t| <= tan(pi/8), and (arcsin(t) / t - 1) / t^2 for |t| <= 1/2: interpolated at
// Chebyshev nodes, with errors of 2e-8 and 3e-17, and of 4e-9 and 2e-17.
INLINE float arctan_rest(float z) {
    return polynomial<float>(z, {-3.33333318e-01f, 1.99995405e-01f, -1.42639556e-01f, 1.07437315e-01f, -6.4519282e-02f});
}
INLINE double arctan_rest(double z) {
    return polynomial<double>(z, {-3.3333333333333330e-01, 1.9999999999995521e-01, -1.4285714284666543e-01,
        1.1111111015256362e-01, -9.0909045781239019e-02, 7.6921831908260866e-02, -6.6645114473819480e-02,
        5.8581489128022099e-02, -5.0854497379402599e-02, 3.9231658295587191e-02, -1.9176887119062259e-02});
}
INLINE float arcsin_rest(float z) {
    return polynomial<float>(z, {1.66666663e-01f, 7.50009454e-02f, 4.45994015e-02f, 3.11006627e-02f, 1.71492384e-02f,
        3.36908472e-02f});
}
INLINE double arcsin_rest(double z) {
    return polynomial<double>(z, {1.6666666666666668e-01, 7.4999999999984329e-02, 4.4642857146355430e-02,
        3.0381944138531247e-02, 2.2372172942149888e-02, 1.7352392720869973e-02, 1.3971212973552933e-02,
        1.1479177415184906e-02, 1.0322814350185779e-02, 5.4575067186403583e-03, 1.7400879442694022e-02,
        -1.4851887071247203e-02, 2.8757851367421565e-02});
}

// pi/2, and the difference of pi/2 and the nearest number of type T.
template <class T>
constexpr T QUARTER = T(1.57079632679489661923);
template <class T>
constexpr T QUARTER_REST = sizeof(T) == 4 ? T(-4.37113882867379e-8) : T(6.123233995736766e-17);

// With t = (a - 1) / (a + 1), arctan(a) is pi/4 + arctan(t); with t = -1/a, it is pi/2 + arctan(t).
template <class T>
INLINE T arctan_of(T x) {
    const T a = std::fabs(x);
    const bool near = a < T(0.41421356237309504880), far = a > T(2.41421356237309504880);
    const T t = (near ? a : far ? T(-1) : a - T(1)) / (near ? T(1) : far ? a : a + T(1)), z = t * t;
    const T base = near ? T(0) : far ? QUARTER<T> : T(0.5) * QUARTER<T>;
    const T rest = near ? T(0) : far ? QUARTER_REST<T> : T(0.5) * QUARTER_REST<T>;
    return std::copysign(base + (t + (t * z * arctan_rest(z) + rest)), x);
}

// arcsin(t) for the t up to 1/2 by which arcsin(a) is pi/2 - 2 arcsin(t) if a > 1/2.
template <class T>
INLINE T half_arcsin(T a) {
    const T z = a > T(0.5) ? T(0.5) * (T(1) - a) : a * a, t = a > T(0.5) ? std::sqrt(z) : a;
    return t + t * z * arcsin_rest(z);
}
template <class T>
INLINE T arcsin_of(T x) {
    const T a = std::fabs(x), p = half_arcsin(a);
    return std::copysign(a > T(0.5) ? QUARTER<T> - (T(2) * p - QUARTER_REST<T>) : p, x);
}
template <class T>
INLINE T arccos_of(T x) {
    const T a = std::fabs(x), p = half_arcsin(a), near = QUARTER<T> - (std::copysign(p, x) - QUARTER_REST<T>);
    const T far = x > T(0) ? T(2) * p : T(2) * (QUARTER<T> - (p - QUARTER_REST<T>));
    return a > T(0.5) ? far : near;
}

// -------------------------------------------------------------------------------------------------------- loops

// Computes a block; returns whether an element is left to NumPy.
template <class T>
using Block = bool (*)(const T* x, T* y, npy_intp n);

template <class T>
INLINE bool is_left(T x, T y, T far) {
    return !(std::fabs(y) <= std::numeric_limits<T>::max()) | (std::fabs(x) > far);
}

template <class T, T (*function)(T), int far>
INLINE bool compute(const T* x, T* y, npy_intp n) {
    constexpr T limit = far ? T(FAR) : std::numeric_limits<T>::infinity();
    typename Format<T>::Bits left = 0;
    IN_ANY_ORDER
    for (npy_intp i = 0; i < n; i++) {
        const T operand = x[i], result = function(operand);
        y[i] = result;
        left |= is_left(operand, result, limit);
    }
    return left;
}

// The blocks for vectors of 32 bytes, and of 64: null where NumPy's loops serve.
template <class T>
struct Blocks {
    Block<T> wide = nullptr, widest = nullptr;
    T far = std::numeric_limits<T>::infinity();
};

template <class T, T (*function)(T), int far>
FOR_WIDE bool compute_wide(const T* x, T* y, npy_intp n) {
    return compute<T, function, far>(x, y, n);
}
template <class T, T (*function)(T), int far>
FOR_WIDEST bool compute_widest(const T* x, T* y, npy_intp n) {
    return compute<T, function, far>(x, y, n);
}

template <class T, T (*function)(T), bool widest = false, int far = 0>
constexpr Blocks<T> blocks() {
    Blocks<T> found;
    if constexpr (far) found.far = T(FAR);
    if constexpr (MOST_VECTOR_BYTES >= 32) found.wide = compute_wide<T, function, far>;
    if constexpr (MOST_VECTOR_BYTES >= 64 && widest) found.widest = compute_widest<T, function, far>;
    return found;
}

struct Functions {
    const char* name;
    Blocks<float> single;
    Blocks<double> twice;
};

#define OF_BOTH(name) {#name, blocks<float, name##_of<float>>(), blocks<double, name##_of<double>>()}

const Functions functions[] = {
    {"exp", blocks<float, exp_of<float>, true>(), blocks<double, exp_of<double>>()},
    OF_BOTH(exp2), OF_BOTH(expm1), OF_BOTH(sinh), OF_BOTH(cosh), OF_BOTH(tanh), OF_BOTH(log), OF_BOTH(log2), OF_BOTH(log10),
    OF_BOTH(log1p), OF_BOTH(arcsinh), OF_BOTH(arccosh), OF_BOTH(arctanh), OF_BOTH(arctan), OF_BOTH(arcsin), OF_BOTH(arccos),
    {"tan", blocks<float, tan_of<float>, false, 1>(), blocks<double, tan_of<double>, false, 1>()},
    {"sin", {}, blocks<double, sin_of, true, 1>()},
    {"cos", {}, blocks<double, cos_of, true, 1>()},
};

// A loop of NumPy's, and the blocks to compute in its place.
template <class T>
struct Replaced {
    PyUFuncGenericFunction function;
    void* data;
    Blocks<T> blocks;

    void run(char* from, char* to, npy_intp n, npy_intp step, npy_intp to_step) const {
        char* args[] = {from, to};
        const npy_intp steps[] = {step, to_step};
        function(args, &n, steps, data);
    }
};

// The flags of which NumPy warns.  Vector instructions raise some for numbers that are not selected.
constexpr int WARNED = FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW;

// Replaces the results that are left to NumPy by its own.  Afterwards the floating-point flags are those of its loop and of
// before.
template <class T>
NOT_INLINE void leave_to_numpy(const Replaced<T>& replaced, const T* x, T* y, npy_intp n, int flags) {
    T found[BLOCK];
    const T far = replaced.blocks.far;
    for (npy_intp start = 0; start < n; start += BLOCK, x += BLOCK, y += BLOCK) {
        const npy_intp count = std::min(n - start, BLOCK);
        bool any = false;
        for (npy_intp i = 0; i < count; i++) any |= is_left(x[i], y[i], far);
        if (!any) continue;
        std::feclearexcept(FE_ALL_EXCEPT);
        replaced.run(reinterpret_cast<char*>(const_cast<T*>(x)), reinterpret_cast<char*>(found), count, sizeof(T), sizeof(T));
        flags |= std::fetestexcept(FE_ALL_EXCEPT);
        for (npy_intp i = 0; i < count; i++) y[i] = is_left(x[i], y[i], far) ? found[i] : y[i];
    }
    std::feclearexcept(FE_ALL_EXCEPT);
    std::feraiseexcept(flags);
}

template <class T>
void replacing_loop(char** args, const npy_intp* dimensions, const npy_intp* steps, void* data) {
    const Replaced<T>& replaced = *static_cast<const Replaced<T>*>(data);
    const Block<T> compute = vector_bytes == 64 ? replaced.blocks.widest : vector_bytes == 32 ? replaced.blocks.wide : nullptr;
    const npy_intp n = dimensions[0];
    if (!compute) return replaced.run(args[0], args[1], n, steps[0], steps[1]);
    Source<T> from;
    T to[BLOCK];
    from.open(args[0], steps[0], n);
    const bool direct = steps[1] == sizeof(T), overwrites = args[0] == args[1] && direct && from.contiguous();
    const npy_intp block = direct && !overwrites && from.contiguous() ? n : BLOCK;
    for (npy_intp start = 0; start < n; start += block) {
        const npy_intp count = std::min(n - start, block);
        char* at = args[1] + start * steps[1];
        const T* x = from.elements(start, count);
        if (overwrites) std::copy_n(x, count, to), x = to;  // operands that are left to NumPy are read again
        T* y = direct ? reinterpret_cast<T*>(at) : to;
        const int flags = std::fetestexcept(FE_ALL_EXCEPT);
        if (compute(x, y, count) || std::fetestexcept(WARNED) & ~flags) leave_to_numpy(replaced, x, y, count, flags);
        if (!direct) scatter(to, count, at, steps[1]);
    }
}

template <class T>
bool replace(const Blocks<T>& blocks, PyUFuncGenericFunction& function, void*& data) {
    if (!blocks.wide) return false;
    data = new Replaced<T>{function, data, blocks};
    function = replacing_loop<T>;
    return true;
}

}  // namespace

bool replace_loop(const char* name, const char* types, PyUFuncGenericFunction& function, void*& data) {
    for (const Functions& own : functions) {
        if (std::strcmp(own.name, name)) continue;
        if (types[0] == NPY_FLOAT && types[1] == NPY_FLOAT) return replace(own.single, function, data);
        if (types[0] == NPY_DOUBLE && types[1] == NPY_DOUBLE) return replace(own.twice, function, data);
    }
    return false;
}

}  // namespace retrograd
