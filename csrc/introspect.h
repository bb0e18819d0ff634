// What Python and other programs may ask without torch (ctypes): the table, the choice, a kernel's needs.
// Texts that are written into `out` are cut at `size` bytes; the functions return the full length, or a negative
// cudaError_t.
#pragma once
#include <stdint.h>

#define TCGEMM_EXPORT __attribute__((visibility("default")))

extern "C" {

// JSON array with the rows of kernels.def: name, dtypes, min_arch, min_arch_bf16, max_capability, tile,
// batch_invariant, summary.
TCGEMM_EXPORT const char* tcgemm_kernels();

// JSON {chosen, reason, global_reads, tile, workspace_bytes} for a problem on a device that need not exist.
// algo: a name, or null for auto. dtype: 0 float16, 1 bfloat16, 2 float32. mnk: sizes. strides: a's row and column
// stride, then b's, in elements. offsets: elements by which a and b start behind a 256-byte boundary.
// capability, code_arch, sm_count: as DeviceInfo. `chosen` is null where nothing fits, and `reason` says why.
TCGEMM_EXPORT int tcgemm_explain(const char* algo, int dtype, const int64_t mnk[3], const int64_t strides[4],
                                 const int64_t offsets[2], int capability, int code_arch, int sm_count, char* out,
                                 int size);

// JSON {registers, local_bytes, static_shared_bytes, dynamic_shared_bytes, threads, blocks_per_sm, occupancy,
// binary_arch, ptx_arch} of the kernel that `algo` would launch on GPU number `device`. Where nothing fits:
// JSON {reason}.
TCGEMM_EXPORT int tcgemm_footprint(const char* algo, int dtype, const int64_t mnk[3], const int64_t strides[4],
                                   const int64_t offsets[2], int device, char* out, int size);

// out: capability, code_arch, sm_count of GPU number `device`. A cudaError_t.
TCGEMM_EXPORT int tcgemm_device_info(int device, int out[3]);
}
