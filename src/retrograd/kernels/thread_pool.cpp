// One thread pool for the process.  Its threads start at the first work for them, and end with the process.  Without
// work they spin for a while before they sleep, because waking a sleeping thread takes longer than most of the work.
//
// The workers serve one caller at a time: a second caller runs its job alone.  That suits several Python threads that
// run kernels, and kernels within kernels.  The caller runs chunks like every worker, and waits only for workers that
// have begun, so that workers that wake late cost nothing.
//
// A system may leave a waking thread on the processor of the thread that wakes it, for seconds, while another one is
// idle: spinning there it takes the caller's time, and it works only when the caller does not.  So workers leave the
// processors of the threads before them.

#include "thread_pool.hpp"

#include <algorithm>
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
#if defined(__linux__)
#include <sched.h>
#endif

namespace retrograd {
namespace {

constexpr int MAX_THREADS = 256;
constexpr std::ptrdiff_t CHUNKS_PER_THREAD = 4;  // at most

// Returns how long a waiting thread spins.
std::chrono::microseconds spin_duration() {
    const char* setting = std::getenv("OMP_WAIT_POLICY");
    const bool passive = setting && (setting[0] == 'p' || setting[0] == 'P');
    return std::chrono::microseconds(passive ? 0 : 1000);
}
const std::chrono::microseconds SPINNING = spin_duration();

inline void relax() {
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) && defined(__GNUC__)
    __asm__ __volatile__("yield");
#endif
}

using Clock = std::chrono::steady_clock;

// A thread that has lost its processor for longer than LOST while it waited shares it with other programs.  For a while,
// waiting threads sleep then: spinning, they would use up the time that the system gives them, and work late.
constexpr std::chrono::microseconds LOST{200};
constexpr std::chrono::milliseconds SLEEPING{50};
std::atomic<Clock::rep> sleeps_until{0};

bool threads_sleep(Clock::time_point now) {
    return SPINNING.count() == 0 || now.time_since_epoch().count() < sleeps_until.load(std::memory_order_relaxed);
}

// While they sleep, every job has to wake them, which takes longer than jobs of fewer than this many times two chunks.
constexpr std::ptrdiff_t CHUNKS_WORTH_WAKING = 4;

// Spins until a condition is true; returns false after SPINNING, and while threads sleep.  Yields the processor to
// threads with work, and calls `before_yield` before it does.
template <class F, class G>
bool spin_until(F condition, G before_yield) {
    auto now = Clock::now();
    if (threads_sleep(now)) {
        before_yield();
        return condition();
    }
    for (const auto end = now + SPINNING; now < end;) {
        for (int i = 0; i < 64; i++) {
            if (condition()) return true;
            relax();
        }
        before_yield();
        std::this_thread::yield();
        const auto before = now;
        now = Clock::now();
        if (now - before > LOST) {
            sleeps_until.store((now + SLEEPING).time_since_epoch().count(), std::memory_order_relaxed);
            return condition();
        }
    }
    return false;
}

// The processors of the caller and of the workers when they last looked, in the order of their start.
class Processors {
public:
    Processors() {
        for (auto& each : processor) each = -1;
    }

    // Records the processor of a thread.
    void record(int thread) {
#if defined(__linux__)
        processor[thread].store(sched_getcpu(), std::memory_order_relaxed);
#endif
    }

    // Records the processor of a worker, and moves it if a thread before it is there, and one without any is allowed.
    void leave_shared(int worker) {
#if defined(__linux__)
        record(worker);
        const int here = processor[worker].load(std::memory_order_relaxed);
        for (int i = 0; i < worker && here >= 0; i++)
            if (processor[i].load(std::memory_order_relaxed) == here) return move(worker);
#endif
    }

private:
    std::atomic<int> processor[MAX_THREADS];  // -1: unknown

#if defined(__linux__)
    void move(int worker) {
        cpu_set_t allowed, free;
        if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
        free = allowed;
        for (int i = 0; i <= worker; i++) CPU_CLR(processor[i].load(std::memory_order_relaxed), &free);
        if (CPU_COUNT(&free) == 0) return;
        sched_setaffinity(0, sizeof free, &free);  // moves at once
        sched_setaffinity(0, sizeof allowed, &allowed);
        record(worker);
    }
#endif
};

struct Job {
    Body body;
    void* context;
    std::ptrdiff_t n, size;
    int slots;  // free slots for workers; guarded by the pool's lock
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

    void run(Job& next_job) {
        start(next_job.slots);
        {
            std::lock_guard<std::mutex> hold(lock);
            job = &next_job;
        }
        processors.record(0);
        number++;  // after unlocking, because the spinning threads take the lock next
        if (asleep) {
            { std::lock_guard<std::mutex> hold(lock); }  // a thread that had just checked is asleep after this
            wake.notify_all();
        }
        next_job.work();
        {
            std::lock_guard<std::mutex> hold(lock);
            job = nullptr;
        }
        if (spin_until([this] { return working == 0; }, [] {})) return;
        std::unique_lock<std::mutex> hold(lock);
        done.wait(hold, [this] { return working == 0; });
    }

private:
    std::mutex lock;
    std::condition_variable wake, done;
    Job* job = nullptr;
    Processors processors;
    std::atomic<unsigned long> number{0};  // of the current job
    std::atomic<int> working{0}, asleep{0};
    int workers = 0;

