// One thread pool for the process.  Its threads start at the first work for them, and end with the process.  Without
// work they spin for a while before they sleep, because waking a sleeping thread takes longer than most of the work.
//
// Only one caller at a time has helpers: a caller that comes while they are busy works alone.  That suits several
// Python threads that run kernels, and kernels within kernels.  The caller takes pieces like every helper, and waits
// only for helpers that have begun, so that helpers that wake late cost nothing.

#include "thread_pool.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <new>
#include <thread>

#if !defined(_WIN32)
#include <pthread.h>
#endif

namespace retrograd {
namespace {

constexpr int MOST = 256;
constexpr std::ptrdiff_t PIECES = 4;  // per thread: a late thread leaves some to the others

// Returns how long a waiting thread spins.
std::chrono::microseconds patience() {
    const char* asked = std::getenv("OMP_WAIT_POLICY");
    const bool passive = asked && (asked[0] == 'p' || asked[0] == 'P');
    return std::chrono::microseconds(passive ? 0 : 1000);
}

inline void relax() {
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) && defined(__GNUC__)
    __asm__ __volatile__("yield");
#endif
}

// Spins until a condition is true; returns false after `patience`.  Yields the processor to threads with work.
template <class F>
bool soon(F become) {
    using clock = std::chrono::steady_clock;
    static const auto patient = patience();
    for (auto end = clock::now() + patient; clock::now() < end; std::this_thread::yield())
        for (int i = 0; i < 64; i++) {
            if (become()) return true;
            relax();
        }
    return false;
}

struct Job {
    Body body;
    void* context;
    std::ptrdiff_t n, size;
    int places;  // free slots for helpers; guarded by the pool's lock
    std::atomic<std::ptrdiff_t> next{0};
    std::atomic<bool> failed{false};

    // No exception may leave a job, because other threads still use it.
    void work() noexcept {
        try {
            for (;;) {
                std::ptrdiff_t begin = next.fetch_add(size, std::memory_order_relaxed);
                if (begin >= n) return;
                body(context, begin, n - begin < size ? n : begin + size);
            }
        } catch (const std::bad_alloc&) {
            failed = true;
            next = n;
        }
    }
};

class Pool {
public:
    std::atomic_flag busy = ATOMIC_FLAG_INIT;

    void run(Job& mine) {
        start(mine.places);
        {
            std::lock_guard<std::mutex> hold(lock);
            job = &mine;
        }
        number++;  // after unlocking, because the spinning threads take the lock next
        if (asleep) {
            { std::lock_guard<std::mutex> hold(lock); }  // a thread that had just checked is asleep after this
            wake.notify_all();
        }
        mine.work();
        {
            std::lock_guard<std::mutex> hold(lock);
            job = nullptr;
        }
        if (soon([this] { return working == 0; })) return;
        std::unique_lock<std::mutex> hold(lock);
        done.wait(hold, [this] { return working == 0; });
    }

private:
    std::mutex lock;
    std::condition_variable wake, done;
    Job* job = nullptr;
    std::atomic<unsigned long> number{0};  // of the current job
    std::atomic<int> working{0}, asleep{0};
    int workers = 0;

    void start(int count) {
        try {
            for (; workers < count; workers++) std::thread([this] { help(); }).detach();
        } catch (const std::exception&) {  // no more threads or memory: the existing threads do the work
        }
    }

    void help() {
        for (unsigned long seen = 0;;) {
            soon([&] { return number != seen; });
            std::unique_lock<std::mutex> hold(lock);
            asleep++;
            wake.wait(hold, [&] { return number != seen; });
            asleep--;
            seen = number;
            if (!job || job->places == 0) continue;
            job->places--;
            working++;
            Job* taken = job;
            hold.unlock();
            taken->work();
            hold.lock();
            if (--working == 0) done.notify_one();
        }
    }
};

std::atomic<Pool*> pool{nullptr};
std::atomic<int> limit{0};  // 0: not set
std::atomic<std::ptrdiff_t> grain{0};  // 0: each kernel's own

// After a fork the child has none of the threads, and locks in an unknown state: it makes a new pool.
#if !defined(_WIN32)
[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, [] { pool.store(nullptr); });
#endif

Pool& the_pool() {
    Pool* found = pool.load();
    if (found) return *found;
    Pool* made = new Pool;
    if (pool.compare_exchange_strong(found, made)) return *made;
    delete made;
    return *found;
}

int usual() {
    const char* asked = std::getenv("OMP_NUM_THREADS");  // may be a list, for levels of nesting
    int count = asked ? std::atoi(asked) : 0;
    return count > 0 ? count : static_cast<int>(std::thread::hardware_concurrency());
}

void backwards(std::ptrdiff_t n, std::ptrdiff_t size, Body body, void* context) {
    for (std::ptrdiff_t begin = (n - 1) / size * size; begin >= 0; begin -= size)
        body(context, begin, n - begin < size ? n : begin + size);
}

int within(int count) { return count < 1 ? 1 : count > MOST ? MOST : count; }

}  // namespace

void share(std::ptrdiff_t n, std::ptrdiff_t least, Body body, void* context) {
    if (n <= 0) return;
    if (std::ptrdiff_t forced = grain.load(std::memory_order_relaxed)) {
        if (forced < 0) return backwards(n, -forced, body, context);
        least = forced;
    }
    std::ptrdiff_t pieces = n / (least < 1 ? 1 : least), threads = pieces < 2 ? 1 : retrograd_get_num_threads();
    if (threads > pieces) threads = pieces;
    if (threads > 1) {
        Pool& ours = the_pool();
        if (!ours.busy.test_and_set(std::memory_order_acquire)) {
            if (pieces > threads * PIECES) pieces = threads * PIECES;
            Job job{body, context, n, (n + pieces - 1) / pieces, static_cast<int>(threads) - 1};
            ours.run(job);
            ours.busy.clear(std::memory_order_release);
            if (job.failed) throw std::bad_alloc();
            return;
        }
    }
    body(context, 0, n);
}

bool may_cut(std::ptrdiff_t n, std::ptrdiff_t least) { return n >= 2 * least || grain.load(std::memory_order_relaxed); }

void set_grain_size(std::ptrdiff_t least) { grain.store(least, std::memory_order_relaxed); }

}  // namespace retrograd

int retrograd_get_num_threads() {
    int asked = retrograd::limit.load(std::memory_order_relaxed);
    if (asked) return asked;
    static const int found = retrograd::within(retrograd::usual());
    return found;
}

void retrograd_set_num_threads(int most) {
    retrograd::limit.store(retrograd::within(most), std::memory_order_relaxed);
}
