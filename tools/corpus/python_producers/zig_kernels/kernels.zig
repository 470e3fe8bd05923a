//! Kernels in Zig: saturating arithmetic, vectors, packed bits, sorting networks, exact integers.

fn In(comptime T: type) type {
    return [*]addrspace(.global) const T;
}

fn Out(comptime T: type) type {
    return [*]addrspace(.global) T;
}

fn index() u32 {
    return @workGroupId(0) * @workGroupSize(0) + @workItemId(0);
}

export fn saturated_sum(x: In(i16), y: In(i16), out: Out(i16), n: u32) callconv(.nvptx_kernel) void {
    const i = index();
    if (i < n) out[i] = x[i] +| y[i];
}

export fn sorting_network(rows: Out(u32), n: u32) callconv(.nvptx_kernel) void {
    const i = index();
    if (i >= n) return;
    var values: [6]u32 = undefined;
    inline for (0..6) |k| values[k] = rows[i * 6 + k];
    const pairs = [_][2]usize{ .{ 0, 5 }, .{ 1, 3 }, .{ 2, 4 }, .{ 1, 2 }, .{ 3, 4 }, .{ 0, 3 }, .{ 2, 5 }, .{ 0, 1 }, .{ 2, 3 }, .{ 4, 5 }, .{ 1, 2 }, .{ 3, 4 } };
    inline for (pairs) |pair| {
        const low = @min(values[pair[0]], values[pair[1]]);
        const high = @max(values[pair[0]], values[pair[1]]);
        values[pair[0]] = low;
        values[pair[1]] = high;
    }
    inline for (0..6) |k| rows[i * 6 + k] = values[k];
}

export fn determinants(matrices: In(f64), out: Out(f64), n: u32) callconv(.nvptx_kernel) void {
    const i = index();
    if (i >= n) return;
    const m = matrices + i * 9;
    out[i] = m[0] * (m[4] * m[8] - m[5] * m[7]) - m[1] * (m[3] * m[8] - m[5] * m[6]) + m[2] * (m[3] * m[7] - m[4] * m[6]);
}

const Colour = packed struct(u16) { blue: u5, green: u6, red: u5 };

export fn unpack_colours(pixels: In(u16), out: Out(u8), n: u32) callconv(.nvptx_kernel) void {
    const i = index();
    if (i >= n) return;
    const c: Colour = @bitCast(pixels[i]);
    out[i * 3] = (@as(u8, c.red) << 3) | (c.red >> 2);
    out[i * 3 + 1] = (@as(u8, c.green) << 2) | (c.green >> 4);
    out[i * 3 + 2] = (@as(u8, c.blue) << 3) | (c.blue >> 2);
}

export fn vector_clamp(x: In(@Vector(4, f32)), out: Out(@Vector(4, f32)), n: u32) callconv(.nvptx_kernel) void {
    const i = index();
    if (i >= n) return;
    const low: @Vector(4, f32) = @splat(-0.5);
    const high: @Vector(4, f32) = @splat(0.75);
    out[i] = @min(@max(x[i], low), high) * @Vector(4, f32){ 1.0, 2.0, 4.0, 8.0 };
}

export fn prime_tests(numbers: In(u32), out: Out(u8), n: u32) callconv(.nvptx_kernel) void {
    const i = index();
    if (i >= n) return;
    const number = numbers[i];
    var prime: u8 = @intFromBool(number > 1);
    var k: u32 = 2;
    while (k * k <= number) : (k += 1) {
        if (number % k == 0) prime = 0;
    }
    out[i] = prime;
}

export fn shared_histogram(x: In(u8), out: Out(u32), n: u32) callconv(.nvptx_kernel) void {
    const i = index();
    if (i < n) _ = @atomicRmw(u32, &out[x[i] % 16], .Add, 1, .monotonic);
}
