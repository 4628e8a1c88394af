// Threads that share the work on large arrays.
#pragma once

#include <cstddef>

namespace retrograd {

// What to do with the places from `begin` to `end`.
using Body = void (*)(void* context, std::ptrdiff_t begin, std::ptrdiff_t end);

// Does `body` to all of 0 <= i < n, in pieces of at least `least`, on several threads where that is allowed and free.
// Which thread gets which piece is chance, so a piece's result must not depend on where it begins.  Where a piece has no
// memory for what it needs, on whichever thread, others are left out and std::bad_alloc comes to the caller.
void share(std::ptrdiff_t n, std::ptrdiff_t least, Body body, void* context);

// Whether `share` may cut n places into pieces.
bool may_cut(std::ptrdiff_t n, std::ptrdiff_t least);

template <class F>
void share(std::ptrdiff_t n, std::ptrdiff_t least, F work) {
    share(n, least, [](void* f, std::ptrdiff_t begin, std::ptrdiff_t end) { (*static_cast<F*>(f))(begin, end); }, &work);
}

}  // namespace retrograd

// At most so many threads work on one array, the caller's included; by these names threadpoolctl finds them.
extern "C" int retrograd_get_num_threads();
extern "C" void retrograd_set_num_threads(int most);

namespace retrograd {

// For tests: replaces every kernel's `least` by this grain size, so that threads share small arrays as well; 0 restores it.
// Of a negative size, the caller does all pieces by itself from the last to the first: results must not depend on that.
void set_grain_size(std::ptrdiff_t least);

}  // namespace retrograd
