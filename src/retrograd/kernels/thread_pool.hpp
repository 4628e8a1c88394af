// A thread pool that shares the work on large arrays.
#pragma once

#include <cstddef>

namespace retrograd {

// A function that processes the indices from `begin` to `end`.
using Body = void (*)(void* context, std::ptrdiff_t begin, std::ptrdiff_t end);

// Calls `body` for all of 0 <= i < n, in chunks of at least `min_chunk`, on several threads if allowed and available.  The
// assignment of chunks to threads is not deterministic, so results must not depend on where a chunk begins.  If a chunk
// runs out of memory, on any thread, the remaining ones are skipped and the caller gets std::bad_alloc.
void parallel_for(std::ptrdiff_t n, std::ptrdiff_t min_chunk, Body body, void* context);

// Returns the size of the chunks in which several threads take n indices: several chunks for each, so that a late thread
// leaves some to the others, but no odd ones for which most threads would wait at the end.
std::ptrdiff_t chunk_size(std::ptrdiff_t n, std::ptrdiff_t min_chunk, std::ptrdiff_t threads);

// Returns whether `parallel_for` may split n indices into chunks.
bool may_split(std::ptrdiff_t n, std::ptrdiff_t min_chunk);

template <class F>
void parallel_for(std::ptrdiff_t n, std::ptrdiff_t min_chunk, F body) {
    parallel_for(n, min_chunk, [](void* f, std::ptrdiff_t begin, std::ptrdiff_t end) { (*static_cast<F*>(f))(begin, end); }, &body);
}

}  // namespace retrograd

// The maximal number of threads that work on one array, the caller's included; threadpoolctl finds the functions by these names.
extern "C" int retrograd_get_num_threads();
extern "C" void retrograd_set_num_threads(int count);

namespace retrograd {

// For tests: replaces every kernel's `min_chunk` by this grain size, so that threads share small arrays as well; 0 restores it.
// With a negative size, the caller runs all chunks itself from the last to the first: results must not depend on that.
void set_grain_size(std::ptrdiff_t min_chunk);

}  // namespace retrograd
