/* Copies of boxes, which the driver describes by one structure. */
#pragma once
#include "runtime.h"

typedef struct {
    size_t x, y, z;
} Position;

/* `cudaMemcpy3DParms`. */
typedef struct {
    uintptr_t from_array;
    Position from_position;
    Pitched from;
    uintptr_t to_array;
    Position to_position;
    Pitched to;
    Extent extent;
    int direction;
} Copy3D;

typedef struct {
    size_t x, y, z, level;
    unsigned memory;
    uintptr_t host, address, array, reserved;
    size_t pitch, height;
} BoxSide;

/* `CUDA_MEMCPY3D`. */
typedef struct {
    BoxSide from, to;
    size_t width, height, depth;
} Box;

int runtime_make_box(const Copy3D *copy, Box *box);
