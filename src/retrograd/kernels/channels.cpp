// Per-channel kernels of images (n, c, l), for batch norm: sums over n and l, and maps with per-channel parameters.

#include <algorithm>

#include "rows.hpp"
#include "registration.hpp"

namespace retrograd {
namespace {

// The memory layout of images: strides of the channels' planes, and of their elements, `step`, in bytes.
struct Images {
    char* data;
    npy_intp images, channels, step;

    char* plane(npy_intp i, npy_intp c) const { return data + i * images + c * channels; }
};

struct Sizes {
    npy_intp n, c, l;
};

Images images_at(char* data, const npy_intp* steps) { return {data, steps[0], steps[1], steps[2]}; }

template <class T>
struct Numbers {
    char* data;
    npy_intp step;

    T& operator[](npy_intp c) const { return *reinterpret_cast<T*>(data + c * step); }
};

// The operands of a kernel: images and per-channel values, the results last.
template <class T>
struct Operands {
    Sizes sizes;
    Images x, y, out;
    Numbers<T> a, p, q, r;
};

#define CHANNELS(name) template <class T> INLINE void name(const Operands<T>& of, npy_intp begin, npy_intp end)

// Writes the mean a and the variance p of each channel.
CHANNELS(moments_of) {
    const auto [n, channels, l] = of.sizes;
    const double count = n * l > 0 ? double(n * l) : 1;
    Reader<T> read(of.x.step, l);
    for (npy_intp c = begin; c < end; c++) {
        double total = 0, squares = 0;
        for (npy_intp i = 0; i < n; i++) {
            const T* x = read.at(of.x.plane(i, c));
            total += summed<T>(l, [=](npy_intp k) { return x[k]; });
        }
        const T mean = T(total / count);
        for (npy_intp i = 0; i < n; i++) {
            const T* x = read.at(of.x.plane(i, c));
            squares += summed<T>(l, [=](npy_intp k) { return (x[k] - mean) * (x[k] - mean); });
        }
        of.a[c] = mean;
        of.p[c] = T(squares / count);
    }
}

// Writes the sums a of `expression` in x, y and the channel's q.
#define TOTALS(name, expression)                                                        \
    CHANNELS(name##_of) {                                                                    \
        const npy_intp l = of.sizes.l;                                                     \
        Reader<T> first(of.x.step, l), second(of.y.step, l);                               \
        for (npy_intp c = begin; c < end; c++) {                                           \
            double total = 0;                                                              \
            const T q = of.q.data ? of.q[c] : T(0);                                        \
            for (npy_intp i = 0; i < of.sizes.n; i++) {                                    \
                const T *x = first.at(of.x.plane(i, c)), *y = second.at(of.y.plane(i, c)); \
                (void)y, (void)q;                                                          \
                total += summed<T>(l, [=](npy_intp k) { return expression; });             \
            }                                                                              \
            of.a[c] = T(total);                                                            \
        }                                                                                  \
    }

// Maps all planes elementwise: `expression` in x, y, and the channel's a, p, q, r.  Images with one element for each
// channel are treated as rows of contiguous channels.
#define EACH(name, expression)                                                                 \
    CHANNELS(name##_of) {                                                                           \
        const npy_intp l = of.sizes.l;                                                            \
        Reader<T> first(of.x.step, l), second(of.y.step, l);                                      \
        Writer<T> write(of.out.step, l);                                                          \
        for (npy_intp at = begin; at < end; at++) {                                               \
            const npy_intp i = at / of.sizes.c, c = at % of.sizes.c;                              \
            const T *x = first.at(of.x.plane(i, c)), *y = second.at(of.y.plane(i, c));            \
            const T a = of.a[c], p = of.p[c], q = of.q[c], r = of.r[c];                           \
            T* out = write.at(of.out.plane(i, c));                                                \
            (void)a, (void)p, (void)q, (void)r, (void)y;                                          \
            IN_ANY_ORDER                                                                          \
            for (npy_intp k = 0; k < l; k++) out[k] = expression;                                 \
            write.finish();                                                                       \
        }                                                                                         \
    }                                                                                             \
    CHANNELS(name##_of_rows) {                                                                    \
        const npy_intp c = of.sizes.c;                                                            \
        Reader<T> first(of.x.channels, c), second(of.y.channels, c);                              \
        Reader<T> of_a(of.a.step, c), of_p(of.p.step, c), of_q(of.q.step, c), of_r(of.r.step, c); \
        const T *as = of_a.at(of.a.data), *ps = of_p.at(of.p.data);                               \
        const T *qs = of_q.at(of.q.data), *rs = of_r.at(of.r.data);                               \
        Writer<T> write(of.out.channels, c);                                                      \
        for (npy_intp i = begin; i < end; i++) {                                                  \
            const T *x = first.at(of.x.plane(i, 0)), *y = second.at(of.y.plane(i, 0));            \
            T* out = write.at(of.out.plane(i, 0));                                                \
            IN_ANY_ORDER                                                                          \
            for (npy_intp k = 0; k < c; k++) {                                                    \
                const T a = as[k], p = ps[k], q = qs[k], r = rs[k];                               \
                (void)a, (void)p, (void)q, (void)r, (void)y;                                      \
                out[k] = expression;                                                              \
            }                                                                                     \
            write.finish();                                                                       \
        }                                                                                         \
    }

// Adds `expression` in x, y and per-channel a to the channels' totals, for such rows.
#define SUM_OF_ROWS(name, expression)                                                                      \
    template <class T> \
    INLINE void name##_of_rows(const Operands<T>& of, const T* a, npy_intp begin, npy_intp end,       \
                                       double* totals) {                                                      \
        const npy_intp c = of.sizes.c;                                                                        \
        Reader<T> first(of.x.channels, c), second(of.y.channels, c);                                          \
        std::unique_ptr<T[]> sums(new T[c]);                                                                  \
        for (npy_intp i = begin; i < end;) {                                                                  \
            std::fill(sums.get(), sums.get() + c, T(0));                                                      \
            for (npy_intp last = std::min(end, i + GROUP); i < last; i++) {                                   \
                const T *x = first.at(of.x.plane(i, 0)), *y = second.at(of.y.plane(i, 0));                    \
                (void)y, (void)a;                                                                             \
                IN_ANY_ORDER                                                                                  \
                for (npy_intp k = 0; k < c; k++) sums[k] += expression;                                       \
            }                                                                                                 \
            for (npy_intp k = 0; k < c; k++) totals[k] += sums[k];                                            \
        }                                                                                                     \
    }

TOTALS(sums, x[k])
TOTALS(dots, x[k] * (y[k] - q))
EACH(shift, (x[k] - a) * p + q)
EACH(mix, x[k] * p + (y[k] - a) * r + q)
SUM_OF_ROWS(values, x[k])
SUM_OF_ROWS(squares, (x[k] - a[k]) * (x[k] - a[k]))
SUM_OF_ROWS(products, x[k] * (y[k] - a[k]))

template <class T>
using Work = void (*)(const Operands<T>&, npy_intp, npy_intp);

template <class T>
using Add = void (*)(const Operands<T>&, const T*, npy_intp, npy_intp, double*);

// Writes the sums of rows by `add`, divided by `count`.
template <class T>
std::unique_ptr<T[]> over_rows(const Operands<T>& of, const T* a, double count, Add<T> add) {
    const npy_intp c = of.sizes.c;
    const auto totals = sums_of_blocks(of.sizes.n, c, c, [&](npy_intp begin, npy_intp end, double* to) {
        add(of, a, begin, end, to);
    });
    std::unique_ptr<T[]> out(new T[c]);
    for (npy_intp k = 0; k < c; k++) out[k] = T(totals[k] / count);
    return out;
}

template <class T>
void moments_by_rows(const Operands<T>& of) {
    const double count = of.sizes.n > 0 ? double(of.sizes.n) : 1;
    const auto mean = over_rows<T>(of, nullptr, count, cpu_dispatch<values_of_rows<T>>);
    const auto variance = over_rows<T>(of, mean.get(), count, cpu_dispatch<squares_of_rows<T>>);
    for (npy_intp k = 0; k < of.sizes.c; k++) of.a[k] = mean[k], of.p[k] = variance[k];
}

// Writes the sums a of rows by `add`, with the per-channel values q if there are any.
template <class T, Add<T> add>
void totals_by_rows(const Operands<T>& of) {
    Reader<T> read(of.q.data ? of.q.step : sizeof(T), of.sizes.c);
    const auto sums = over_rows<T>(of, read.at(of.q.data), 1, add);
    for (npy_intp k = 0; k < of.sizes.c; k++) of.a[k] = sums[k];
}
template <class T>
constexpr auto sums_by_rows = totals_by_rows<T, cpu_dispatch<values_of_rows<T>>>;
template <class T>
constexpr auto dots_by_rows = totals_by_rows<T, cpu_dispatch<products_of_rows<T>>>;

// Threads share channels; in elementwise kernels planes or rows.
template <class T>
void run(Work<T> work, const Operands<T>& of, npy_intp count, npy_intp each) {
    parallel_for(count, ENOUGH / (each > 0 ? each : 1), [&](npy_intp begin, npy_intp end) { work(of, begin, end); });
}

template <class T, Work<T> work, void (*by_rows)(const Operands<T>&)>
void all_sums(const Operands<T>& of) {
    const auto [n, c, l] = of.sizes;
    if (l == 1) by_rows(of);
    else run<T>(work, of, c, n * l);
}

template <class T, Work<T> work, Work<T> by_rows>
void all_numbers(const Operands<T>& of) {
    const auto [n, c, l] = of.sizes;
    if (l == 1) run<T>(by_rows, of, n, c);
    else run<T>(work, of, n * c, l);
}

// A loop for NumPy's generalised ufuncs, over stacks of images; `...` selects the operands from the arguments.
#define STACKS(name, operands, ...)                                                                 \
    template <class T, void (*all)(const Operands<T>&)>                                             \
    void name(char** args, const npy_intp* dimensions, const npy_intp* steps, void*) {              \
        const npy_intp* core = steps + operands;                                                    \
        const Sizes sizes{dimensions[1], dimensions[2], dimensions[3]};                             \
        for (npy_intp stack = 0; stack < dimensions[0]; stack++) {                                  \
            char* at[operands];                                                                     \
            for (int k = 0; k < operands; k++) at[k] = args[k] + stack * steps[k];                  \
            Operands<T> of{};                                                                       \
            of.sizes = sizes;                                                                       \
            __VA_ARGS__;                                                                            \
            all(of);                                                                                \
        }                                                                                           \
        std::feclearexcept(FE_ALL_EXCEPT);                                                          \
    }

STACKS(moments, 3, of.x = of.y = images_at(at[0], core); of.a = {at[1], core[3]}; of.p = {at[2], core[4]})
STACKS(sums, 2, of.x = of.y = images_at(at[0], core); of.a = {at[1], core[3]})
STACKS(dots, 4, of.x = images_at(at[0], core); of.y = images_at(at[1], core + 3); of.q = {at[2], core[6]};
       of.a = {at[3], core[7]})
STACKS(shift, 5, of.x = of.y = images_at(at[0], core); of.a = {at[1], core[3]}; of.p = {at[2], core[4]};
       of.q = {at[3], core[5]}; of.r = of.q; of.out = images_at(at[4], core + 6))
STACKS(mix, 7, of.x = images_at(at[0], core); of.p = {at[1], core[3]}; of.q = {at[2], core[4]};
       of.y = images_at(at[3], core + 5); of.r = {at[4], core[8]}; of.a = {at[5], core[9]};
       of.out = images_at(at[6], core + 10))

#define SUMS(name, T) name<T, all_sums<T, cpu_dispatch<name##_of<T>>, name##_by_rows<T>>>
#define NUMBERS(name, T) name<T, all_numbers<T, cpu_dispatch<name##_of<T>>, cpu_dispatch<name##_of_rows<T>>>>
#define BOTH(kind, name) {kind(name, float), kind(name, double)}

const Kernel kernels[] = {
    {"channel_moments", BOTH(SUMS, moments), "TTT", 1, "(n,c,l)->(c),(c)"},
    {"channel_sums", BOTH(SUMS, sums), "TT", 1, "(n,c,l)->(c)"},
    {"channel_dots", BOTH(SUMS, dots), "TTTT", 3, "(n,c,l),(n,c,l),(c)->(c)"},
    {"channel_shift", BOTH(NUMBERS, shift), "TTTTT", 4, "(n,c,l),(c),(c),(c)->(n,c,l)"},
    {"channel_mix", BOTH(NUMBERS, mix), "TTTTTTT", 6, "(n,c,l),(c),(c),(n,c,l),(c),(c)->(n,c,l)"},
};

}  // namespace

const Part part_channels{kernels};

}  // namespace retrograd
