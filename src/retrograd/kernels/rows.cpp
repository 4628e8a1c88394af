// Functions of rows: what NumPy makes of a matrix in several passes over memory takes several passes over a row here,
// which the nearest cache holds.

#include <algorithm>
#include <memory>

#include "loops.hpp"
#include "sums.hpp"
#include "tables.hpp"

namespace retrograd {
namespace {

// ---------------------------------------------------------------------------------------------- rows in memory

// A row without gaps to read: where it lies, or a copy if its numbers lie apart.
template <class T>
class Reader {
public:
    explicit Reader(npy_intp step, npy_intp n) : step(step), n(n), copy(step == sizeof(T) ? nullptr : new T[n]) {}
    const T* at(const char* place) {
        if (!copy) return reinterpret_cast<const T*>(place);
        for (npy_intp i = 0; i < n; i++) copy[i] = *reinterpret_cast<const T*>(place + i * step);
        return copy.get();
    }

private:
    npy_intp step, n;
    std::unique_ptr<T[]> copy;
};

// A row without gaps to write to, which `finish` puts into its place.
template <class T>
class Writer {
public:
    explicit Writer(npy_intp step, npy_intp n) : step(step), n(n), copy(step == sizeof(T) ? nullptr : new T[n]) {}
    T* at(char* where) {
        place = where;
        return copy ? copy.get() : reinterpret_cast<T*>(place);
    }
    void finish() {
        if (!copy) return;
        for (npy_intp i = 0; i < n; i++) *reinterpret_cast<T*>(place + i * step) = copy[i];
    }

private:
    npy_intp step, n;
    char* place = nullptr;
    std::unique_ptr<T[]> copy;
};

template <class T>
T number(const char* place) {
    return *reinterpret_cast<const T*>(place);
}

// ---------------------------------------------------------------------------------------------- of one row

template <class T>
INLINE void softmax(const T* x, T* out, npy_intp n) {
    T scale = T(1 / exponentials(x, largest(x, n), out, n));
    for (npy_intp i = 0; i < n; i++) out[i] *= scale;
}

template <class T>
INLINE void log_softmax(const T* x, T* out, npy_intp n) {
    T top = largest(x, n), shift = T(std::log(sum_of_exponentials(x, top, n)));
    IN_ANY_ORDER
    for (npy_intp i = 0; i < n; i++) out[i] = (x[i] - top) - shift;
}

template <class T>
INLINE void softmax_grad(const T* g, const T* y, T* out, npy_intp n) {
    T level = T(summed<T>(n, [=](npy_intp i) { return g[i] * y[i]; }));
    IN_ANY_ORDER
    for (npy_intp i = 0; i < n; i++) out[i] = y[i] * (g[i] - level);
}

template <class T>
INLINE void log_softmax_grad(const T* g, const T* y, T* out, npy_intp n) {
    T total = T(summed<T>(n, [=](npy_intp i) { return g[i]; }));
    IN_ANY_ORDER
    for (npy_intp i = 0; i < n; i++) out[i] = g[i] - exp_of_negative(y[i]) * total;
}

template <class T>
INLINE T class_loss(const T* x, npy_int64 target, npy_intp n) {
    T top = largest(x, n);
    return T(std::log(sum_of_exponentials(x, top, n))) - (x[target] - top);
}

template <class T>
INLINE void class_grad(const T* x, npy_int64 target, T g, T* out, npy_intp n) {
    double total = exponentials(x, largest(x, n), out, n);
    T scale = T(1 / total);
    for (npy_intp i = 0; i < n; i++) out[i] *= scale;
    out[target] -= 1;
    for (npy_intp i = 0; i < n; i++) out[i] *= g;
}

// The mean, and 1 / sqrt(variance + eps); without `center` the mean counts as 0.
template <class T>
INLINE T moments(const T* x, T eps, bool center, T& mean, T& variance, npy_intp n) {
    T m = center ? T(summed<T>(n, [=](npy_intp i) { return x[i]; }) / n) : T(0);
    variance = T(summed<T>(n, [=](npy_intp i) { return (x[i] - m) * (x[i] - m); }) / n);
    mean = m;
    return 1 / std::sqrt(variance + eps);
}

template <class T>
INLINE void norm(const T* x, const T* weight, const T* bias, T eps, bool center, T* out, npy_intp n) {
    T mean, variance, scale = moments(x, eps, center, mean, variance, n);
    IN_ANY_ORDER
    for (npy_intp i = 0; i < n; i++) out[i] = (x[i] - mean) * scale * weight[i] + bias[i];
}

// With y = (x - mean) scale and h = g weight: out = scale (h - mean(h) - y mean(h y)); the sums of g y and g grow.
template <class T>
INLINE void norm_grad(const T* g, const T* x, const T* weight, T eps, bool center, T* out, T* sums, npy_intp n) {
    T mean, variance, scale = moments(x, eps, center, mean, variance, n);
    double along = 0, level = 0;
    for (npy_intp start = 0; start < n; start += PIECE) {  // two sums in one pass, each as in `summed`
        npy_intp end = n - start < PIECE ? n : start + PIECE, i = start;
        T some[LANES] = {}, all[LANES] = {}, rest = 0, rest_of_all = 0;
        for (; i + LANES <= end; i += LANES)
            for (npy_intp k = 0; k < LANES; k++) {
                T h = g[i + k] * weight[i + k];
                some[k] += h * (x[i + k] - mean);
                all[k] += h;
            }
        for (; i < end; i++) {
            rest += g[i] * weight[i] * (x[i] - mean);
            rest_of_all += g[i] * weight[i];
        }
        for (npy_intp k = 0; k < LANES; k++) {
            rest += some[k];
            rest_of_all += all[k];
        }
        along += rest;
        level += rest_of_all;
    }
    const T slope = T(along / n) * scale, shift = center ? T(level / n) : T(0);
    IN_ANY_ORDER
    for (npy_intp i = 0; i < n; i++) {
        T y = (x[i] - mean) * scale;
        sums[i] += g[i] * y;
        sums[n + i] += g[i];
        out[i] = scale * (g[i] * weight[i] - shift - y * slope);
    }
}

// -------------------------------------------------------------------------------------------- of every row

// `steps` has those from row to row first, one for each operand, then those in a row, one for each that has rows.
#define LOOP(name, T) FOR_PROCESSORS void name##_##T(char** args, const npy_intp* dimensions, const npy_intp* steps, void*)
#define PLACE(k) (args[k] + i * steps[k])

#define ONE_TO_ONE(name, T)                                          \
    LOOP(name##_rows, T) {                                           \
        npy_intp n = dimensions[1];                                  \
        Reader<T> read(steps[2], n);                                 \
        Writer<T> write(steps[3], n);                                \
        for (npy_intp i = 0; i < dimensions[0]; i++) {               \
            name(read.at(PLACE(0)), write.at(PLACE(1)), n);          \
            write.finish();                                          \
        }                                                            \
    }

#define TWO_TO_ONE(name, T)                                                          \
    LOOP(name##_rows, T) {                                                           \
        npy_intp n = dimensions[1];                                                  \
        Reader<T> first(steps[3], n), second(steps[4], n);                           \
        Writer<T> write(steps[5], n);                                                \
        for (npy_intp i = 0; i < dimensions[0]; i++) {                               \
            name(first.at(PLACE(0)), second.at(PLACE(1)), write.at(PLACE(2)), n);    \
            write.finish();                                                          \
        }                                                                            \
    }

#define OF_ROWS(T)                                                                                          \
    ONE_TO_ONE(softmax, T)                                                                                  \
    ONE_TO_ONE(log_softmax, T)                                                                              \
    TWO_TO_ONE(softmax_grad, T)                                                                             \
    TWO_TO_ONE(log_softmax_grad, T)                                                                         \
    LOOP(class_loss_rows, T) {                                                                              \
        npy_intp n = dimensions[1];                                                                         \
        Reader<T> read(steps[4], n);                                                                        \
        for (npy_intp i = 0; i < dimensions[0]; i++) {                                                      \
            npy_int64 target = number<npy_int64>(PLACE(1));                                                 \
            bool ignored = target == number<npy_int64>(PLACE(2));                                           \
            *reinterpret_cast<T*>(PLACE(3)) = ignored ? T(0) : class_loss(read.at(PLACE(0)), target, n);    \
        }                                                                                                   \
    }                                                                                                       \
    LOOP(class_grad_rows, T) {                                                                              \
        npy_intp n = dimensions[1];                                                                         \
        Reader<T> read(steps[5], n);                                                                        \
        Writer<T> write(steps[6], n);                                                                       \
        for (npy_intp i = 0; i < dimensions[0]; i++) {                                                      \
            npy_int64 target = number<npy_int64>(PLACE(1));                                                 \
            T* out = write.at(PLACE(4));                                                                    \
            if (target == number<npy_int64>(PLACE(2))) std::fill(out, out + n, T(0));                       \
            else class_grad(read.at(PLACE(0)), target, number<T>(PLACE(3)), out, n);                        \
            write.finish();                                                                                 \
        }                                                                                                   \
    }                                                                                                       \
    LOOP(norm_rows, T) {                                                                                    \
        npy_intp n = dimensions[1];                                                                         \
        Reader<T> read(steps[6], n), weight(steps[7], n), bias(steps[8], n);                                \
        Writer<T> write(steps[9], n);                                                                       \
        for (npy_intp i = 0; i < dimensions[0]; i++) {                                                      \
            norm(read.at(PLACE(0)), weight.at(PLACE(1)), bias.at(PLACE(2)), number<T>(PLACE(3)),            \
                 number<T>(PLACE(4)) != 0, write.at(PLACE(5)), n);                                          \
            write.finish();                                                                                 \
        }                                                                                                   \
    }                                                                                                       \
    LOOP(standardize_rows, T) {                                                                             \
        npy_intp n = dimensions[1];                                                                         \
        Reader<T> read(steps[5], n);                                                                        \
        Writer<T> write(steps[6], n);                                                                       \
        for (npy_intp i = 0; i < dimensions[0]; i++) {                                                      \
            const T* x = read.at(PLACE(0));                                                                 \
            T *out = write.at(PLACE(2)), mean, variance;                                                    \
            T scale = moments(x, number<T>(PLACE(1)), true, mean, variance, n);                             \
            IN_ANY_ORDER                                                                                    \
            for (npy_intp j = 0; j < n; j++) out[j] = (x[j] - mean) * scale;                                \
            *reinterpret_cast<T*>(PLACE(3)) = mean;                                                         \
            *reinterpret_cast<T*>(PLACE(4)) = variance;                                                     \
            write.finish();                                                                                 \
        }                                                                                                   \
    }                                                                                                       \
    LOOP(mix_rows, T) {                                                                                     \
        npy_intp n = dimensions[1];                                                                         \
        Reader<T> first(steps[6], n), second(steps[7], n);                                                  \
        Writer<T> write(steps[8], n);                                                                       \
        for (npy_intp i = 0; i < dimensions[0]; i++) {                                                      \
            const T *x = first.at(PLACE(0)), *y = second.at(PLACE(3));                                      \
            const T p = number<T>(PLACE(1)), q = number<T>(PLACE(2)), r = number<T>(PLACE(4));              \
            T* out = write.at(PLACE(5));                                                                    \
            IN_ANY_ORDER                                                                                    \
            for (npy_intp j = 0; j < n; j++) out[j] = x[j] * p + y[j] * r + q;                              \
            write.finish();                                                                                 \
        }                                                                                                   \
    }                                                                                                       \
    LOOP(affine_rows, T) {                                                                                  \
        npy_intp n = dimensions[1];                                                                         \
        Reader<T> first(steps[4], n), second(steps[5], n), third(steps[6], n);                              \
        Writer<T> write(steps[7], n);                                                                       \
        for (npy_intp i = 0; i < dimensions[0]; i++) {                                                      \
            const T *x = first.at(PLACE(0)), *weight = second.at(PLACE(1)), *bias = third.at(PLACE(2));     \
            T* out = write.at(PLACE(3));                                                                    \
            IN_ANY_ORDER                                                                                    \
            for (npy_intp j = 0; j < n; j++) out[j] = x[j] * weight[j] + bias[j];                           \
            write.finish();                                                                                 \
        }                                                                                                   \
    }

OF_ROWS(float)
OF_ROWS(double)

// ------------------------------------------------------------------------------------ of matrices, summed by columns

// The columns' sums must not depend on how many threads there are: rows are summed in blocks that are the same for any
// number of them, and within a block in groups, so that single precision does not add many numbers to a large one.
constexpr npy_intp BLOCKS = 16, GROUP = 32;

template <class T>
struct NormGrad {
    char** args;
    const npy_intp* steps;  // from row to row and in a row: of g, x, then that of the weight, of out, of both sums
    npy_intp n;
};

#define GRAD_OF_BLOCK(T)                                                                                          \
    FOR_PROCESSORS void norm_grad_of_block(const NormGrad<T>& of, npy_intp begin, npy_intp end, double* totals) { \
        char** args = of.args;                                                                                    \
        const npy_intp *core = of.steps, n = of.n;                                                                \
        Reader<T> read_g(core[1], n), read_x(core[3], n), read_weight(core[4], n);                                \
        Writer<T> write(core[6], n);                                                                              \
        const T *weight = read_weight.at(args[2]), eps = number<T>(args[3]);                                      \
        bool center = number<T>(args[4]) != 0;                                                                    \
        std::unique_ptr<T[]> sums(new T[2 * n]);                                                                  \
        for (npy_intp i = begin; i < end;) {                                                                      \
            std::fill(sums.get(), sums.get() + 2 * n, T(0));                                                      \
            for (npy_intp last = end - i < GROUP ? end : i + GROUP; i < last; i++) {                              \
                const T *g = read_g.at(args[0] + i * core[0]), *x = read_x.at(args[1] + i * core[2]);             \
                norm_grad(g, x, weight, eps, center, write.at(args[5] + i * core[5]), sums.get(), n);             \
                write.finish();                                                                                   \
            }                                                                                                     \
            for (npy_intp k = 0; k < 2 * n; k++) totals[k] += sums[k];                                            \
        }                                                                                                         \
    }
GRAD_OF_BLOCK(float)
GRAD_OF_BLOCK(double)

template <class T>
void norm_grad_of_one(char** args, npy_intp m, npy_intp n, const npy_intp* core) {
    npy_intp blocks = n > 0 ? m / (1 + ENOUGH / 4 / n) : 0;
    blocks = blocks < 1 ? 1 : blocks > BLOCKS ? BLOCKS : blocks;
    npy_intp size = (m + blocks - 1) / blocks;
    std::unique_ptr<double[]> totals(new double[2 * n * blocks]());
    NormGrad<T> of{args, core, n};
    share(blocks, blocks * size * n < 2 * ENOUGH ? blocks : 1, [&](npy_intp first, npy_intp last) {
        for (npy_intp b = first; b < last; b++)
            if (b * size < m) norm_grad_of_block(of, b * size, (b + 1) * size < m ? (b + 1) * size : m, &totals[2 * n * b]);
    });
    for (npy_intp i = 0; i < n; i++) {
        double of_weight = 0, of_bias = 0;
        for (npy_intp b = 0; b < blocks; b++) {
            of_weight += totals[2 * n * b + i];
            of_bias += totals[2 * n * b + n + i];
        }
        *reinterpret_cast<T*>(args[6] + i * core[7]) = T(of_weight);
        *reinterpret_cast<T*>(args[7] + i * core[8]) = T(of_bias);
    }
}

template <class T>
void norm_grad_rows(char** args, const npy_intp* dimensions, const npy_intp* steps, void*) {
    for (npy_intp k = 0; k < dimensions[0]; k++) {
        char* there[8];
        for (int j = 0; j < 8; j++) there[j] = args[j] + k * steps[j];
        norm_grad_of_one<T>(there, dimensions[1], dimensions[2], steps + 8);
    }
    std::feclearexcept(FE_ALL_EXCEPT);
}

#define ROW(name, operands, types, inputs, signature)                                                                \
    {                                                                                                                \
        #name, {shared<name##_float, operands, true>, shared<name##_double, operands, true>}, types, inputs, signature \
    }

}  // namespace

const Kernel of_rows[] = {
    ROW(standardize_rows, 5, "TTTTT", 2, "(n),()->(n),(),()"),
    ROW(mix_rows, 6, "TTTTTT", 5, "(n),(),(),(n),()->(n)"),
    ROW(affine_rows, 4, "TTTT", 3, "(n),(n),(n)->(n)"),
    ROW(softmax_rows, 2, "TT", 1, "(n)->(n)"),
    ROW(log_softmax_rows, 2, "TT", 1, "(n)->(n)"),
    ROW(softmax_grad_rows, 3, "TTT", 2, "(n),(n)->(n)"),
    ROW(log_softmax_grad_rows, 3, "TTT", 2, "(n),(n)->(n)"),
    ROW(class_loss_rows, 4, "TllT", 3, "(n),(),()->()"),
    ROW(class_grad_rows, 5, "TllTT", 4, "(n),(),(),()->(n)"),
    ROW(norm_rows, 6, "TTTTTT", 5, "(n),(n),(n),(),()->(n)"),
    {"norm_grad_rows", {norm_grad_rows<float>, norm_grad_rows<double>}, "TTTTTTTT", 5,
     "(m,n),(m,n),(n),(),()->(m,n),(n),(n)"},
};
const int count_of_rows = sizeof of_rows / sizeof *of_rows;

}  // namespace retrograd