    void start(int count) {
        try {
            for (; workers < count; workers++) std::thread([this, i = workers + 1] { worker_loop(i); }).detach();
        } catch (const std::exception&) {  // no more threads or memory: the existing threads do the work
        }
    }

    void worker_loop(int worker) {
        for (unsigned long last_number = 0;;) {
            spin_until([&] { return number != last_number; }, [&] { processors.leave_shared(worker); });
            std::unique_lock<std::mutex> hold(lock);
            asleep++;
            wake.wait(hold, [&] { return number != last_number; });
            asleep--;
            last_number = number;
            if (!job || job->slots == 0) continue;
            job->slots--;
            working++;
            Job* current = job;
            hold.unlock();
            current->work();
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

Pool& get_pool() {
    Pool* found = pool.load();
    if (found) return *found;
    Pool* created = new Pool;
    if (pool.compare_exchange_strong(found, created)) return *created;
    delete created;
    return *found;
}

int default_num_threads() {
    const char* setting = std::getenv("OMP_NUM_THREADS");  // may be a list, for levels of nesting
    int count = setting ? std::atoi(setting) : 0;
    return count > 0 ? count : static_cast<int>(std::thread::hardware_concurrency());
}

void run_reversed(std::ptrdiff_t n, std::ptrdiff_t size, Body body, void* context) {
    for (std::ptrdiff_t begin = (n - 1) / size * size; begin >= 0; begin -= size)
        body(context, begin, n - begin < size ? n : begin + size);
}

std::ptrdiff_t divide_up(std::ptrdiff_t n, std::ptrdiff_t size) { return (n + size - 1) / size; }

// Returns the indices that the busiest thread gets if all threads run equally fast.
std::ptrdiff_t longest_share(std::ptrdiff_t n, std::ptrdiff_t size, std::ptrdiff_t threads) {
    return divide_up(divide_up(n, size), threads) * size;
}

// Returns whether n indices are worth sharing now.  An index that fills a chunk alone may have any amount of work.
bool worth_sharing(std::ptrdiff_t n, std::ptrdiff_t min_chunk) {
    return min_chunk <= 1 || n >= 2 * CHUNKS_WORTH_WAKING * min_chunk || grain.load(std::memory_order_relaxed) ||
           !threads_sleep(Clock::now());
}

int clamp_num_threads(int count) { return count < 1 ? 1 : count > MAX_THREADS ? MAX_THREADS : count; }

}  // namespace

void parallel_for(std::ptrdiff_t n, std::ptrdiff_t min_chunk, Body body, void* context) {
    if (n <= 0) return;
    if (std::ptrdiff_t forced = grain.load(std::memory_order_relaxed)) {
        if (forced < 0) return run_reversed(n, -forced, body, context);
        min_chunk = forced;
    }
    const std::ptrdiff_t threads = std::min<std::ptrdiff_t>(retrograd_get_num_threads(), n / std::max<std::ptrdiff_t>(min_chunk, 1));
    if (threads > 1 && worth_sharing(n, min_chunk)) {
        Pool& workers_pool = get_pool();
        if (!workers_pool.busy.test_and_set(std::memory_order_acquire)) {
            Job job{body, context, n, chunk_size(n, min_chunk, threads), static_cast<int>(threads) - 1};
            workers_pool.run(job);
            workers_pool.busy.clear(std::memory_order_release);
            if (job.failed) throw std::bad_alloc();
            return;
        }
    }
    body(context, 0, n);
}

std::ptrdiff_t chunk_size(std::ptrdiff_t n, std::ptrdiff_t min_chunk, std::ptrdiff_t threads) {
    const std::ptrdiff_t most = std::min(n / std::max<std::ptrdiff_t>(min_chunk, 1), threads * CHUNKS_PER_THREAD);
    const std::ptrdiff_t size = divide_up(n, most), even = divide_up(n, most - most % threads);
    return longest_share(n, even, threads) < longest_share(n, size, threads) ? even : size;
}

bool may_split(std::ptrdiff_t n, std::ptrdiff_t min_chunk) { return n >= 2 * min_chunk || grain.load(std::memory_order_relaxed); }

void set_grain_size(std::ptrdiff_t min_chunk) { grain.store(min_chunk, std::memory_order_relaxed); }

}  // namespace retrograd

int retrograd_get_num_threads() {
    int setting = retrograd::limit.load(std::memory_order_relaxed);
    if (setting) return setting;
    static const int found = retrograd::clamp_num_threads(retrograd::default_num_threads());
    return found;
}

void retrograd_set_num_threads(int count) {
    retrograd::limit.store(retrograd::clamp_num_threads(count), std::memory_order_relaxed);
}
