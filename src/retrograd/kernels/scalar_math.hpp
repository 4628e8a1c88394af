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
    float p = 1.0f / 5040;
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    return p * r + 0.5f;
}
INLINE double exp_rest(double r) {
    double p = 1.0 / 6227020800;
    p = p * r + 1.0 / 479001600;
    p = p * r + 1.0 / 39916800;
    p = p * r + 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    return p * r + 0.5;
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
    float p = 2.0f / 11;
    p = p * z + 2.0f / 9;
    p = p * z + 2.0f / 7;
    p = p * z + 2.0f / 5;
    return p * z + 2.0f / 3;
}
INLINE double artanh_rest(double z) {
    double p = 2.0 / 21;
    p = p * z + 2.0 / 19;
    p = p * z + 2.0 / 17;
    p = p * z + 2.0 / 15;
    p = p * z + 2.0 / 13;
    p = p * z + 2.0 / 11;
    p = p * z + 2.0 / 9;
    p = p * z + 2.0 / 7;
    p = p * z + 2.0 / 5;
    return p * z + 2.0 / 3;
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
    float p = 1.0f / 15;
    p = p * z + 1.0f / 13;
    p = p * z + 1.0f / 11;
    p = p * z + 1.0f / 9;
    p = p * z + 1.0f / 7;
    p = p * z + 1.0f / 5;
    p = p * z + 1.0f / 3;
    return 2.0f * (s + s * z * p);
}
INLINE double log1p_of_unit(double e) {
    double s = e / (2.0 + e), z = s * s;
    double p = 1.0 / 33;
    p = p * z + 1.0 / 31;
    p = p * z + 1.0 / 29;
    p = p * z + 1.0 / 27;
    p = p * z + 1.0 / 25;
    p = p * z + 1.0 / 23;
    p = p * z + 1.0 / 21;
    p = p * z + 1.0 / 19;
    p = p * z + 1.0 / 17;
    p = p * z + 1.0 / 15;
    p = p * z + 1.0 / 13;
    p = p * z + 1.0 / 11;
    p = p * z + 1.0 / 9;
    p = p * z + 1.0 / 7;
    p = p * z + 1.0 / 5;
    p = p * z + 1.0 / 3;
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
    float above = 2.0117344511229603e-06f;
    above = above * z + 2.8760165552651037e-04f;
    above = above * z + 3.917361155784924e-03f;
    above = above * z + 5.3207189619104e-02f;
    above = above * z + 1.9403669602557594e-01f;
    above = above * z + 1.1283790060995655f;
    float below = 3.7839682456963244e-05f;
    below = below * z + 1.1982115627276156e-03f;
    below = below * z + 1.5270787025490024e-02f;
    below = below * z + 1.1559116622713242e-01f;
    below = below * z + 5.052920314920322e-01f;
    below = below * z + 1.0f;
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
    double near_above = 1.85777706184603153e-1, near_below = 1.0, above = 2.15311535474403846e-8, below = 1.0;
    near_above = near_above * z + 3.16112374387056560e0, near_below = near_below * z + 2.36012909523441209e1;
    near_above = near_above * z + 1.13864154151050156e2, near_below = near_below * z + 2.44024637934444173e2;
    near_above = near_above * z + 3.77485237685302021e2, near_below = near_below * z + 1.28261652607737228e3;
    near_above = near_above * z + 3.20937758913846947e3, near_below = near_below * z + 2.84423683343917062e3;
    above = above * y + 5.64188496988670089e-1, below = below * y + 1.57449261107098347e1;
    above = above * y + 8.88314979438837594e0, below = below * y + 1.17693950891312499e2;
    above = above * y + 6.61191906371416295e1, below = below * y + 5.37181101862009858e2;
    above = above * y + 2.98635138197400131e2, below = below * y + 1.62138957456669019e3;
    above = above * y + 8.81952221241769090e2, below = below * y + 3.29079923573345963e3;
    above = above * y + 1.71204761263407058e3, below = below * y + 4.36261909014324716e3;
    above = above * y + 2.05107837782607147e3, below = below * y + 3.43936767414372164e3;
    above = above * y + 1.23033935479799725e3, below = below * y + 1.23033935480374942e3;
    bool near = y <= 0.46875;
    double ratio = (near ? near_above : above) / (near ? near_below : below);
    return std::copysign(near ? y * ratio : 1.0 - exp_of_negative(-z) * ratio, x);
}

