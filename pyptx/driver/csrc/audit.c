/* An auditor of the dynamic linker (rtld-audit): redirects every search for the driver to the simulated one, and adds
 * the option that stores PTX in cubins to what programs pass to NVRTC and nvJitLink. Knows no driver function. */
#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *driver;
static int adds_line_info;

static int is_on(const char *name, int otherwise) {
    const char *value = getenv(name);
    return value ? !strcmp(value, "1") : otherwise;
}

unsigned la_version(unsigned version) {
    driver = getenv("PYPTX_DRIVER_LIBRARY");
    adds_line_info = is_on("PYPTX_DRIVER_FROM_IMAGES", 0) && is_on("PYPTX_DRIVER_LINE_INFO", 1);
    if (!driver)
        return 0;
    return version < LAV_CURRENT ? version : LAV_CURRENT;
}

static const char *find_file(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag) {
    const char *file = find_file(name);
    return (char *)(!strcmp(file, "libcuda.so.1") || !strcmp(file, "libcuda.so") ? driver : name);
}

static int starts_with(const char *text, const char *start) {
    return !strncmp(text, start, strlen(start));
}

unsigned la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie) {
    if (!adds_line_info)
        return 0;
    const char *file = find_file(map->l_name);
    int is_compiler = starts_with(file, "libnvrtc") || starts_with(file, "libnvJitLink");
    return LA_FLG_BINDFROM | (is_compiler ? LA_FLG_BINDTO : 0);
}

static int stores_ptx(int count, const char *const *options) {
    static const char *const EQUIVALENT[] = {"--generate-line-info", "-lineinfo", "--device-debug", "-G", "-g"};
    for (int i = 0; i < count; i++)
        for (size_t j = 0; j < sizeof EQUIVALENT / sizeof *EQUIVALENT; j++)
            if (!strcmp(options[i], EQUIVALENT[j]))
                return 1;
    return 0;
}

static void add(const char *option, const char *function, int count, const char *const *options, const char **all,
                int *is_known) {
    for (int i = 0; i < count; i++)
        all[i] = options[i];
    all[count] = option;
    if (!__atomic_exchange_n(is_known, 1, __ATOMIC_RELAXED))
        dprintf(2, "pyptx: %s gets the option %s, which stores PTX in the cubin; --no-line-info leaves it out\n", function,
                option);
}

typedef int (*Compile)(void *program, int count, const char *const *options);
typedef int (*Create)(void *linker, uint32_t count, const char *const *options);

/* A process with two versions of a compiler is rare; the option is added for the first. */
static uintptr_t compile, create;

static int compile_with_line_info(void *program, int count, const char *const *options) {
    static int is_known;
    if (count < 0 || stores_ptx(count, options))
        return ((Compile)compile)(program, count, options);
    const char *all[count + 1];
    add("--generate-line-info", "nvrtcCompileProgram", count, options, all, &is_known);
    return ((Compile)compile)(program, count + 1, all);
}

static int create_with_line_info(void *linker, uint32_t count, const char *const *options) {
    static int is_known;
    if (stores_ptx(count, options))
        return ((Create)create)(linker, count, options);
    const char *all[count + 1];
    add("-lineinfo", "nvJitLinkCreate", count, options, all, &is_known);
    return ((Create)create)(linker, count + 1, all);
}

static uintptr_t replace(uintptr_t *first, uintptr_t address, uintptr_t replacement) {
    if (!*first)
        *first = address;
    return *first == address ? replacement : address;
}

uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned index, uintptr_t *from, uintptr_t *to, unsigned *flags,
                       const char *name) {
    if (!strcmp(name, "nvrtcCompileProgram"))
        return replace(&compile, symbol->st_value, (uintptr_t)compile_with_line_info);
    /* The header renames it, with the version. */
    if (!strcmp(name, "nvJitLinkCreate") || starts_with(name, "__nvJitLinkCreate_"))
        return replace(&create, symbol->st_value, (uintptr_t)create_with_line_info);
    return symbol->st_value;
}
