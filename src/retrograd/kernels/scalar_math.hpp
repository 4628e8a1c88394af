// Functions of one value, without branches, so that the compiler vectorizes the loops that call them.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#if defined(__GNUC__)
#define INLINE inline __attribute__((always_inline))
#else
#define INLINE inline
#endif

namespace retrograd {

template <class T>
struct Format;

// Constants of the floating formats, and where exp and erfc round to 0.  Adding `shift` rounds to an integer, which the
// last bits then hold; log(2) is in two parts, of which the first times an integer is exact.  The last constants are the bits
// of 1, of sqrt(1/2) and of `shift`.
template <>
struct Format<float> {
    using Bits = uint32_t;
    static constexpr int mantissa = 23, bias = 127;
    static constexpr float shift = 12582912.0f, lowest = -104.0f;
    static constexpr float log2_first = 0.693359375f, log2_rest = -2.12194440e-4f, far = 14.5f, erfc_end = 10.5f;
    static constexpr Bits one_bits = 0x3f800000, root_bits = 0x3f3504f3, shift_bits = 0x4b400000;
};
template <>
struct Format<double> {
    using Bits = uint64_t;
    static constexpr int mantissa = 52, bias = 1023;
    static constexpr double shift = 6755399441055744.0, lowest = -746.0;
    static constexpr double log2_first = 6.93147180369123816490e-01, log2_rest = 1.90821492927058770002e-10;
    static constexpr double far = 39.0, erfc_end = 27.5;
    static constexpr Bits one_bits = 0x3ff0000000000000, root_bits = 0x3fe6a09e667f3bcd, shift_bits = 0x4338000000000000;
};

template <class T>
INLINE T from_bits(typename Format<T>::Bits bits) {
    T number;
    std::memcpy(&number, &bits, sizeof bits);
    return number;
}
template <class T>
INLINE typename Format<T>::Bits bits_of(T number) {
    typename Format<T>::Bits bits;
    std::memcpy(&bits, &number, sizeof bits);
    return bits;
}

// The sum of c[k] x^k.  Pairs of terms are added at the same time: one term after another, each sum would wait for the one
// before, which takes 1.1 times as long in a sigmoid of float32, and 1.3 in float64.
template <class T, std::size_t n>
INLINE T polynomial(T x, const T (&c)[n]) {
    if constexpr (n == 1) {
        return c[0];
    } else if constexpr (n == 3) {
        return c[0] + x * (c[1] + x * c[2]);  // as fast as in pairs, with a product less
    } else {
        T pairs[(n + 1) / 2];
        for (std::size_t k = 0; k < n / 2; k++) pairs[k] = c[2 * k] + x * c[2 * k + 1];
        if constexpr (n % 2) pairs[n / 2] = c[n - 1];
        return polynomial<T, (n + 1) / 2>(x * x, pairs);
    }
}

// Clamps x to [low, high]; NaN stays NaN.
template <class T>
INLINE T clamp(T x, T low, T high) {
    x = x < low ? low : x;
    return x > high ? high : x;
}

// 2^(k + more) for integers k and `more`, within the range of exponents; given k + shift.
template <class T>
INLINE T power_of_two(T moved, int more = 0) {
    return from_bits<T>((bits_of(moved) + (Format<T>::bias + more)) << Format<T>::mantissa);
}

// (exp(r) - 1 - r) / r^2 for |r| <= log(2) / 2, by the Taylor series.
INLINE float exp_rest(float r) {
    return polynomial<float>(r, {0.5f, 1.0f / 6, 1.0f / 24, 1.0f / 120, 1.0f / 720, 1.0f / 5040});
}
INLINE double exp_rest(double r) {
    return polynomial<double>(r, {0.5, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880,
        1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800});
}

// z = k log(2) + r, with an integer k and small r; returns k + shift.
template <class T>
INLINE T split(T z, T& r) {
    T moved = z * T(1.44269504088896340736) + Format<T>::shift, k = moved - Format<T>::shift;
    r = z - k * Format<T>::log2_first;
    r -= k * Format<T>::log2_rest;
    return moved;
}

// exp(z) for z <= 0.  2^k may be subnormal: so 2^(k + 64) is multiplied first, and the last product alone rounds.
template <class T>
INLINE T exp_of_negative(T z) {
    T r, moved = split(z < Format<T>::lowest ? Format<T>::lowest : z, r);
    return (T(1) + (r + r * r * exp_rest(r))) * power_of_two(moved, 64) * T(0x1p-64);
}

// (2 artanh(s) / s - 2) / s^2 in s^2 for |s| <= 0.172, by the series.
INLINE float artanh_rest(float z) {
    return polynomial<float>(z, {2.0f / 3, 2.0f / 5, 2.0f / 7, 2.0f / 9, 2.0f / 11});
}
INLINE double artanh_rest(double z) {
    return polynomial<double>(z, {2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19,
        2.0 / 21});
}

// y = 2^k (1 + f) with 1 + f from sqrt(1/2) to sqrt(2), for normal y > 0.
template <class T>
INLINE T fraction_of(T y, T& k) {
    const typename Format<T>::Bits from = bits_of(y) + (Format<T>::one_bits - Format<T>::root_bits);
    k = from_bits<T>(Format<T>::shift_bits + (from >> Format<T>::mantissa)) - (Format<T>::shift + Format<T>::bias);
    return from_bits<T>((from & ((typename Format<T>::Bits(1) << Format<T>::mantissa) - 1)) + Format<T>::root_bits) - T(1);
}

// log(1 + f) + rest, with the parts of the sum in an order that loses few digits: f - (f^2 / 2 - s (f^2 / 2 + ...)) with
// s = f / (2 + f), as in W. Kahan's and K. C. Ng's log.
template <class T>
INLINE T log_sum(T f, T rest = T(0)) {
    const T s = f / (T(2) + f), z = s * s, half = T(0.5) * f * f;
    return f - (half - (s * (half + z * artanh_rest(z)) + rest));
}

// log(x) of a normal number x > 0.
template <class T>
INLINE T log_of_normal(T x) {
    T k, f = fraction_of(x, k);
    return k * Format<T>::log2_first + log_sum(f, k * Format<T>::log2_rest);
}

// log(1 + e) for 0 <= e <= 1: twice the inverse hyperbolic tangent of s = e / (2 + e), at most 1/3, by its series.
INLINE float log1p_of_unit(float e) {
    float s = e / (2.0f + e), z = s * s;
    const float p = polynomial<float>(z, {1.0f / 3, 1.0f / 5, 1.0f / 7, 1.0f / 9, 1.0f / 11, 1.0f / 13, 1.0f / 15});
    return 2.0f * (s + s * z * p);
}
INLINE double log1p_of_unit(double e) {
    double s = e / (2.0 + e), z = s * s;
    const double p = polynomial<double>(z, {1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17,
        1.0 / 19, 1.0 / 21, 1.0 / 23, 1.0 / 25, 1.0 / 27, 1.0 / 29, 1.0 / 31, 1.0 / 33});
    return 2.0 * (s + s * z * p);
}

// 1 / (1 + exp(-x)), and 1 minus that without cancellation.
template <class T>
INLINE T sigmoid_of(T x, T& other) {
    T e = exp_of_negative(-std::fabs(x)), near = T(1) / (T(1) + e), rest = e * near;  // one division: it takes longest
    other = x >= T(0) ? rest : near;
    return x >= T(0) ? near : rest;
}
template <class T>
INLINE T sigmoid_of(T x) {
    T e = exp_of_negative(-std::fabs(x));
    return (x >= T(0) ? T(1) : e) / (T(1) + e);
}

// exp(z) - 1 for z <= 0, accurate near 0.
template <class T>
INLINE T expm1_of_negative(T z) {
    T r, scale = power_of_two(split(z < T(-80) ? T(-80) : z, r));  // -80: -1 in all digits
    return (scale - T(1)) + scale * (r + r * r * exp_rest(r));
}

// With e = exp(-2 |x|) - 1, the hyperbolic tangent of |x| is -e / (e + 2).
template <class T>
INLINE T tanh_of(T x) {
    T e = expm1_of_negative(T(-2) * std::fabs(x));
    return std::copysign(-e / (e + T(2)), x);
}

// a (exp(steep x) - 1) for x <= 0, else x, times scale, and its derivative: scale at NaN, as in PyTorch.
template <class T>
INLINE T elu_of(T x, T a, T scale, T steep) {
    return scale * (x <= T(0) ? a * expm1_of_negative(x <= T(0) ? x * steep : T(0)) : x);
}
template <class T>
INLINE T elu_slope_of(T x, T a, T scale, T steep) {
    return scale * (x <= T(0) ? a * steep * exp_of_negative(x <= T(0) ? x * steep : T(0)) : T(1));
}

template <class T>
INLINE T silu_of(T x) {
    return x * sigmoid_of(x);
}
template <class T>
INLINE T silu_slope_of(T x) {
    T other, s = sigmoid_of(x, other);
    return s * (T(1) + x * other);
}

template <class T>
INLINE T softplus_of(T x, T beta, T threshold) {
    T z = x * beta, above = z > T(0) ? z : T(0);
    T smooth = (log1p_of_unit(exp_of_negative(-std::fabs(z))) + above) / beta + T(0);  // no -0.0 if beta is negative
    return z > threshold ? x : smooth;
}

// d^2 / 2 up to delta and delta (d - delta / 2) beyond, divided by a number, for d >= 0.
template <class T>
INLINE T huber_of(T d, T delta, T divisor) {
    T m = d > delta ? delta : d;
    return m / divisor * (d - m * T(0.5));
}

// --------------------------------------------------------------------- rests of divisions with an integral quotient

// Whether `fast_rest` is std::fmod(a, b): the quotient is so small that its integral part is exact or one too much.
template <class T>
INLINE bool has_fast_rest(T a, T b) {
    constexpr T most = T(uint64_t(1) << (Format<T>::mantissa - 1));
    return !(std::fabs(a / b) >= most) & !(std::fabs(b) > std::numeric_limits<T>::max());
}
// The product with the quotient's integral part and the difference are exact, with one rounding for both.
template <class T>
INLINE T fast_rest(T a, T b) {
    T rest = std::fma(-std::trunc(a / b), b, a), next = rest + std::copysign(b, a);
    bool too_much = a < T(0) ? rest > T(0) : rest < T(0);
    return std::copysign(too_much ? next : rest, a);
}

// Replaces the rests of divisions for which `fast_rest` does not serve.
template <class T>
void find_rests(const T* a, const T* b, T* rests, std::ptrdiff_t n) {
    for (std::ptrdiff_t i = 0; i < n; i++)
        if (!has_fast_rest(a[i], b[i])) rests[i] = std::fmod(a[i], b[i]);
}

// The rest with the sign of b, and the quotient rounded down, by which NumPy's functions are defined.
template <class T>
INLINE T remainder_of(T a, T b, T rest) {
    T signed_zero = b == T(0) ? rest : std::copysign(T(0), b);  // NaN without a divisor
    T moved = (b < T(0)) != (rest < T(0)) ? rest + b : rest;
    return rest == T(0) ? signed_zero : moved;
}
template <class T>
INLINE T floor_quotient_of(T a, T b, T rest) {
    T quotient = a / b, whole = (a - rest) / b;
    whole = rest != T(0) && (b < T(0)) != (rest < T(0)) ? whole - T(1) : whole;
    T down = std::floor(whole);
    down = whole - down > T(0.5) ? down + T(1) : down;
    down = whole == T(0) ? std::copysign(T(0), quotient) : down;
    return b == T(0) ? quotient : down;
}

// ------------------------------------------------------------------------------------- the normal distribution

// The rational function of erf_reference.py.
INLINE float erf_of(float x) {
    float y = clamp(x, -3.95f, 3.95f), z = y * y;
    const float above = polynomial<float>(z, {1.1283790060995655f, 1.9403669602557594e-01f, 5.3207189619104e-02f,
        3.917361155784924e-03f, 2.8760165552651037e-04f, 2.0117344511229603e-06f});
    const float below = polynomial<float>(z, {1.0f, 5.052920314920322e-01f, 1.1559116622713242e-01f, 1.5270787025490024e-02f,
        1.1982115627276156e-03f, 3.7839682456963244e-05f});
    // Compilers compute the values at the ends themselves, and not all of them find 1.
    float found = clamp(y * (above / below), -1.0f, 1.0f);
    found = x >= 3.95f ? 1.0f : found;
    return x <= -3.95f ? -1.0f : found;
}
// n / d for |x| <= 0.46875 and erfc(y) = exp(-y^2) n / d above, both by the rational functions of erf_reference.py (Cody
// 1969).
// The second one serves beyond 4 too: erfc(4) is 1.5e-8, so that few of its digits are left in 1 - erfc(y).
INLINE double erf_of(double x) {
    double y = std::fabs(x);
    y = y > 6.0 ? 6.0 : y;  // where erf rounds to 1
    double z = y * y;
    const double near_above = polynomial<double>(z, {3.20937758913846947e3, 3.77485237685302021e2, 1.13864154151050156e2,
        3.16112374387056560e0, 1.85777706184603153e-1});
    const double near_below = polynomial<double>(z, {2.84423683343917062e3, 1.28261652607737228e3, 2.44024637934444173e2,
        2.36012909523441209e1, 1.0});
    const double above = polynomial<double>(y, {1.23033935479799725e3, 2.05107837782607147e3, 1.71204761263407058e3,
        8.81952221241769090e2, 2.98635138197400131e2, 6.61191906371416295e1, 8.88314979438837594e0, 5.64188496988670089e-1,
        2.15311535474403846e-8});
    const double below = polynomial<double>(y, {1.23033935480374942e3, 3.43936767414372164e3, 4.36261909014324716e3,
        3.29079923573345963e3, 1.62138957456669019e3, 5.37181101862009858e2, 1.17693950891312499e2, 1.57449261107098347e1, 1.0});
    bool near = y <= 0.46875;
    double ratio = (near ? near_above : above) / (near ? near_below : below);
    return std::copysign(near ? y * ratio : 1.0 - exp_of_negative(-z) * ratio, x);
}

// exp(y^2) erfc(y) (1 + 2 y) in t = (y - 4) / (y + 4), for y from 0 to where erfc rounds to 0: the polynomials of
// erf_reference.py.
INLINE float erfc_rest(float t) {
    return polynomial<float>(t, {1.23299515f, -1.39621139e-01f, 1.53796589e-02f, 6.80979416e-02f, -1.01038359e-01f,
        9.37195048e-02f, -6.63520321e-02f, 3.72333750e-02f, -1.60219427e-02f, 5.02082659e-03f, -1.16256170e-03f,
        -6.50640053e-04f});
}
INLINE double erfc_rest(double t) {
    return polynomial<double>(t, {1.2329951186255526, -1.3962111684056286e-01, 1.5379652102621091e-02, 6.80970542547337e-02,
        -1.0103906603637362e-01, 9.373283499690535e-02, -6.63303658110103e-02, 3.716751556105671e-02, -1.6197734065502876e-02,
        5.031969765051122e-03, -7.577732963739462e-04, -1.9925553476007838e-04, 1.506220523230599e-04,
        -2.4403160497192634e-05, -1.1224293594679385e-05, 5.718067004785881e-06, 3.006053020270926e-07,
        -8.356886054802244e-07, 6.326381936013846e-08, 1.1597564919712835e-07, -7.796210935750394e-09,
        -1.3952812123042382e-08, -1.907388627007971e-09});
}

// exp(-y^2) for 0 <= y.  y^2 has twice the digits of y: those that its rounding loses are computed from halves of y.
template <class T>
INLINE T exp_of_negative_square(T y) {
    constexpr typename Format<T>::Bits lower = (typename Format<T>::Bits(1) << (Format<T>::mantissa + 2) / 2) - 1;
    T high = from_bits<T>(bits_of(y) & ~lower), low = y - high, square = y * y;
    T lost = ((high * high - square) + T(2) * high * low) + low * low;
    return exp_of_negative(-square) * (T(1) - lost);
}

template <class T>
INLINE T erfc_of(T x) {
    T y = std::fabs(x);
    y = y > Format<T>::erfc_end ? Format<T>::erfc_end : y;
    T found = exp_of_negative_square(y) * (erfc_rest((y - T(4)) / (y + T(4))) / (T(1) + T(2) * y));
    return x < T(0) ? T(2) - found : found;
}

// log(u) for 0 < u <= 1, not subnormal.
INLINE float log_of_unit(float u) {
    const uint32_t bits = bits_of(u);
    const float exponent = float(int32_t(bits >> Format<float>::mantissa) - Format<float>::bias);
    const float fraction = from_bits<float>((bits & 0x7fffffu) | Format<float>::one_bits);
    return exponent * 0.69314718056f + log1p_of_unit(fraction - 1.0f);
}

// The inverse of erf over x, in w = -log(1 - x^2), as M. Giles, Approximating the erfinv function (2010), does it: by the
// polynomials of erf_reference.py.
INLINE float erfinv_of(float x) {
    const float w = -log_of_unit((1.0f - x) * (1.0f + x));
    const float a = w - 2.5f, b = std::sqrt(w) - 3.0f;
    const float near = polynomial<float>(a, {1.50140936f, 2.46640279e-01f, -4.17739288e-03f, -1.25272639e-03f,
        2.18349386e-04f, -4.97241969e-06f, -3.46398527e-06f, 4.68131348e-07f, 2.33359672e-08f, -8.93192597e-09f});
    const float far = polynomial<float>(b, {2.83297681f, 1.00167488f, 9.44472151e-03f, -7.63596258e-03f, 5.69140795e-03f,
        -3.60351697e-03f, 1.47413078e-03f, -4.50347701e-05f, -3.01109982e-04f, 1.07486614e-04f});
    const float found = x * (w < 5.0f ? near : far), size = std::fabs(x);
    const float end = size == 1.0f ? std::copysign(std::numeric_limits<float>::infinity(), x)
                                   : std::numeric_limits<float>::quiet_NaN();
    return size < 1.0f ? found : end;
}

template <class T>
INLINE T normal_of(T x) {
    return T(0.5) * (T(1) + erf_of(x * T(0.70710678118654752440)));
}
template <class T>
INLINE T gelu_of(T x) {
    return x * normal_of(x);
}
// The normal distribution function, and x times its density, which rounds to 0 from `far` on, at infinity too.
template <class T>
INLINE T gelu_slope_of(T x) {
    T y = clamp(x, -Format<T>::far, Format<T>::far);
    return normal_of(x) + y * T(0.39894228040143267794) * exp_of_negative(T(-0.5) * y * y);
}

// With u = sqrt(2 / pi) (x + 0.044715 x^3), (1 + tanh(u)) / 2 is the sigmoid of 2 u.
template <class T>
INLINE T gelu_tanh_of(T x) {
    return x * sigmoid_of(T(1.5957691216057307117) * (x + T(0.044715) * x * x * x));
}
template <class T>
INLINE T gelu_tanh_slope_of(T x) {
    T y = clamp(x, -Format<T>::far, Format<T>::far), square = y * y;
    T other, s = sigmoid_of(T(1.5957691216057307117) * (y + T(0.044715) * square * y), other);
    T slope = s + y * s * other * (T(1.5957691216057307117) * (T(1) + T(3 * 0.044715) * square));
    return slope + (x - x);  // NaN at infinity, as in PyTorch
}

}  // namespace retrograd