// exp(y^2) erfc(y) (1 + 2 y) in t = (y - 4) / (y + 4), for y from 0 to where erfc rounds to 0: the polynomials of
// erf_reference.py.
INLINE float erfc_rest(float t) {
    float p = -6.50640053e-04f;
    p = p * t - 1.16256170e-03f;
    p = p * t + 5.02082659e-03f;
    p = p * t - 1.60219427e-02f;
    p = p * t + 3.72333750e-02f;
    p = p * t - 6.63520321e-02f;
    p = p * t + 9.37195048e-02f;
    p = p * t - 1.01038359e-01f;
    p = p * t + 6.80979416e-02f;
    p = p * t + 1.53796589e-02f;
    p = p * t - 1.39621139e-01f;
    return p * t + 1.23299515f;
}
INLINE double erfc_rest(double t) {
    double p = -1.907388627007971e-09;
    p = p * t - 1.3952812123042382e-08;
    p = p * t - 7.796210935750394e-09;
    p = p * t + 1.1597564919712835e-07;
    p = p * t + 6.326381936013846e-08;
    p = p * t - 8.356886054802244e-07;
    p = p * t + 3.006053020270926e-07;
    p = p * t + 5.718067004785881e-06;
    p = p * t - 1.1224293594679385e-05;
    p = p * t - 2.4403160497192634e-05;
    p = p * t + 1.506220523230599e-04;
    p = p * t - 1.9925553476007838e-04;
    p = p * t - 7.577732963739462e-04;
    p = p * t + 5.031969765051122e-03;
    p = p * t - 1.6197734065502876e-02;
    p = p * t + 3.716751556105671e-02;
    p = p * t - 6.63303658110103e-02;
    p = p * t + 9.373283499690535e-02;
    p = p * t - 1.0103906603637362e-01;
    p = p * t + 6.80970542547337e-02;
    p = p * t + 1.5379652102621091e-02;
    p = p * t - 1.3962111684056286e-01;
    return p * t + 1.2329951186255526;
}

// exp(-y^2) for 0 <= y.  y^2 has twice the digits of y: those that its rounding loses are computed from halves of y.
template <class T>
INLINE T exp_of_negative_square(T y) {
    typename Format<T>::Bits bits;
    T high;
    std::memcpy(&bits, &y, sizeof bits);
    bits &= ~((typename Format<T>::Bits(1) << (Format<T>::mantissa + 2) / 2) - 1);
    std::memcpy(&high, &bits, sizeof bits);
    T low = y - high, square = y * y;
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
    uint32_t bits;
    std::memcpy(&bits, &u, sizeof bits);
    const float exponent = float(int32_t(bits >> Format<float>::mantissa) - Format<float>::bias);
    bits = (bits & 0x7fffffu) | 0x3f800000u;
    std::memcpy(&u, &bits, sizeof bits);
    return exponent * 0.69314718056f + log1p_of_unit(u - 1.0f);
}

// The inverse of erf over x, in w = -log(1 - x^2), as M. Giles, Approximating the erfinv function (2010), does it: by the
// polynomials of erf_reference.py.
INLINE float erfinv_of(float x) {
    const float w = -log_of_unit((1.0f - x) * (1.0f + x));
    const float a = w - 2.5f, b = std::sqrt(w) - 3.0f;
    float near = -8.93192597e-09f;
    near = near * a + 2.33359672e-08f;
    near = near * a + 4.68131348e-07f;
    near = near * a - 3.46398527e-06f;
    near = near * a - 4.97241969e-06f;
    near = near * a + 2.18349386e-04f;
    near = near * a - 1.25272639e-03f;
    near = near * a - 4.17739288e-03f;
    near = near * a + 2.46640279e-01f;
    near = near * a + 1.50140936f;
    float far = 1.07486614e-04f;
    far = far * b - 3.01109982e-04f;
    far = far * b - 4.50347701e-05f;
    far = far * b + 1.47413078e-03f;
    far = far * b - 3.60351697e-03f;
    far = far * b + 5.69140795e-03f;
    far = far * b - 7.63596258e-03f;
    far = far * b + 9.44472151e-03f;
    far = far * b + 1.00167488f;
    far = far * b + 2.83297681f;
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
