/* What the entry points of the library call. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* What the kind `handle` stands for: a structure that programs pass by value. */
typedef struct {
    char bytes[64];
} Handle;

int pyptx_driver_call(int entry, const uint64_t *arguments);
/* The same for functions that end or free something, or choose the context for it: they succeed when Python has ended,
 * since the process ends too. */
int pyptx_driver_give_back(int entry, const uint64_t *arguments);
int pyptx_driver_has_ended(void);
/* A function of Python that answers whether it knows an address, which the program is about to read or write. */
typedef int (*Fault)(uint64_t address, int writes);
/* Call it, whether or not this thread is in Python; 0 if there is no Python. */
int pyptx_driver_report(Fault function, uint64_t address, int writes);
int pyptx_driver_refuse(const char *name);

/* A function of the driver, as programs look it up. Functions are in alphabetical order, their versions ascending. */
typedef struct {
    const char *function;
    int version;
    int per_thread;
    void *address;
} Symbol;

extern const Symbol pyptx_driver_symbols[];
extern const size_t pyptx_driver_symbol_count;
