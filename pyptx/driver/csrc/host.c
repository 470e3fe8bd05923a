/* The bridge between programs that call the driver and the Python that answers: connects on the first call, embeds
 * Python in a program that has none, and refuses calls after a fork. Knows no driver function. */
#define _GNU_SOURCE
#include "host.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, NOT_INITIALIZED = 3, DEINITIALIZED = 4, NO_DEVICE = 100, NOT_SUPPORTED = 801, UNKNOWN = 999, INTERRUPTED = -1 };

typedef void (*Answer)(int entry, const uint64_t *arguments, uint64_t thread, int *result);

static Answer answer;
static void (*interrupt)(void);
static int (*run_python)(const char *);
static int (*is_initialized)(void);
static int (*ensure)(void);
static void (*release)(int);
static void (*fetch_exception)(void **, void **, void **);
static void (*restore_exception)(void *, void *, void *);
static int is_forked, has_failed, has_warned;
static pthread_mutex_t connecting = PTHREAD_MUTEX_INITIALIZER;
static uint64_t last_thread;
static _Thread_local uint64_t thread_number;

/* Python, found in the process or in the library that PYPTX_DRIVER_LIBPYTHON names: only functions of the stable ABI. */
typedef struct {
    int (*is_initialized)(void);
    void (*initialize)(int);
    int (*ensure)(void);
    void (*release)(int);
    void *(*save_thread)(void);
    int (*run)(const char *);
} Python;

static int find_python(void *handle, Python *python) {
    *(void **)&python->is_initialized = dlsym(handle, "Py_IsInitialized");
    *(void **)&python->initialize = dlsym(handle, "Py_InitializeEx");
    *(void **)&python->ensure = dlsym(handle, "PyGILState_Ensure");
    *(void **)&python->release = dlsym(handle, "PyGILState_Release");
    *(void **)&python->save_thread = dlsym(handle, "PyEval_SaveThread");
    *(void **)&python->run = dlsym(handle, "PyRun_SimpleString");
    return python->is_initialized && python->initialize && python->ensure && python->release && python->save_thread &&
           python->run;
}

static const char NO_LIBRARY[] =
    "a program without Python needs the shared library of Python, and PYPTX_DRIVER_LIBPYTHON names none: "
    "run pyptx with a Python that was built with --enable-shared";

static const char CONNECT[] =
    "import os, signal, sys\n"
    "folders = os.environ.get('PYPTX_DRIVER_PATH', '').split(os.pathsep)\n"
    "sys.path += [folder for folder in folders if folder and folder not in sys.path]\n"
    "sys.path.insert(0, folders[0])\n"
    "import pyptx.driver.connection\n"
    "del sys.path[0]\n"
    "pyptx.driver.connection.connect()\n";

/* Python that only this library has started ends with the process, and not by itself. */
static void finish(void) {
    if (is_forked || !run_python || !ensure || !release)
        return;
    int state = ensure();
    run_python("import pyptx.driver.connection\npyptx.driver.connection.finish_all()\n");
    release(state);
}

static const char *connect_to_python(void) {
    Python python;
    int embeds = !find_python(RTLD_DEFAULT, &python);
    if (embeds) {
        const char *name = getenv("PYPTX_DRIVER_LIBPYTHON");
        void *handle = name && *name ? dlopen(name, RTLD_NOW | RTLD_GLOBAL) : NULL;
        if (!handle)
            return name && *name ? dlerror() : NO_LIBRARY;
        if (!find_python(handle, &python))
            return "PYPTX_DRIVER_LIBPYTHON does not name a Python library";
    }
    /* Python's module `signal` takes SIGINT even so, and Control-C would not end the program. */
    struct sigaction interruption;
    sigaction(SIGINT, NULL, &interruption);
    int state = -1;
    if (python.is_initialized())
        state = python.ensure();
    else
        python.initialize(0);
    int status = python.run(CONNECT);
    if (state < 0)
        sigaction(SIGINT, &interruption, NULL);
    if (embeds && status == 0 && atexit(finish) == 0)
        run_python = python.run;
    if (state < 0)
        python.save_thread();
    else
        python.release(state);
    if (status)
        return "Python could not load pyptx.driver";
    return answer ? NULL : "";
}

