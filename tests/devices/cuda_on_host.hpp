// CUDA C++ on a CPU, for tests: the threads of a block are fibers, which take turns at __syncthreads.
#include <ucontext.h>

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

using std::erf, std::exp, std::log, std::sqrt, std::tanh;

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

#define __global__ static
#define __device__
#define __shared__ static
#define __restrict__

static Dim3 threadIdx, blockIdx, blockDim, gridDim;

inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>((static_cast<unsigned __int128>(a) * b) >> 64);
}

template <class T> T atomicAdd(T* at, T value) {
  T before = *at;
  *at = before + value;
  return before;
}

struct Fiber {
  ucontext_t context;
  std::vector<char> stack = std::vector<char>(1 << 16);
  bool done = false;
};

static ucontext_t scheduler;
static std::vector<Fiber> fibers;
static unsigned running;
static void (*run_thread)();

inline void __syncthreads() { swapcontext(&fibers[running].context, &scheduler); }

static void enter() {
  run_thread();
  fibers[running].done = true;
  swapcontext(&fibers[running].context, &scheduler);
}

// Run one block: each fiber up to its next __syncthreads, in turn. Return false if some threads wait for others that
// have returned, which is undefined on a GPU.
static bool run_block() {
  if (fibers.size() < blockDim.x) fibers.resize(blockDim.x);
  for (unsigned t = 0; t < blockDim.x; ++t) {
    Fiber& f = fibers[t];
    f.done = false;
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack.data(), f.context.uc_stack.ss_size = f.stack.size();
    f.context.uc_link = nullptr;
    makecontext(&f.context, enter, 0);
  }
  while (true) {
    unsigned ended = 0;
    for (running = 0; running < blockDim.x; ++running) {
      threadIdx.x = running;
      if (!fibers[running].done) swapcontext(&scheduler, &fibers[running].context);
      ended += fibers[running].done;
    }
    if (ended == blockDim.x) return true;
    if (ended) return false;
  }
}

static void** arguments;

template <class... A, std::size_t... I> void call(void (*kernel)(A...), std::index_sequence<I...>) {
  kernel(*static_cast<A*>(arguments[I])...);
}

template <auto kernel> struct Launch;
template <class... A, void (*kernel)(A...)> struct Launch<kernel> {
  static void thread() { call(kernel, std::index_sequence_for<A...>()); }
  static int run(unsigned blocks, unsigned threads, void** args) {
    gridDim.x = blocks, blockDim.x = threads, arguments = args, run_thread = thread;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
      if (!run_block()) return 1;
    return 0;
  }
};

// The types of a kernel's parameters as NumPy's characters, "*" before those of pointers.
template <class T> struct Code;
template <> struct Code<float> { static constexpr char value[] = "f"; };
template <> struct Code<double> { static constexpr char value[] = "d"; };
template <> struct Code<bool> { static constexpr char value[] = "?"; };
template <> struct Code<long long> { static constexpr char value[] = "q"; };
template <> struct Code<unsigned long long> { static constexpr char value[] = "Q"; };
template <class T> struct Code<const T> : Code<T> {};

template <class T> void write_code(char*& to) {
  if constexpr (std::is_pointer_v<T>) {
    *to++ = '*';
    *to++ = Code<std::remove_pointer_t<T>>::value[0];
  } else {
    *to++ = Code<T>::value[0];
  }
}

template <class... A> void write_codes(void (*)(A...), char* to) {
  (write_code<A>(to), ...);
  *to = 0;
}
