// Kernels for GPUs, compiled at the first use by CuPy. cuda_kernels.py has their arguments; their definitions are the
// functions of the same names in kernels/reference.py.
//
// Arrays are contiguous. A kernel with "rows" in its name runs one block per row; the number of threads of a block is
// a power of two of at most MAX_THREADS. All others run a loop over the elements, in steps of the whole grid.

typedef long long Int;
typedef unsigned long long Word;

constexpr int MAX_THREADS = 256;

struct Add {
  template <class T> __device__ T operator()(T a, T b) const { return a + b; }
};

struct Max {  // ignores NaN, which the sums of the exponentials bring back
  template <class T> __device__ T operator()(T a, T b) const { return a < b || a != a ? b : a; }
};

struct MaxOrNan {
  template <class T> __device__ T operator()(T a, T b) const { return a < b || b != b ? b : a; }
};

template <class T> __device__ T minus_infinity() { return -T(1) / T(0); }

__device__ Int first_element() { return Int(blockIdx.x) * blockDim.x + threadIdx.x; }

__device__ Int grid_step() { return Int(gridDim.x) * blockDim.x; }

// Return the combination of the values of all threads of the block, to each of them.
template <class T, class Combine> __device__ T combine_block(T value, Combine combine) {
  __shared__ T partial[MAX_THREADS];
  __syncthreads();  // until all threads have read the result of the call before
  partial[threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] = combine(partial[threadIdx.x], partial[threadIdx.x + half]);
    __syncthreads();
  }
  return partial[0];
}

// Return the maximum of a row and the sum of exp(x - maximum).
template <class T> __device__ T row_max(const T* x, Int n, Int stride) {
  T top = minus_infinity<T>();
  for (Int i = threadIdx.x; i < n; i += blockDim.x) top = Max()(top, x[i * stride]);
  return combine_block(top, Max());
}

template <class T> __device__ T row_exp_sum(const T* x, Int n, Int stride, T top) {
  T total = 0;
  for (Int i = threadIdx.x; i < n; i += blockDim.x) total += exp(x[i * stride] - top);
  return combine_block(total, Add());
}

// ------------------------------------------------------------------------------------------------------- softmax
// Row r of `rows` x `columns` stacks of n numbers begins at r / columns * n * columns + r % columns; numbers of a row
// are `columns` apart. So columns is 1 for rows along the last dimension.

__device__ Int row_start(Int n, Int columns) {
  return Int(blockIdx.x) / columns * n * columns + Int(blockIdx.x) % columns;
}

template <class T> __global__ void softmax_rows(const T* x, T* out, Int n, Int columns) {
  x += row_start(n, columns), out += row_start(n, columns);
  T top = row_max(x, n, columns), total = row_exp_sum(x, n, columns, top);
  for (Int i = threadIdx.x; i < n; i += blockDim.x) out[i * columns] = exp(x[i * columns] - top) / total;
}

template <class T> __global__ void log_softmax_rows(const T* x, T* out, Int n, Int columns) {
  x += row_start(n, columns), out += row_start(n, columns);
  T top = row_max(x, n, columns), log_total = log(row_exp_sum(x, n, columns, top));
  for (Int i = threadIdx.x; i < n; i += blockDim.x) out[i * columns] = x[i * columns] - top - log_total;
}

template <class T> __global__ void softmax_grad_rows(const T* g, const T* out, T* dx, Int n, Int columns) {
  Int start = row_start(n, columns);
  g += start, out += start, dx += start;
  T dot = 0;
  for (Int i = threadIdx.x; i < n; i += blockDim.x) dot += g[i * columns] * out[i * columns];
  dot = combine_block(dot, Add());
  for (Int i = threadIdx.x; i < n; i += blockDim.x) dx[i * columns] = out[i * columns] * (g[i * columns] - dot);
}

template <class T> __global__ void log_softmax_grad_rows(const T* g, const T* out, T* dx, Int n, Int columns) {
  Int start = row_start(n, columns);
  g += start, out += start, dx += start;
  T total = 0;
  for (Int i = threadIdx.x; i < n; i += blockDim.x) total += g[i * columns];
  total = combine_block(total, Add());
  for (Int i = threadIdx.x; i < n; i += blockDim.x) dx[i * columns] = g[i * columns] - exp(out[i * columns]) * total;
}

// -------------------------------------------------------------------------------------------------- cross-entropy

