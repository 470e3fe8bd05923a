/* Nodes of graphs whose parameters the driver describes in another way. */
#include "boxes.h"

/* `cudaKernelNodeParams`, and after it what the driver's structure has in addition. */
typedef struct {
    uintptr_t function;
    Dim3 grid, block;
    unsigned shared;
    uintptr_t arguments, extra, kernel, context;
} KernelNode;

enum { RUNTIME_SIZE = offsetof(KernelNode, kernel) };

static int make_kernel_node(const void *parameters, KernelNode *node) {
    if (!parameters)
        return INVALID_VALUE;
    *node = (KernelNode){0};
    __builtin_memcpy(node, parameters, RUNTIME_SIZE);
    return runtime_find_kernel(node->function, &node->function);
}

static uintptr_t get_context(void) {
    uintptr_t context = 0;
    cuCtxGetCurrent((uintptr_t)&context);
    return context;
}

/* Begins a call, makes a node from its parameters, and passes it on. */
#define WITH(Type, node, make, call)                                                                                   \
    do {                                                                                                               \
        Type node;                                                                                                     \
        int code = runtime_begin();                                                                                    \
        if (!code)                                                                                                     \
            code = (make);                                                                                             \
        return runtime_end(code ? code : (call));                                                                      \
    } while (0)

int cudaGraphAddKernelNode(uintptr_t result, uintptr_t graph, uintptr_t dependencies, size_t count, const void *parameters) {
    WITH(KernelNode, node, make_kernel_node(parameters, &node),
         cuGraphAddKernelNode_v2(result, graph, dependencies, count, (uintptr_t)&node));
}

int cudaGraphKernelNodeGetParams(uintptr_t handle, void *parameters) {
    KernelNode node;
    int code = parameters ? runtime_begin() : INVALID_VALUE;
    if (!code)
        code = cuGraphKernelNodeGetParams_v2(handle, (uintptr_t)&node);
    if (!code)
        __builtin_memcpy(parameters, &node, RUNTIME_SIZE);
    return runtime_end(code);
}

int cudaGraphKernelNodeSetParams(uintptr_t handle, const void *parameters) {
    WITH(KernelNode, node, make_kernel_node(parameters, &node), cuGraphKernelNodeSetParams_v2(handle, (uintptr_t)&node));
}

int cudaGraphExecKernelNodeSetParams(uintptr_t graph, uintptr_t handle, const void *parameters) {
    WITH(KernelNode, node, make_kernel_node(parameters, &node),
         cuGraphExecKernelNodeSetParams_v2(graph, handle, (uintptr_t)&node));
}

int cudaGraphAddMemcpyNode(uintptr_t result, uintptr_t graph, uintptr_t dependencies, size_t count, const Copy3D *copy) {
    WITH(Box, box, runtime_make_box(copy, &box),
         cuGraphAddMemcpyNode(result, graph, dependencies, count, (uintptr_t)&box, get_context()));
}

int cudaGraphExecMemcpyNodeSetParams(uintptr_t graph, uintptr_t node, const Copy3D *copy) {
    WITH(Box, box, runtime_make_box(copy, &box),
         cuGraphExecMemcpyNodeSetParams(graph, node, (uintptr_t)&box, get_context()));
}

static int make_line(uintptr_t to, uintptr_t from, size_t size, int direction, Box *box) {
    Copy3D copy = {.from = {from, size, size, 1}, .to = {to, size, size, 1}, .extent = {size, 1, 1}, .direction = direction};
    return runtime_make_box(&copy, box);
}

int cudaGraphAddMemcpyNode1D(uintptr_t result, uintptr_t graph, uintptr_t dependencies, size_t count, uintptr_t to,
                             uintptr_t from, size_t size, int direction) {
    WITH(Box, box, make_line(to, from, size, direction, &box),
         cuGraphAddMemcpyNode(result, graph, dependencies, count, (uintptr_t)&box, get_context()));
}

int cudaGraphExecMemcpyNodeSetParams1D(uintptr_t graph, uintptr_t node, uintptr_t to, uintptr_t from, size_t size,
                                       int direction) {
    WITH(Box, box, make_line(to, from, size, direction, &box),
         cuGraphExecMemcpyNodeSetParams(graph, node, (uintptr_t)&box, get_context()));
}

int cudaGraphAddMemsetNode(uintptr_t result, uintptr_t graph, uintptr_t dependencies, size_t count, uintptr_t parameters) {
    ANSWER(cuGraphAddMemsetNode(result, graph, dependencies, count, parameters, get_context()));
}

int cudaGraphExecMemsetNodeSetParams(uintptr_t graph, uintptr_t node, uintptr_t parameters) {
    ANSWER(cuGraphExecMemsetNodeSetParams(graph, node, parameters, get_context()));
}
