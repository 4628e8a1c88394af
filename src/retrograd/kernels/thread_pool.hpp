// A thread pool that shares the work on large arrays.
#pragma once

#include <cstddef>

namespace retrograd {

// A function that processes the indices from `begin` to `end`.
using Body = void (*)(void* context, std::ptrdiff_t begin, std::ptrdiff_t end);

// Calls `body` for all of 0 <= i < n, in pieces of at least `least`, on several threads if allowed and available.  The
// assignment of pieces to threads is not deterministic, so results must not depend on where a piece begins.  If a piece
// runs out of memory, on any thread, the remaining ones are skipped and the caller gets std::bad_alloc.
void share(std::ptrdiff_t n, std::ptrdiff_t least, Body body, void* context);

// Returns whether `share` may cut n indices into pieces.
bool may_cut(std::ptrdiff_t n, std::ptrdiff_t least);

template <class F>
void share(std::ptrdiff_t n, std::ptrdiff_t least, F work) {
    share(n, least, [](void* f, std::ptrdiff_t begin, std::ptrdiff_t end) { (*static_cast<F*>(f))(begin, end); }, &work);
}

}  // namespace retrograd

// The most threads that work on one array, the caller's included; threadpoolctl finds the functions by these names.
extern "C" int retrograd_get_num_threads();
extern "C" void retrograd_set_num_threads(int most);

namespace retrograd {

// For tests: replaces every kernel's `least` by this grain size, so that threads share small arrays as well; 0 restores it.
// With a negative size, the caller runs all pieces itself from the last to the first: results must not depend on that.
void set_grain_size(std::ptrdiff_t least);

}  // namespace retrograd