template <class T> __global__ void class_loss_rows(const T* x, const Int* target, T* out, Int n, Int ignored) {
  x += blockIdx.x * n;
  Int at = target[blockIdx.x];
  T top = row_max(x, n, 1), total = row_exp_sum(x, n, 1, top);
  if (threadIdx.x == 0) out[blockIdx.x] = at == ignored ? T(0) : T(0) - (x[at] - top - log(total));
}

template <class T>
__global__ void class_grad_rows(const T* x, const Int* target, const T* g, T* dx, Int n, Int ignored) {
  x += blockIdx.x * n, dx += blockIdx.x * n;
  Int at = target[blockIdx.x];
  T top = row_max(x, n, 1), total = row_exp_sum(x, n, 1, top), factor = g[blockIdx.x];
  for (Int i = threadIdx.x; i < n; i += blockDim.x)
    dx[i] = at == ignored ? T(0) : factor * (exp(x[i] - top) / total - T(i == at));
}

// ---------------------------------------------------------------------------------------------------------- norms

// Return the mean of a row, 0 without `center`, and 1 / sqrt(variance + eps).
template <class T> __device__ void row_moments(const T* x, Int n, T eps, bool center, T& mean, T& scale) {
  T sum = 0;
  if (center) {
    for (Int i = threadIdx.x; i < n; i += blockDim.x) sum += x[i];
    sum = combine_block(sum, Add());
  }
  mean = center ? sum / T(n) : T(0);
  T squares = 0;
  for (Int i = threadIdx.x; i < n; i += blockDim.x) squares += (x[i] - mean) * (x[i] - mean);
  scale = T(1) / sqrt(combine_block(squares, Add()) / T(n) + eps);
}

template <class T>
__global__ void norm_rows(const T* x, const T* weight, const T* bias, T* out, Int n, T eps, bool center) {
  x += blockIdx.x * n, out += blockIdx.x * n;
  T mean, scale;
  row_moments(x, n, eps, center, mean, scale);
  for (Int i = threadIdx.x; i < n; i += blockDim.x) out[i] = (x[i] - mean) * scale * weight[i] + bias[i];
}

template <class T>
__global__ void norm_grad_rows(const T* g, const T* x, const T* weight, T* dx, T* means, T* scales, Int n, T eps,
                               bool center) {
  g += blockIdx.x * n, x += blockIdx.x * n, dx += blockIdx.x * n;
  T mean, scale, dot = 0, sum = 0;
  row_moments(x, n, eps, center, mean, scale);
  for (Int i = threadIdx.x; i < n; i += blockDim.x) {
    T h = g[i] * weight[i];
    dot += h * ((x[i] - mean) * scale), sum += h;
  }
  dot = combine_block(dot, Add()) / T(n);
  sum = center ? combine_block(sum, Add()) / T(n) : T(0);
  for (Int i = threadIdx.x; i < n; i += blockDim.x)
    dx[i] = (g[i] * weight[i] - (x[i] - mean) * scale * dot - sum) * scale;
  if (threadIdx.x == 0) means[blockIdx.x] = mean, scales[blockIdx.x] = scale;
}

// One block per column; neighboring blocks read the same lines of the cache.
template <class T>
__global__ void norm_grad_columns(const T* g, const T* x, const T* means, const T* scales, T* dweight, T* dbias,
                                  Int rows, Int n) {
  T dot = 0, sum = 0;
  for (Int r = threadIdx.x; r < rows; r += blockDim.x) {
    T h = g[r * n + blockIdx.x];
    dot += h * ((x[r * n + blockIdx.x] - means[r]) * scales[r]), sum += h;
  }
  dot = combine_block(dot, Add()), sum = combine_block(sum, Add());
  if (threadIdx.x == 0) dweight[blockIdx.x] = dot, dbias[blockIdx.x] = sum;
}

// -------------------------------------------------------------------------------------------------------- indexing

// out (batch, size, columns) holds zeros; rows (batch, count, columns) are added where `ids` (count) says.
template <class T>
__global__ void sum_rows(const T* rows, const Int* ids, T* out, Int all, Int count, Int size, Int columns) {
  for (Int i = first_element(); i < all; i += grid_step()) {
    Int column = i % columns, row = i / columns;
    atomicAdd(out + (row / count * size + ids[row % count]) * columns + column, rows[i]);
  }
}

