/* What nvcc's code registers before `main`: fatbins, and the functions and variables in them. A module is loaded when
 * something in it is used for the first time on a device. */
#include "runtime.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct Binary {
    uintptr_t image;
    uintptr_t modules[MOST_DEVICES];
    int codes[MOST_DEVICES];
} Binary;

/* A function or variable of the program: its address on the host, and its name in the module. */
typedef struct Item {
    uintptr_t address;
    Binary *binary;
    const char *name;
    int is_managed;
    struct Item *next;
} Item;

static Item *kernels, *variables;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

Binary *__cudaRegisterFatBinary(uintptr_t image) {
    Binary *binary = calloc(1, sizeof *binary);
    if (!binary)
        abort();
    binary->image = image;
    return binary;
}

void __cudaRegisterFatBinaryEnd(Binary *binary) {
}

static void add(Item **list, Binary *binary, uintptr_t address, const char *name, int is_managed) {
    Item *item = malloc(sizeof *item);
    if (!item)
        abort();
    pthread_mutex_lock(&lock);
    *item = (Item){address, binary, name, is_managed, *list};
    *list = item;
    pthread_mutex_unlock(&lock);
}

void __cudaRegisterFunction(Binary *binary, uintptr_t function, char *device_function, const char *name, int threads,
                            void *thread, void *block, void *block_size, void *grid_size, int *warp_size) {
    add(&kernels, binary, function, name, 0);
}

void __cudaRegisterVar(Binary *binary, uintptr_t variable, char *address, const char *name, int is_external, size_t size,
                       int is_constant, int is_global) {
    add(&variables, binary, variable, name, 0);
}

void __cudaRegisterManagedVar(Binary *binary, uintptr_t pointer, char *address, const char *name, int is_external,
                              size_t size, int is_constant, int is_global) {
    add(&variables, binary, pointer, name, 1);
}

static void remove_items(Item **list, Binary *binary) {
    while (*list) {
        Item *item = *list;
        if (item->binary == binary) {
            *list = item->next;
            free(item);
        } else {
            list = &item->next;
        }
    }
}

void __cudaUnregisterFatBinary(Binary *binary) {
    pthread_mutex_lock(&lock);
    remove_items(&kernels, binary);
    remove_items(&variables, binary);
    pthread_mutex_unlock(&lock);
    for (int device = 0; device < MOST_DEVICES; device++)
        if (binary->modules[device])
            cuModuleUnload(binary->modules[device]);
    free(binary);
}

void runtime_forget_modules(int device) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 2; i++)
        for (Item *item = i ? variables : kernels; item; item = item->next)
            item->binary->modules[device] = item->binary->codes[device] = 0;
    pthread_mutex_unlock(&lock);
}

/* Managed variables have a pointer on the host. */
static int connect_managed(Binary *binary, uintptr_t module) {
    for (Item *item = variables; item; item = item->next)
        if (item->binary == binary && item->is_managed) {
            int code = cuModuleGetGlobal_v2(item->address, 0, module, (uintptr_t)item->name);
            if (code)
                return code;
        }
    return SUCCESS;
}

/* Whether an image will never load, which is explained once. */
static int is_final(int code) {
    return code >= 200 && code < 400;
}

static int load(Binary *binary, uintptr_t *module) {
    int device, code = cuCtxGetDevice((uintptr_t)&device);
    if (code)
        return code;
    if (!binary->modules[device] && !binary->codes[device]) {
        code = cuModuleLoadFatBinary((uintptr_t)&binary->modules[device], binary->image);
        if (!code)
            code = connect_managed(binary, binary->modules[device]);
        if (is_final(code))
            binary->codes[device] = code;
        if (code)
            return code;
    }
    *module = binary->modules[device];
    return binary->codes[device];
}

char __cudaInitModule(Binary *binary) {
    uintptr_t module;
    pthread_mutex_lock(&lock);
    int code = runtime_begin();
    if (!code)
        code = load(binary, &module);
    pthread_mutex_unlock(&lock);
    return !runtime_end(code);
}

static Item *find(Item *list, uintptr_t address) {
    pthread_mutex_lock(&lock);
    while (list && (list->is_managed ? *(uintptr_t *)list->address : list->address) != address)
        list = list->next;
    pthread_mutex_unlock(&lock);
    return list;
}

static int load_item(const Item *item, uintptr_t *module) {
    pthread_mutex_lock(&lock);
    int code = load(item->binary, module);
    pthread_mutex_unlock(&lock);
    return code;
}

/* Anything but a function of the program is a handle already. */
int runtime_find_kernel(uintptr_t function, uintptr_t *kernel) {
    uintptr_t module;
    Item *item = find(kernels, function);
    *kernel = function;
    if (!item)
        return cuFuncLoad(function) ? INVALID_DEVICE_FUNCTION : SUCCESS;
    int code = load_item(item, &module);
    if (!code)
        code = cuModuleGetFunction((uintptr_t)kernel, module, (uintptr_t)item->name);
    return code == NOT_FOUND ? INVALID_DEVICE_FUNCTION : code;
}

int runtime_find_variable(uintptr_t symbol, uintptr_t *address, size_t *size) {
    uintptr_t module;
    Item *item = find(variables, symbol);
    if (!item)
        return INVALID_SYMBOL;
    int code = load_item(item, &module);
    if (!code)
        code = cuModuleGetGlobal_v2((uintptr_t)address, (uintptr_t)size, module, (uintptr_t)item->name);
    return code == NOT_FOUND ? INVALID_SYMBOL : code;
}

int cudaGetSymbolAddress(uintptr_t *result, uintptr_t symbol) {
    size_t size;
    ANSWER(result ? runtime_find_variable(symbol, result, &size) : INVALID_VALUE);
}

int cudaGetSymbolSize(size_t *result, uintptr_t symbol) {
    uintptr_t address;
    ANSWER(result ? runtime_find_variable(symbol, &address, result) : INVALID_VALUE);
}