static void refuse_calls(void) {
    is_forked = answer != NULL || has_failed;
}

void pyptx_driver_connect(Answer function) {
    *(void **)&interrupt = dlsym(RTLD_DEFAULT, "PyErr_SetInterrupt");
    *(void **)&is_initialized = dlsym(RTLD_DEFAULT, "Py_IsInitialized");
    *(void **)&ensure = dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
    *(void **)&release = dlsym(RTLD_DEFAULT, "PyGILState_Release");
    *(void **)&fetch_exception = dlsym(RTLD_DEFAULT, "PyErr_Fetch");
    *(void **)&restore_exception = dlsym(RTLD_DEFAULT, "PyErr_Restore");
    if (!answer)
        pthread_atfork(NULL, NULL, refuse_calls);
    answer = function;
}

/* Whether Python has ended, after which destructors of the program still run. */
int pyptx_driver_has_ended(void) {
    return is_initialized && !is_initialized();
}

int pyptx_driver_give_back(int entry, const uint64_t *arguments) {
    return pyptx_driver_has_ended() ? SUCCESS : pyptx_driver_call(entry, arguments);
}

/* Calls that a program makes while a Python exception unwinds its stack must not see the exception. */
static void answer_apart(int entry, const uint64_t *arguments, int *result) {
    if (!ensure || !release || !fetch_exception || !restore_exception) {
        answer(entry, arguments, thread_number, result);
        return;
    }
    int state = ensure();
    void *type, *value, *traceback;
    fetch_exception(&type, &value, &traceback);
    answer(entry, arguments, thread_number, result);
    restore_exception(type, value, traceback);
    release(state);
}

int pyptx_driver_report(Fault function, uint64_t address, int writes) {
    if (!ensure || !release || !fetch_exception || !restore_exception || pyptx_driver_has_ended())
        return 0;
    int state = ensure();
    void *type, *value, *traceback;
    fetch_exception(&type, &value, &traceback);
    int is_known = function(address, writes);
    restore_exception(type, value, traceback);
    release(state);
    return is_known;
}

int pyptx_driver_call(int entry, const uint64_t *arguments) {
    if (is_forked) {
        if (!has_warned)
            fputs("pyptx: a forked process cannot use the CUDA driver of its parent: start processes with `spawn`\n", stderr);
        has_warned = 1;
        return NOT_INITIALIZED;
    }
    if (!answer) {
        pthread_mutex_lock(&connecting);
        const char *why = answer || has_failed ? NULL : connect_to_python();
        if (why)
            has_failed = 1;
        /* Of settings, Python has said what is wrong. */
        if (why && *why)
            fprintf(stderr, "pyptx: the simulated CUDA driver cannot start: %s\n", why);
        pthread_mutex_unlock(&connecting);
        if (has_failed)
            return NO_DEVICE;
    }
    if (pyptx_driver_has_ended())
        return DEINITIALIZED;
    if (!thread_number)
        thread_number = __atomic_add_fetch(&last_thread, 1, __ATOMIC_RELAXED);
    /* Python does not set the result if it raises an exception, which it prints. */
    int result = UNKNOWN;
    answer_apart(entry, arguments, &result);
    if (result != INTERRUPTED)
        return result;
    /* Only now, or the interrupt would end the function that answers, and not the program. */
    if (interrupt)
        interrupt();
    return UNKNOWN;
}

int pyptx_driver_refuse(const char *name) {
    fprintf(stderr, "pyptx: the simulated CUDA driver does not support %s\n", name);
    return NOT_SUPPORTED;
}