// out (batch, size, columns) holds zeros; values and index are (batch, count, columns).
template <class T>
__global__ void sum_along(const T* values, const Int* index, T* out, Int all, Int count, Int size, Int columns) {
  for (Int i = first_element(); i < all; i += grid_step())
    atomicAdd(out + (i / columns / count * size + index[i]) * columns + i % columns, values[i]);
}

template <class T>
__global__ void take_along(const T* x, const Int* index, T* out, Int all, Int count, Int size, Int columns) {
  for (Int i = first_element(); i < all; i += grid_step())
    out[i] = x[(i / columns / count * size + index[i]) * columns + i % columns];
}

// --------------------------------------------------------------------------------------------------------- segments
// x (batch, rows, columns); block b of `batch * segments * columns` has one column of one segment.

struct Segment {
  Int begin, count, at;  // the offset of the first number, how many there are, `columns` apart; the result's index
  __device__ Segment(const Int* offsets, Int segments, Int rows, Int columns) {
    Int column = Int(blockIdx.x) % columns, k = Int(blockIdx.x) / columns % segments;
    Int batch = Int(blockIdx.x) / columns / segments;
    begin = (batch * rows + offsets[k]) * columns + column;
    count = offsets[k + 1] - offsets[k], at = blockIdx.x;
  }
};

template <class T>
__global__ void segment_sum(const T* x, const Int* offsets, T* out, Int segments, Int rows, Int columns) {
  Segment s(offsets, segments, rows, columns);
  T total = 0;
  for (Int i = threadIdx.x; i < s.count; i += blockDim.x) total += x[s.begin + i * columns];
  total = combine_block(total, Add());
  if (threadIdx.x == 0) out[s.at] = total;
}

template <class T>
__global__ void segment_softmax(const T* x, const Int* offsets, T* out, Int segments, Int rows, Int columns) {
  Segment s(offsets, segments, rows, columns);
  x += s.begin, out += s.begin;
  T top = row_max(x, s.count, columns), total = row_exp_sum(x, s.count, columns, top);
  for (Int i = threadIdx.x; i < s.count; i += blockDim.x) out[i * columns] = exp(x[i * columns] - top) / total;
}

template <class T>
__global__ void segment_log_softmax(const T* x, const Int* offsets, T* out, Int segments, Int rows, Int columns) {
  Segment s(offsets, segments, rows, columns);
  x += s.begin, out += s.begin;
  T top = row_max(x, s.count, columns), log_total = log(row_exp_sum(x, s.count, columns, top));
  for (Int i = threadIdx.x; i < s.count; i += blockDim.x) out[i * columns] = x[i * columns] - top - log_total;
}

// -------------------------------------------------------------------------------------------------------- attention
// scores (batch, queries, keys), between two products of matrices. A bias and a mask are repeated until they fill the
// scores; their size is 0 if there is none. Query q sees keys up to q + last.

template <class T> struct Masks {
  const T* bias;
  Int bias_size;
  const bool* mask;
  Int mask_size, keys, queries, last;

  __device__ T masked(T score, Int row, Int key) const {
    Int at = row * keys + key;
    if (key > row % queries + last || (mask_size && !mask[at % mask_size])) return minus_infinity<T>();
    return bias_size ? score + bias[at % bias_size] : score;
  }
};

template <class T>
__global__ void attention_weights(T* scores, T* totals, T* sums, const T* bias, Int bias_size, const bool* mask,
                                  Int mask_size, Int keys, Int queries, Int last) {
  Masks<T> masks = {bias, bias_size, mask, mask_size, keys, queries, last};
  Int row = blockIdx.x;
  T *x = scores + row * keys, top = minus_infinity<T>();
  for (Int i = threadIdx.x; i < keys; i += blockDim.x) {
    x[i] = masks.masked(x[i], row, i);
    top = MaxOrNan()(top, x[i]);
  }
  top = combine_block(top, MaxOrNan());
  if (top == minus_infinity<T>()) top = 0;
  T total = 0;
  for (Int i = threadIdx.x; i < keys; i += blockDim.x) total += x[i] = exp(x[i] - top);
  total = combine_block(total, Add());
  if (threadIdx.x == 0) {
    totals[row] = total == 0 ? T(1) : total;
    sums[row] = total == 0 ? T(0) : top + log(total);
  }
}

