/* Reports the program's own accesses to memory that is protected while the device may use it. */
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#if defined(__x86_64__)
#include <ucontext.h>
#endif

enum { PAGE_WRITTEN = 1 << 1 };

static Fault report;
static struct sigaction previous;

/* A handled access is repeated when this returns; any other one faults again, as without this library. */
static void handle(int number, siginfo_t *info, void *context) {
    int error = errno, writes = 0;
#if defined(__x86_64__)
    writes = (((ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] & PAGE_WRITTEN) != 0;
#endif
    if (info->si_code != SEGV_ACCERR || !pyptx_driver_report(report, (uint64_t)(uintptr_t)info->si_addr, writes))
        sigaction(SIGSEGV, &previous, NULL);
    errno = error;
}

/* Call a function for each access to a protected page, which returns whether the access may be repeated. Returns
 * whether this system tells reads from writes. */
int pyptx_driver_watch(Fault function) {
#if defined(__x86_64__)
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    report = function;
    return sigaction(SIGSEGV, &action, &previous) == 0;
#else
    return 0;
#endif
}
