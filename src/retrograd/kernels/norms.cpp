// Normalization of rows to mean 0 and variance 1, with weights and bias, forward and backward.

#include <algorithm>

#include "rows.hpp"
#include "registration.hpp"

namespace retrograd {
namespace {

// Computes the mean and variance of a row, and `count` - 2 more sums, in one pass: add(i, d, to) adds the terms for
// d = x[i] - shift to the sums 2, 3, ...  The shift is the first element.  If that is more than two standard deviations
// from the mean, which would lose digits, a second pass shifts by the mean.  Without `center` the mean is taken as 0.
template <class T, int count>
struct Moments {
    T mean, variance;
    double away, total[count];  // the mean minus the shift; the sums

    template <class F, int rows>
    INLINE Moments(const T* x, bool center, npy_intp n, Prefetch<T, rows> prefetch, F add) {
        T shift = center && n > 0 ? x[0] : T(0);
        for (bool first = center;; first = false) {
            const auto each = [=](npy_intp i, auto to) {
                T d = x[i] - shift;
                to(0) += d;
                to(1) += d * d;
                add(i, d, to);
            };
            const SumsOf<T, count> sums(n, each, prefetch);
            std::copy(sums.total, sums.total + count, total);
            const double square = total[1] / n;
            away = center ? total[0] / n : 0;
            mean = T(shift + away);
            variance = T(square - away * away);
            if (!first || !(5 * away * away > 4 * square)) break;
            shift = mean;
        }
        variance = variance < 0 ? T(0) : variance;
    }
};

template <class T>
INLINE Moments<T, 2> moments(const T* x, bool center, npy_intp n, const char* prefetch) {
    return Moments<T, 2>(x, center, n, Prefetch<T, 1>{{prefetch}}, [](npy_intp, T, auto) {});
}

template <class T>
INLINE void norm(const T* x, T mean, T scale, const T* weight, const T* bias, T* out, npy_intp n) {
    IN_ANY_ORDER
    for (npy_intp i = 0; i < n; i++) out[i] = (x[i] - mean) * scale * weight[i] + bias[i];
}

LOOP(norm_rows) {
    npy_intp n = dimensions[1];
    Reader<T> read(steps[6], n), weight(steps[7], n), bias(steps[8], n);
    Writer<T> write(steps[9], n);
    for (npy_intp i = 0; i < dimensions[0]; i++) {
        const T* x = read.at(ROW_PTR(0));
        const Moments<T, 2> of = moments(x, number<T>(ROW_PTR(4)) != 0, n, PREFETCH_PTR(0));
        const T scale = 1 / std::sqrt(of.variance + number<T>(ROW_PTR(3)));
        norm(x, of.mean, scale, weight.at(ROW_PTR(1)), bias.at(ROW_PTR(2)), write.at(ROW_PTR(5)), n);
        write.finish();
    }
}
LOOP(standardize_rows) {
    npy_intp n = dimensions[1];
    Reader<T> read(steps[5], n);
    Writer<T> write(steps[6], n);
    for (npy_intp i = 0; i < dimensions[0]; i++) {
        const T* x = read.at(ROW_PTR(0));
        T* out = write.at(ROW_PTR(2));
        const Moments<T, 2> of = moments(x, true, n, PREFETCH_PTR(0));
        const T mean = of.mean, scale = 1 / std::sqrt(of.variance + number<T>(ROW_PTR(1)));
        IN_ANY_ORDER
        for (npy_intp j = 0; j < n; j++) out[j] = (x[j] - mean) * scale;
        *reinterpret_cast<T*>(ROW_PTR(3)) = mean;
        *reinterpret_cast<T*>(ROW_PTR(4)) = of.variance;
        write.finish();
    }
}
LOOP(affine_rows) {
    npy_intp n = dimensions[1];
    Reader<T> first(steps[4], n), second(steps[5], n), third(steps[6], n);
    Writer<T> write(steps[7], n);
    for (npy_intp i = 0; i < dimensions[0]; i++) {
        const T *x = first.at(ROW_PTR(0)), *weight = second.at(ROW_PTR(1)), *bias = third.at(ROW_PTR(2));
        T* out = write.at(ROW_PTR(3));
        IN_ANY_ORDER
        for (npy_intp j = 0; j < n; j++) out[j] = x[j] * weight[j] + bias[j];
        write.finish();
    }
}


// ------------------------------------------------------------------------------------ backward, summed by columns

// With y = (x - mean) scale and h = g weight: out = scale (h - mean(h) - y mean(h y)); adds to the sums of g y and g.
template <class T>
INLINE void norm_grad(const T* g, const T* x, const T* weight, T eps, bool center, Prefetch<T, 2> prefetch, T* out, T* sums,
                      npy_intp n) {
    const Moments<T, 4> of(x, center, n, prefetch, [=](npy_intp i, T d, auto to) {
        T h = g[i] * weight[i];
        to(2) += h * d;
        to(3) += h;
    });
    const T mean = of.mean, scale = 1 / std::sqrt(of.variance + eps), shift = center ? T(of.total[3] / n) : T(0);
    const T slope = T((of.total[2] - of.away * of.total[3]) / n) * scale;
    T* sums_of_g = sums + n;
    IN_ANY_ORDER
    for (npy_intp i = 0; i < n; i++) {
        T y = (x[i] - mean) * scale;
        sums[i] += g[i] * y;
        sums_of_g[i] += g[i];
        out[i] = scale * (g[i] * weight[i] - shift - y * slope);
    }
}

template <class T>
struct NormGrad {
    char** args;
    const npy_intp* steps;  // strides of rows and within rows: of g, x, then that of the weight, of out, of both sums
    npy_intp n;
};

template <class T>
INLINE void norm_grad_of_block(const NormGrad<T>& of, npy_intp begin, npy_intp end, double* totals) {
    char** args = of.args;
    const npy_intp *core = of.steps, n = of.n;
    Reader<T> read_g(core[1], n), read_x(core[3], n), read_weight(core[4], n);
    Writer<T> write(core[6], n);
    const T *weight = read_weight.at(args[2]), eps = number<T>(args[3]);
    bool center = number<T>(args[4]) != 0;
    std::unique_ptr<T[]> sums(new T[2 * n]);
    for (npy_intp i = begin; i < end;) {
        std::fill(sums.get(), sums.get() + 2 * n, T(0));
        for (npy_intp last = end - i < GROUP ? end : i + GROUP; i < last; i++) {
            const char *g = args[0] + i * core[0], *x = args[1] + i * core[2];
            const Prefetch<T, 2> prefetch{{g + 2 * core[0], x + 2 * core[2]}};
            T* out = write.at(args[5] + i * core[5]);
            norm_grad(read_g.at(g), read_x.at(x), weight, eps, center, prefetch, out, sums.get(), n);
            write.finish();
        }
        for (npy_intp k = 0; k < 2 * n; k++) totals[k] += sums[k];
    }
}

template <class T>
void norm_grad_of_one(char** args, npy_intp m, npy_intp n, const npy_intp* core) {
    NormGrad<T> of{args, core, n};
    const auto totals = sums_of_blocks(m, n, 2 * n, [&](npy_intp begin, npy_intp end, double* to) {
        cpu_dispatch<norm_grad_of_block<T>>(of, begin, end, to);
    });
    for (npy_intp i = 0; i < n; i++) {
        *reinterpret_cast<T*>(args[6] + i * core[7]) = T(totals[i]);
        *reinterpret_cast<T*>(args[7] + i * core[8]) = T(totals[n + i]);
    }
}

template <class T>
void norm_grad_rows(char** args, const npy_intp* dimensions, const npy_intp* steps, void*) {
    for (npy_intp k = 0; k < dimensions[0]; k++) {
        char* item[8];
        for (int j = 0; j < 8; j++) item[j] = args[j] + k * steps[j];
        norm_grad_of_one<T>(item, dimensions[1], dimensions[2], steps + 8);
    }
    std::feclearexcept(FE_ALL_EXCEPT);
}

const Kernel kernels[] = {
    ROW(standardize_rows, 5, "TTTTT", 2, "(n),()->(n),(),()"),
    ROW(affine_rows, 4, "TTTT", 3, "(n),(n),(n)->(n)"),
    ROW(norm_rows, 6, "TTTTTT", 5, "(n),(n),(n),(),()->(n)"),
    {"norm_grad_rows", {norm_grad_rows<float>, norm_grad_rows<double>}, "TTTTTTTT", 5,
     "(m,n),(m,n),(n),(),()->(m,n),(n),(n)"},
};

}  // namespace

const Part part_norms{kernels};

}  // namespace retrograd