template <class T>
__global__ void attention_pull(T* scores, T* pulled, const T* sums, const T* level, const T* bias, Int bias_size,
                               const bool* mask, Int mask_size, Int keys, Int queries, Int last) {
  Masks<T> masks = {bias, bias_size, mask, mask_size, keys, queries, last};
  Int row = blockIdx.x;
  for (Int i = threadIdx.x; i < keys; i += blockDim.x) {
    Int at = row * keys + i;
    T weight = exp(masks.masked(scores[at], row, i) - sums[row]);
    scores[at] = weight;
    pulled[at] = weight * (pulled[at] + level[row]);
  }
}

// ----------------------------------------------------------------------------------------------------- elementwise

template <class T> __global__ void masked(const bool* kept, const T* x, T* out, Int all, T scale) {
  for (Int i = first_element(); i < all; i += grid_step()) out[i] = x[i] * (kept[i] ? scale : T(0));
}

template <class T> __device__ T normal_share(T x) { return T(0.5) * (T(1) + erf(x * T(0.70710678118654752))); }

template <class T> __global__ void gelu(const T* x, T* out, Int all) {
  for (Int i = first_element(); i < all; i += grid_step()) out[i] = x[i] * normal_share(x[i]);
}

template <class T> __global__ void gelu_grad(const T* g, const T* x, T* out, Int all) {
  for (Int i = first_element(); i < all; i += grid_step()) {
    T far = sizeof(T) == 4 ? T(14.5) : T(39), y = x[i] < -far ? -far : x[i] > far ? far : x[i];
    out[i] = g[i] * (normal_share(x[i]) + y * exp(T(-0.5) * y * y) * T(0.39894228040143268));
  }
}

template <class T> __device__ T logistic(T x) {
  T e = exp(x < 0 ? x : -x);
  return (x < 0 ? e : T(1)) / (T(1) + e);
}

template <class T> __global__ void sigmoid(const T* x, T* out, Int all) {
  for (Int i = first_element(); i < all; i += grid_step()) out[i] = logistic(x[i]);
}

template <class T> __global__ void sigmoid_grad(const T* g, const T* y, T* out, Int all) {
  for (Int i = first_element(); i < all; i += grid_step()) out[i] = g[i] * (y[i] * (T(1) - y[i]));
}

template <class T> __global__ void silu(const T* x, T* out, Int all) {
  for (Int i = first_element(); i < all; i += grid_step()) out[i] = x[i] * logistic(x[i]);
}

template <class T> __global__ void silu_grad(const T* g, const T* x, T* out, Int all) {
  for (Int i = first_element(); i < all; i += grid_step())
    out[i] = g[i] * (logistic(x[i]) * (T(1) + x[i] * logistic(-x[i])));
}

template <class T> __global__ void relu_grad(const T* g, const T* y, T* out, Int all) {
  for (Int i = first_element(); i < all; i += grid_step()) out[i] = y[i] == 0 ? T(0) : g[i];
}

template <class T> __global__ void tanh_grad(const T* g, const T* y, T* out, Int all) {
  for (Int i = first_element(); i < all; i += grid_step()) out[i] = g[i] * (T(1) - y[i] * y[i]);
}

// --------------------------------------------------------------------------------------------- steps of optimizers

template <class T> __device__ T downhill(T p, T g, T sign, T decay) {
  T d = sign == T(1) ? g : -g;
  return decay == 0 ? d : d + decay * p;
}

template <class T> __global__ void descent(T* p, const T* g, Int all, T sign, T decay, T far) {
  for (Int i = first_element(); i < all; i += grid_step()) p[i] -= far * downhill(p[i], g[i], sign, decay);
}

template <class T>
__global__ void momentum(T* p, const T* g, T* b, Int all, T sign, T decay, T kept, T taken, T far, T further) {
  for (Int i = first_element(); i < all; i += grid_step()) {
    T d = downhill(p[i], g[i], sign, decay);
    b[i] = b[i] * kept + d * taken;
    p[i] -= far == 0 ? further * b[i] : further * b[i] + far * d;
  }
}

template <class T>
__global__ void adam(T* p, const T* g, T* m, T* v, Int all, T sign, T decay, T left, T beta1, T beta2, T rest1,
                     T rest2, T eps, T step) {
  for (Int i = first_element(); i < all; i += grid_step()) {
    T d = downhill(p[i], g[i], sign, decay);
    m[i] = m[i] * beta1 + d * rest1, v[i] = v[i] * beta2 + d * d * rest2;
    p[i] = p[i] * left - step * (m[i] / (sqrt(v[i]) + eps));
  }
}

