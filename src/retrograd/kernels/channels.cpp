// Images (n, c, l) channel by channel, as batch norm needs it: sums over n and l, and numbers that hold for a channel.

#include "rows.hpp"
#include "tables.hpp"

namespace retrograd {
namespace {

// Where the numbers of images lie: their channels' planes, and in those the numbers, `step` bytes apart.
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

// What a kernel is given: images and numbers of the channels, the results last.
template <class T>
struct Operands {
    Sizes sizes;
    Images x, y, out;
    Numbers<T> a, p, q, r;
};

#define CHANNELS(name, T) FOR_PROCESSORS void name##_##T(const Operands<T>& of, npy_intp begin, npy_intp end)

// The mean a and the variance p of each channel.
#define MOMENTS(T)                                                                                                 \
    CHANNELS(moments, T) {                                                                                         \
        const auto [n, channels, l] = of.sizes;                                                                    \
        const double count = n * l > 0 ? double(n * l) : 1;                                                        \
        Reader<T> read(of.x.step, l);                                                                              \
        for (npy_intp c = begin; c < end; c++) {                                                                   \
            double total = 0, squares = 0;                                                                         \
            for (npy_intp i = 0; i < n; i++) {                                                                     \
                const T* x = read.at(of.x.plane(i, c));                                                            \
                total += summed<T>(l, [=](npy_intp k) { return x[k]; });                                           \
            }                                                                                                      \
            const T mean = T(total / count);                                                                       \
            for (npy_intp i = 0; i < n; i++) {                                                                     \
                const T* x = read.at(of.x.plane(i, c));                                                            \
                squares += summed<T>(l, [=](npy_intp k) { return (x[k] - mean) * (x[k] - mean); });                \
            }                                                                                                      \
            of.a[c] = mean;                                                                                        \
            of.p[c] = T(squares / count);                                                                          \
        }                                                                                                          \
    }

// The sums a of x y.
#define DOTS(T)                                                                       \
    CHANNELS(dots, T) {                                                               \
        const npy_intp l = of.sizes.l;                                                \
        Reader<T> first(of.x.step, l), second(of.y.step, l);                          \
        for (npy_intp c = begin; c < end; c++) {                                      \
            double total = 0;                                                         \
            for (npy_intp i = 0; i < of.sizes.n; i++) {                               \
                const T *x = first.at(of.x.plane(i, c)), *y = second.at(of.y.plane(i, c)); \
                total += summed<T>(l, [=](npy_intp k) { return x[k] * y[k]; });       \
            }                                                                         \
            of.a[c] = T(total);                                                       \
        }                                                                             \
    }

// The sums a of x.
#define SUMS(T)                                                                 \
    CHANNELS(sums, T) {                                                         \
        const npy_intp l = of.sizes.l;                                          \
        Reader<T> read(of.x.step, l);                                           \
        for (npy_intp c = begin; c < end; c++) {                                \
            double total = 0;                                                   \
            for (npy_intp i = 0; i < of.sizes.n; i++) {                         \
                const T* x = read.at(of.x.plane(i, c));                         \
                total += summed<T>(l, [=](npy_intp k) { return x[k]; });        \
            }                                                                   \
            of.a[c] = T(total);                                                 \
        }                                                                       \
    }

// All planes, number by number: `expression` of x and y, and of the channel's a, p, q, r.
#define EACH(name, T, expression)                                                         \
    CHANNELS(name, T) {                                                                   \
        const npy_intp l = of.sizes.l;                                                    \
        Reader<T> first(of.x.step, l), second(of.y.step, l);                              \
        Writer<T> write(of.out.step, l);                                                  \
        for (npy_intp at = begin; at < end; at++) {                                       \
            const npy_intp i = at / of.sizes.c, c = at % of.sizes.c;                      \
            const T *x = first.at(of.x.plane(i, c)), *y = second.at(of.y.plane(i, c));    \
            const T a = of.a[c], p = of.p[c], q = of.q[c], r = of.r[c];                   \
            T* out = write.at(of.out.plane(i, c));                                        \
            (void)a, (void)p, (void)q, (void)r, (void)y;                                  \
            IN_ANY_ORDER                                                                  \
            for (npy_intp k = 0; k < l; k++) out[k] = expression;                         \
            write.finish();                                                               \
        }                                                                                 \
    }
#define ALL(T)                                          \
    MOMENTS(T)                                          \
    DOTS(T)                                             \
    SUMS(T)                                             \
    EACH(shift, T, (x[k] - a) * p + q)                  \
    EACH(mix, T, x[k] * p + y[k] * r + q)
ALL(float)
ALL(double)

template <class T>
using Work = void (*)(const Operands<T>&, npy_intp, npy_intp);

// Threads share channels, or, where every number is for itself, planes.
template <class T>
void run(Work<T> work, const Operands<T>& of, bool by_planes) {
    npy_intp count = by_planes ? of.sizes.n * of.sizes.c : of.sizes.c, each = (by_planes ? 1 : of.sizes.n) * of.sizes.l;
    share(count, ENOUGH / (each > 0 ? each : 1), [&](npy_intp begin, npy_intp end) { work(of, begin, end); });
}

// A loop for NumPy's generalised ufuncs, over stacks of images; the rest finds the operands among the arguments.
#define STACKS(name, operands, by_planes, ...)                                                      \
    template <class T, Work<T> work>                                                                \
    void name(char** args, const npy_intp* dimensions, const npy_intp* steps, void*) {              \
        const npy_intp* core = steps + operands;                                                    \
        const Sizes sizes{dimensions[1], dimensions[2], dimensions[3]};                             \
        for (npy_intp stack = 0; stack < dimensions[0]; stack++) {                                  \
            char* at[operands];                                                                     \
            for (int k = 0; k < operands; k++) at[k] = args[k] + stack * steps[k];                  \
            Operands<T> of{};                                                                       \
            of.sizes = sizes;                                                                       \
            __VA_ARGS__;                                                                            \
            run<T>(work, of, by_planes);                                                            \
        }                                                                                           \
        std::feclearexcept(FE_ALL_EXCEPT);                                                          \
    }

STACKS(moments, 3, false, of.x = images_at(at[0], core); of.a = {at[1], core[3]}; of.p = {at[2], core[4]})
STACKS(dots, 3, false, of.x = images_at(at[0], core); of.y = images_at(at[1], core + 3); of.a = {at[2], core[6]})
STACKS(sums, 2, false, of.x = images_at(at[0], core); of.a = {at[1], core[3]})
STACKS(shift, 5, true, of.x = of.y = images_at(at[0], core); of.a = {at[1], core[3]}; of.p = {at[2], core[4]};
       of.q = {at[3], core[5]}; of.r = of.q; of.out = images_at(at[4], core + 6))
STACKS(mix, 6, true, of.x = images_at(at[0], core); of.p = {at[1], core[3]}; of.q = {at[2], core[4]};
       of.y = images_at(at[3], core + 5); of.r = {at[4], core[8]}; of.a = of.q; of.out = images_at(at[5], core + 9))

const Kernel kernels[] = {
    {"channel_moments", {moments<float, moments_float>, moments<double, moments_double>}, "TTT", 1, "(n,c,l)->(c),(c)"},
    {"channel_dots", {dots<float, dots_float>, dots<double, dots_double>}, "TTT", 2, "(n,c,l),(n,c,l)->(c)"},
    {"channel_sums", {sums<float, sums_float>, sums<double, sums_double>}, "TT", 1, "(n,c,l)->(c)"},
    {"channel_shift", {shift<float, shift_float>, shift<double, shift_double>}, "TTTTT", 4, "(n,c,l),(c),(c),(c)->(n,c,l)"},
    {"channel_mix", {mix<float, mix_float>, mix<double, mix_double>}, "TTTTTT", 5, "(n,c,l),(c),(c),(n,c,l),(c)->(n,c,l)"},
};

}  // namespace

const Part part_channels{kernels};

}  // namespace retrograd
