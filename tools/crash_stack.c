/* When a test process crashes: write the native stack, which Python's faulthandler lacks before Python 3.14.
 *
 * conftest.py loads it with ctypes, if `make test` has built it: a library of its own, so that the package has no code
 * that only tests use. */
#define _GNU_SOURCE
#include <execinfo.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { SIGNALS = 5, DEPTH = 24 };
static const int signals[SIGNALS] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
static struct sigaction previous[SIGNALS];
static int output = 2;
static char running[512] = "no test";

static void say(const char *text) {
    if (write(output, text, strlen(text)) < 0) return;
}

/* The handler that was installed before, that of faulthandler, writes the Python stack afterwards. */
static void on_crash(int number) {
    void *frames[DEPTH];
    for (int i = 0; i < SIGNALS; i++)
        if (signals[i] == number) sigaction(number, &previous[i], NULL);
    say("\ncrashed in ");
    say(running);
    say("; the native stack (`addr2line -Cfe FILE ADDRESS` names functions that have no name here):\n");
    backtrace_symbols_fd(frames, backtrace(frames, DEPTH), output);
    raise(number);
}

/* Write the stack of a crash to a file descriptor. */
void write_stack_on_crash(int descriptor) {
    void *frame;
    struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK | SA_NODEFER};
    backtrace(&frame, 1); /* the first call allocates memory, which a handler must not */
    output = descriptor;
    for (int i = 0; i < SIGNALS; i++) sigaction(signals[i], &action, &previous[i]);
}

/* Remember the name of the test that runs. */
void set_running_test(const char *name) {
    strncpy(running, name, sizeof running - 1);
}