template <class T>
__global__ void amsgrad(T* p, const T* g, T* m, T* v, T* largest, Int all, T sign, T decay, T left, T beta1, T beta2,
                        T rest1, T rest2, T eps, T step) {
  for (Int i = first_element(); i < all; i += grid_step()) {
    T d = downhill(p[i], g[i], sign, decay);
    m[i] = m[i] * beta1 + d * rest1, v[i] = v[i] * beta2 + d * d * rest2;
    largest[i] = largest[i] < v[i] || v[i] != v[i] ? v[i] : largest[i];
    p[i] = p[i] * left - step * (m[i] / (sqrt(largest[i]) + eps));
  }
}

// -------------------------------------------------------------------------------------------------- random numbers
// Philox 4x64 with 10 rounds (J. Salmon et al., SC 2011), in the order of NumPy's generator: number `index` of the
// words of the counter's block and of those that follow it.

__device__ Word philox_word(Word key0, Word key1, Word c0, Word c1, Word c2, Word c3, Word index) {
  Word block = index / 4;
  c0 += block;
  if (c0 < block && ++c1 == 0 && ++c2 == 0) ++c3;
  for (int round = 0; round < 10; ++round) {
    const Word a = 0xD2E7470EE14C6C93ull, b = 0xCA5A826395121157ull;
    Word high0 = __umul64hi(a, c0), low0 = a * c0, high1 = __umul64hi(b, c2), low1 = b * c2;
    c0 = high1 ^ c1 ^ key0, c1 = low1, c2 = high0 ^ c3 ^ key1, c3 = low0;
    key0 += 0x9E3779B97F4A7C15ull, key1 += 0xBB67AE8584CAA73Bull;
  }
  Word found[4] = {c0, c1, c2, c3};
  return found[index % 4];
}

__global__ void uniform_double(double* out, Int all, Word key0, Word key1, Word c0, Word c1, Word c2, Word c3,
                               Int skipped) {
  for (Int i = first_element(); i < all; i += grid_step())
    out[i] = double(philox_word(key0, key1, c0, c1, c2, c3, skipped + i) >> 11) * (1.0 / 9007199254740992.0);
}

// Each word is two numbers, the low half first. `pending` is the half that an earlier draw left, or -1.
__global__ void uniform_float(float* out, Int all, Word key0, Word key1, Word c0, Word c1, Word c2, Word c3,
                              Int skipped, Int pending) {
  for (Int i = first_element(); i < all; i += grid_step()) {
    Int at = pending < 0 ? i : i - 1;
    Word word = at < 0 ? Word(pending) : philox_word(key0, key1, c0, c1, c2, c3, skipped + at / 2);
    unsigned half = at > 0 && at % 2 ? unsigned(word >> 32) : unsigned(word);
    out[i] = float(half >> 8) * (1.0f / 16777216.0f);
  }
}

// ----------------------------------------------------------------------------------------- products of matrices
// For CUDA graphs, since CuPy does not let cuBLAS be recorded. Each block computes a tile of one of the products.

constexpr int TILE = 16;  // TILE * TILE threads are a block

template <class T>
__global__ void matrix_product(const T* a, const T* b, T* out, Int rows, Int inner, Int columns, Int step_a, Int step_b) {
  __shared__ T left[TILE][TILE + 1], right[TILE][TILE + 1];
  Int across = (columns + TILE - 1) / TILE, down = (rows + TILE - 1) / TILE;
  Int number = blockIdx.x / (across * down), tile = blockIdx.x % (across * down);
  int y = threadIdx.x / TILE, x = threadIdx.x % TILE;
  Int row = tile / across * TILE + y, column = tile % across * TILE + x;
  a += number * step_a;
  b += number * step_b;
  T sum = 0;
  for (Int k = 0; k < inner; k += TILE) {
    left[y][x] = row < rows && k + x < inner ? a[row * inner + k + x] : T(0);
    right[y][x] = k + y < inner && column < columns ? b[(k + y) * columns + column] : T(0);
    __syncthreads();
    for (int i = 0; i < TILE; i++) sum += left[y][i] * right[i][x];
    __syncthreads();
  }
  if (row < rows && column < columns) out[(number * rows + row) * columns + column] = sum;
}
