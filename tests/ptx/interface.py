"""The public interface: module by module, its names with their arguments and defaults, its attributes and constants."""

from __future__ import annotations

INTERFACE = {
    # A line holds a signature, which may go on in the next, a constant with its value, or names.
    "pyptx": """
kernel(fn=None, *, arch='sm_90a', version=None, in_specs=None, out_specs=None, grid=None, block=(1, 1, 1),
    cluster=(1, 1, 1), smem=0, raw_params=None, extern_smem=False, reqntid=None, raw_directives=None)
intrinsic(fn)
detect_arch()
differentiable_kernel(forward_kernel, backward_kernel, **kwargs)
Kernel.ptx(**kwargs)
Kernel.module(**kwargs)
Kernel.sass(**kwargs)
Kernel.__call__(*args, **kwargs)
Kernel.in_specs Kernel.out_specs Kernel.grid Kernel.block Kernel.cluster Kernel.smem Kernel.template_params
Kernel.arch
TensorSpec.tma_desc()
TensorSpec.name TensorSpec.dtype TensorSpec.rank TensorSpec.shape TensorSpec.layout
Kernel.simulate(*args, schedule='eager', seed=0, check='all', on_hazard='raise')
TmaDescriptorHandle(tensor)
reg smem ptx Tile Layout __version__
""",
    "pyptx.types": """
PtxType(name, bits)
PtxType.ptx
from_name(name)
b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f16 f16x2 bf16 bf16x2 tf32 f32 f64 e4m3 e5m2 pred u16x2 s16x2
e4m3x2 e5m2x2 e2m1 e2m3 e3m2 e2m1x2 ue8m0
f32.ptx = '.f32'
f32.name = 'f32'
f32.bits = 32
pred.ptx = '.pred'
pred.bits = 1
b128.bits = 128
f16x2.bits = 32
tf32.bits = 32
e4m3.bits = 8
""",
    "pyptx.specs": """
Layout
Tile(*dims_and_dtype, dtype=None, layout=Layout.ROW, tma_box=None, tma_rank=2, tma_padding=False)
Tile.rank Tile.symbolic_dims
Tile.resolve_shape(env)
Tile.extract_env(array_shape)
Tile.matches(array_shape, array_dtype_name)
Tile.wgmma_a(m, k, dtype, *, tile_m=None, tile_k=None)
Tile.wgmma_b(k, n, dtype, *, tile_k=None, tile_n=None)
unify_envs(envs)
Layout.ROW Layout.COL Layout.TMA_128B Layout.TMA_64B Layout.TMA_32B Layout.INTERLEAVED
""",
    "pyptx.reg": """
scalar(dtype, init=None, name=None)
array(dtype, count, name=None)
from_(src, dtype)
wgmma_frag(*, m, n, dtype, name=None)
alloc(dtype)
alloc_array(dtype, count)
Reg(name, dtype)
Reg.max(other)
RegArray(base, count, dtype)
RegArray.__getitem__(idx)
RegArray.__setitem__(idx, value)
RegArray.regs()
RegArray.count RegArray.base RegArray.dtype
RegArray.hw_order(*, reverse=False)
PipeRef(left, right)
NegPred(reg)
Reg.min(other)
Reg.name Reg.dtype
use(name, dtype)
""",
    "pyptx.smem": """
alloc(dtype, shape, swizzle=None, align=None, name=None)
wgmma_tile(dtype, shape, major='K', *, align=None, name=None)
mbarrier(count, name=None)
base(name=None)
load(dtype, address)
store(dtype, address, value)
apply_swizzle(logical_offset, swizzle)
SharedAlloc(name, dtype, shape, swizzle, gmma_layout=None, gmma_major=None, byte_offset=0)
SharedAlloc.__getitem__(idx)
SharedAlloc.__setitem__(idx, value)
SharedSlice(alloc, stage)
SharedSlice.name
MbarrierArray(name, count, byte_offset=0)
MbarrierArray.__getitem__(idx)
MbarrierRef(array, idx)
MbarrierRef.name MbarrierRef.byte_offset
""",
    "pyptx.ptx": """
sreg(name)
ctaid_x()
ctaid_y()
global_ptrs(*params)
param(dtype, name, dst=None)
addr(base, offset=None)
var(state_space, dtype, name, *, size=None, align=None, linking=None)
if_(pred_reg)
else_()
loop(label_name, *, pred=None)
range_(start, stop, step=1)
kloop(total, *, unroll, body, loop_label='kloop')
scope()
expr()
pipeline(n_stages, *, cursor=None, phase=None)
PipelineState(n_stages, *, cursor=None, phase=None)
PipelineState.advance()
pipe(src)
raw(text)
label(name)
bra(label, *, pred=None)
ret(*, pred=None)
pragma(value)
loc(file_idx, line, col=0)
file_(file_idx, filename)
mov(dtype, dst, src, *, pred=None)
add(dtype, dst, a, b, *, pred=None)
sub(dtype, dst, a, b, *, pred=None)
mul(dtype, dst, a, b, *, mode=None, pred=None)
mad(*args, mode='lo', pred=None)
shl(dtype, dst, a, b, *, pred=None)
shr(dtype, dst, a, b, *, pred=None)
and_(dtype, dst, a, b, *, pred=None)
or_(dtype, dst, a, b, *, pred=None)
xor_(dtype, dst, a, b, *, pred=None)
not_(dtype, dst, src, *, pred=None)
setp(cmp_op, dtype, pred_out, a, b, *, pred_negate=None)
selp(dtype, dst, true_val, false_val, pred_reg, *, pred=None)
cvt(dst_type, src_type, dst, src, *, rounding=None, ftz=False, sat=False, pred=None)
ld(dtype, dst, addr, *, space='global', cache=None, pred=None)
st(dtype, addr, src, *, space='global', cache=None, pred=None)
ldmatrix(*, dst, src, layout='x4', trans=False, pred=None)
stmatrix(*, smem, regs, layout='x4', trans=False, shape='m8n8', pred=None)
stmatrix_x4_trans_f32_bf16(*, frag, smem_base, lane, row_stride, tmp_bf16=None, tmp_pack=None)
setmaxnreg(count, *, inc=True, pred=None)
setmaxnreg_inc(reg_count, *, pred=None)
setmaxnreg_dec(reg_count, *, pred=None)
elect_sync(dst, pred_out, membermask)
named_barrier(barrier_id, *, count=None)
NamedBarrier(barrier_id, count=None)
NamedBarrier.sync(*, pred=None)
special.laneid()
special.warpid()
special.clock()
warp.reduce_sum(val, *, width=32)
warp.reduce_max(val, *, width=32)
warp.reduce_min(val, *, width=32)
wgmma.mma_async(*, shape, dtype_d, dtype_a, dtype_b, d, a, b, scale_d=False, scale_a=1, scale_b=1, trans_a=0,
    trans_b=0, a_k_offset=0, b_k_offset=0, pred=None)
wgmma.fence(*, pred=None)
wgmma.commit_group(*, pred=None)
wgmma.wait_group(n, *, pred=None)
wgmma.make_descriptor(smem_base, *, leading_byte_offset, stride_byte_offset, swizzle=0, base_offset=0,
    addr_byte_offset=0)
wgmma.auto_descriptor(smem_base, *, dtype, shape, major)
wgmma.masked_descriptor(smem_addr, *, byte_offset=0, mask=262016, const_bits=4611686293305360384)
mma.sync(*, shape, dtype_d, dtype_a, dtype_b, dtype_c, d, a, b, c, a_layout='row', b_layout='col', pred=None)
cp.async_.cg(smem_dst, global_src, byte_count, *, pred=None)
cp.async_.ca(smem_dst, global_src, byte_count, *, pred=None)
cp.async_.commit_group(*, pred=None)
cp.async_.wait_group(n, *, pred=None)
cp.async_.wait_all(*, pred=None)
cp.async_.bulk.commit_group(*, pred=None)
cp.async_.bulk.wait_group(n, *, read=False, pred=None)
cp.async_.bulk.tensor_1d.__call__(*, dst, src, coord=None, mbar=None, cta_group=1, multicast_mask=None, pred=None)
cp.async_.bulk.tensor_2d.__call__(*, dst, src, coord=None, mbar=None, cta_group=1, multicast_mask=None, pred=None)
cp.async_.bulk.tensor_3d.__call__(*, dst, src, coord=None, mbar=None, cta_group=1, multicast_mask=None, pred=None)
cp.async_.bulk.tensor_4d.__call__(*, dst, src, coord=None, mbar=None, cta_group=1, multicast_mask=None, pred=None)
cp.async_.bulk.tensor_5d.__call__(*, dst, src, coord=None, mbar=None, cta_group=1, multicast_mask=None, pred=None)
cp.async_.bulk.tensor_1d.store(*, dst, src, coord=None, pred=None)
cp.async_.bulk.tensor_2d.store(*, dst, src, coord=None, pred=None)
cp.async_.bulk.tensor_3d.store(*, dst, src, coord=None, pred=None)
cp.async_.bulk.tensor_4d.store(*, dst, src, coord=None, pred=None)
cp.async_.bulk.tensor_5d.store(*, dst, src, coord=None, pred=None)
cp.async_.bulk.tensor_1d.shared_cta_global_tile(*, dst, src, coord=None, mbar, cta_group=1, pred=None)
cp.async_.bulk.tensor_2d.shared_cta_global_tile(*, dst, src, coord=None, mbar, cta_group=1, pred=None)
cp.async_.bulk.tensor_3d.shared_cta_global_tile(*, dst, src, coord=None, mbar, cta_group=1, pred=None)
cp.async_.bulk.tensor_4d.shared_cta_global_tile(*, dst, src, coord=None, mbar, cta_group=1, pred=None)
cp.async_.bulk.tensor_5d.shared_cta_global_tile(*, dst, src, coord=None, mbar, cta_group=1, pred=None)
mbarrier.init(mbar, count, *, pred=None)
mbarrier.inval(mbar, *, pred=None)
mbarrier.arrive(mbar, *, pred=None)
mbarrier.arrive_expect_tx(mbar, tx_count, *, pred=None)
mbarrier.expect_tx(mbar, tx_count, *, pred=None)
mbarrier.try_wait(mbar, phase, *, parity=True, pred=None)
mbarrier.wait(mbar, phase, *, pred=None)
mbarrier.array(base, byte_offset, count)
mbarrier.BarrierArray.__getitem__(idx)
mbarrier.BarrierArray.at(stage)
mbarrier.BarrierArray.init_all(count)
mbarrier.BarrierArray.arrive_remote_all(cta_id, count=1)
mbarrier.BarrierSlot.init(count)
mbarrier.BarrierSlot.wait(phase, *, pred=None)
mbarrier.BarrierSlot.arrive(*, sem=None, scope=None, pred=None)
mbarrier.BarrierSlot.arrive_expect_tx(tx_count, *, pred=None)
mbarrier.BarrierSlot.arrive_remote(cta_id, count=1, *, sem=None, scope=None, pred=None)
mbarrier.BarrierSlot.addr_reg()
mbarrier.BarrierSlot.address_operand()
mbarrier.BarrierSlot.byte_offset
fence.proxy_async(*, pred=None)
fence.proxy_async_shared_cta(*, pred=None)
fence.proxy_async_generic_acquire_shared_cluster(*, pred=None)
fence.mbarrier_init(*, pred=None)
bar.sync(n=0, count=None, *, pred=None)
tma.load_3d(dst, src, row=None, col=None, mbar=None, coords=None, *, pred=None)
tma.load_3d_multicast(dst, src, row=None, col=None, mbar=None, mask=None, coords=None, *, issuer=None, pred=None)
tma.store_3d(dst, src, row=None, col=None, coords=None, *, pred=None)
tcgen05.alloc(tmem_addr, ncols, *, cta_group=1, pred=None)
tcgen05.dealloc(taddr, ncols, *, cta_group=1, pred=None)
tcgen05.relinquish_alloc_permit(*, cta_group=1, pred=None)
tcgen05.mma(d_tmem, a_desc, b_desc, idesc, *, cta_group=1, kind='f16', enable_input_d=True, scale_d=None,
    sparse=False, ashift=False, collector_a=None, a_is_tmem=False, sparse_metadata=None, pred_operand=None,
    scale_c=None, pred=None)
tcgen05.mma.async_2sm
tcgen05.fence_before_thread_sync(*, pred=None)
tcgen05.fence_after_thread_sync(*, pred=None)
tcgen05.commit(mbar, *, cta_group=1, multicast=False, multicast_mask=None, space='cluster', pred=None)
tcgen05.wait_ld(*, pred=None)
tcgen05.wait_st(*, pred=None)
tcgen05.ld(dst_regs, taddr, *, shape='16x128b', count=1, dtype='b32', pack=False, pred=None)
tcgen05.st(taddr, src_regs, *, shape='16x128b', count=1, dtype='b32', unpack=False, pred=None)
tcgen05.cp(taddr, src, *, cta_group=1, size='128x256b', src_is_addr=None, pred=None)
tcgen05.shift(taddr, *, cta_group=1, pred=None)
tcgen05.make_instr_desc_f16bf16_f32(*, m=128, n=256, ab_dtype='bf16', a_major='K', b_major='K', scale_a=1,
    scale_b=1, saturate=False, sparse=False, max_shift=0)
tcgen05.descriptor(smem_addr, *, byte_offset=0, stride_bytes, leading_bytes=16, swizzle='128B', version=1,
    base_offset=0, lbo_mode=0)
tcgen05.masked_descriptor(smem_addr, *, byte_offset=0, mask=262128, const_bits=4611756662049538048)
cluster.arrive(*, aligned=False, pred=None)
cluster.wait(*, aligned=False, pred=None)
cluster.sync(*, aligned=False, pred=None)
cluster.rank(cta_rank)
cluster.map_shared_u32(bar_addr, cta_id, *, pred=None)
cluster.arrive_remote(bar_addr, cta_id, count=1, *, pred=None)
cluster.arrive_multicast(bar_addr, mask, count=1, *, pred=None)
cvta.param(src, dst=None)
cvta.to_global(src, dst=None)
elif_ break_ continue_ imm sel inst func printf trap assert_ decl.reg decl.var directive open_block close_block
names layout module prefetch atom red griddepcontrol multimem cp.async_bulk mma.sync st_async red_async tensormap
fence.proxy_async_generic_release_shared_cta(*, pred=None)
fence.sc fence.acq_rel fence.membar bar.arrive bar.red_popc bar.red_and bar.red_or bar.warp_sync special.smid
special.clock64 special.globaltimer special.cluster_ctarank special.lanemask_lt special.tid.x special.tid.y
special.tid.z special.ntid.x special.ntid.y special.ntid.z special.ctaid.x special.ctaid.y special.ctaid.z
special.nctaid.x special.nctaid.y special.nctaid.z special.clusterid.x special.clusterid.y special.clusterid.z
special.cluster_ctaid.x special.cluster_ctaid.y special.cluster_ctaid.z
wgmma.MASKED_DESC_B128 = 0x4000004000010000
wgmma.SWIZZLE_NONE = 0
wgmma.SWIZZLE_128B = 1
wgmma.SWIZZLE_64B = 2
wgmma.SWIZZLE_32B = 3
tcgen05.BLACKWELL_MASKED_DESC_B128 = 0x4000404000010000
warp.reduce warp.all_reduce warp.redux mbarrier.test_wait mbarrier.arrive_drop mbarrier.pending_count
mbarrier.complete_tx
mbarrier.arrive(*, sem=None, scope=None)
mbarrier.arrive_expect_tx(*, sem=None, scope=None)
mbarrier.try_wait(*, sem=None, scope=None)
mbarrier.wait(*, sem=None, scope=None)
cluster.arrive_remote(*, sem=None, scope=None)
cluster.arrive(*, sem=None, scope=None)
cp.async_.bulk.tensor.tile_1d(dst, src, coord, *, mbar=None, cache_hint=None, multicast_mask=None, cta_group=1,
    pred=None)
cp.async_.bulk.tensor.store_1d(dst, src, coord, *, cache_hint=None, pred=None)
cp.async_.bulk.tensor.tile_2d(dst, src, coord, *, mbar=None, cache_hint=None, multicast_mask=None, cta_group=1,
    pred=None)
cp.async_.bulk.tensor.store_2d(dst, src, coord, *, cache_hint=None, pred=None)
cp.async_.bulk.tensor.tile_3d(dst, src, coord, *, mbar=None, cache_hint=None, multicast_mask=None, cta_group=1,
    pred=None)
cp.async_.bulk.tensor.store_3d(dst, src, coord, *, cache_hint=None, pred=None)
cp.async_.bulk.tensor.tile_4d(dst, src, coord, *, mbar=None, cache_hint=None, multicast_mask=None, cta_group=1,
    pred=None)
cp.async_.bulk.tensor.store_4d(dst, src, coord, *, cache_hint=None, pred=None)
cp.async_.bulk.tensor.tile_5d(dst, src, coord, *, mbar=None, cache_hint=None, multicast_mask=None, cta_group=1,
    pred=None)
cp.async_.bulk.tensor.store_5d(dst, src, coord, *, cache_hint=None, pred=None)
cp.async_.bulk.tensor.im2col_3d cp.async_.bulk.tensor.im2col_4d cp.async_.bulk.tensor.im2col_5d
cp.async_.bulk.tensor.gather4_2d cp.async_.bulk.tensor.scatter4_2d
""",
    "pyptx.wgmma_layout": """
LayoutType Major
GmmaLayout(layout_type, leading_byte_offset, stride_byte_offset, tma_swizzle, smem_swizzle)
GmmaLayout.swizzle_code
pick_gmma_layout(*, elem_bytes, m_or_n, k, major)
layout_for_a(*, dtype, m, k)
layout_for_b(*, dtype, k, n)
LayoutType.INTERLEAVE = 0
LayoutType.B128 = 1
LayoutType.B64 = 2
LayoutType.B32 = 3
Major.K = 0
Major.MN = 1
""",
    "pyptx.parser": """
parse(source)
ParseError(message, line, col)
tokenize(source)
LexError(message, line, col)
Token(kind, text, line, col, leading_whitespace='')
TokenKind PtxSyntaxError
""",
    "pyptx.emitter": """
emit(module)
""",
    "pyptx.ir": """
RegisterOperand(name)
ImmediateOperand(text)
LabelOperand(name)
VectorOperand(elements)
AddressOperand(base, offset=None)
ParenthesizedOperand(elements)
NegatedOperand(operand)
PipeOperand(left, right)
Predicate(register, negated=False)
Version(major, minor)
Target(targets)
AddressSize(size)
RegDecl(type, name, count=None)
VarDecl(state_space, type, name, array_size=None, alignment=None, initializer=None, linking=None)
Instruction(opcode, modifiers=(), operands=(), predicate=None)
Label(name)
PragmaDirective(value)
Block(body)
IntrinsicScope(name, args_repr, body)
Param(state_space, type, name, array_size=None, alignment=None, ptr_state_space=None, ptr_alignment=None)
FunctionDirective(name, values)
Function(is_entry, name, params=(), return_params=None, body=(), linking=None, directives=())
Module(version, target, address_size, directives=())
ScalarType StateSpace LinkingDirective
normalize_module(module)
diff_modules(a, b, entry_only=False)
ImmediateOperand.value
ScalarType.from_ptx
ScalarType.ptx
StateSpace.from_ptx
StateSpace.ptx LinkingDirective.VISIBLE LinkingDirective.EXTERN LinkingDirective.WEAK LinkingDirective.COMMON
""",
    "pyptx.codegen": """
ptx_to_python(source, *, sugar=False, kernel_name='matmul_kernel')
ir_to_python(module, *, sugar=False)
apply_sugar(module, *, kernel_name='matmul_kernel')
""",
}
