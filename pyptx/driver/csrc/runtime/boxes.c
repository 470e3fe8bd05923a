/* Copies of boxes, with a row of memory after another. */
#include "boxes.h"

static BoxSide make_side(Position position, Pitched memory, int type) {
    uintptr_t host = type == HOST_MEMORY ? memory.address : 0;
    return (BoxSide){
        position.x, position.y, position.z, 0, type, host, type == HOST_MEMORY ? 0 : memory.address, 0, 0, memory.pitch,
        memory.height,
    };
}

int runtime_make_box(const Copy3D *copy, Box *box) {
    static const struct {
        int from, to;
    } TYPES[] = {
        {HOST_MEMORY, HOST_MEMORY}, {HOST_MEMORY, DEVICE_MEMORY}, {DEVICE_MEMORY, HOST_MEMORY},
        {DEVICE_MEMORY, DEVICE_MEMORY}, {UNIFIED_MEMORY, UNIFIED_MEMORY},
    };
    if (!copy)
        return INVALID_VALUE;
    if (copy->direction < HOST_TO_HOST || copy->direction > ANY_DIRECTION)
        return INVALID_DIRECTION;
    if (copy->from_array || copy->to_array)
        return NOT_SUPPORTED;
    if (copy->extent.width > copy->from.pitch || copy->extent.width > copy->to.pitch)
        return INVALID_PITCH;
    *box = (Box){
        make_side(copy->from_position, copy->from, TYPES[copy->direction].from),
        make_side(copy->to_position, copy->to, TYPES[copy->direction].to),
        copy->extent.width, copy->extent.height, copy->extent.depth,
    };
    return SUCCESS;
}

static int copy_box(const Copy3D *copy) {
    Box box;
    int code = runtime_begin();
    if (!code)
        code = runtime_make_box(copy, &box);
    return runtime_end(code ? code : (runtime_per_thread ? cuMemcpy3D_v2_ptds : cuMemcpy3D_v2)((uintptr_t)&box));
}

static int submit_box(const Copy3D *copy, uintptr_t stream) {
    Box box;
    int code = runtime_begin();
    if (!code)
        code = runtime_make_box(copy, &box);
    return runtime_end(code ? code : cuMemcpy3DAsync_v2((uintptr_t)&box, runtime_stream(stream)));
}

int cudaMemcpy3D(const Copy3D *copy) {
    return copy_box(copy);
}

int cudaMemcpy3DAsync(const Copy3D *copy, uintptr_t stream) {
    return submit_box(copy, stream);
}

static Copy3D make_copy(uintptr_t to, size_t to_pitch, uintptr_t from, size_t from_pitch, size_t width, size_t height,
                        int direction) {
    return (Copy3D){
        .from = {from, from_pitch, width, height}, .to = {to, to_pitch, width, height}, .extent = {width, height, 1},
        .direction = direction,
    };
}

int cudaMemcpy2D(uintptr_t to, size_t to_pitch, uintptr_t from, size_t from_pitch, size_t width, size_t height,
                 int direction) {
    Copy3D copy = make_copy(to, to_pitch, from, from_pitch, width, height, direction);
    return copy_box(&copy);
}

int cudaMemcpy2DAsync(uintptr_t to, size_t to_pitch, uintptr_t from, size_t from_pitch, size_t width, size_t height,
                      int direction, uintptr_t stream) {
    Copy3D copy = make_copy(to, to_pitch, from, from_pitch, width, height, direction);
    return submit_box(&copy, stream);
}
