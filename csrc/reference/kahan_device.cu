// The float64 reference on the device: each thread keeps 4x4 Kahan sums, tiles of a and b are shared by the block.
// Every sum takes its products in ascending order of k, as on the host, so the bits are the same.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "kahan.h"

namespace tcgemm {
namespace {

constexpr int kTile = 64;  // rows and columns of c in a block
constexpr int kDepth = 16;
constexpr int kSide = 16;  // threads along each side of the block
constexpr int kPer = kTile / kSide;
constexpr int kPad = 1;  // neighbouring rows of a tile on different banks

template <class T>
__device__ double to_double(T x) {
  if constexpr (sizeof(T) == 2) return static_cast<double>(static_cast<float>(x));
  return static_cast<double>(x);
}

template <class T>
__global__ void __launch_bounds__(kSide* kSide) kahan_kernel(ReferenceProblem p, int64_t blocks_n) {
  __shared__ double tile_a[kDepth][kTile + kPad], tile_b[kDepth][kTile + kPad];
  const T *a = static_cast<const T*>(p.a.data), *b = static_cast<const T*>(p.b.data);
  const int64_t m0 = blockIdx.x / blocks_n * kTile, n0 = blockIdx.x % blocks_n * kTile;
  const int thread = threadIdx.x, i0 = thread / kSide, j0 = thread % kSide;
  KahanSum sums[kPer][kPer];

  for (int64_t k0 = 0; k0 < p.k; k0 += kDepth) {
    for (int e = thread; e < kTile * kDepth; e += kSide * kSide) {
      const int line = e / kDepth, kk = e % kDepth;
      const int64_t row = m0 + line, col = n0 + line, at = k0 + kk;
      tile_a[kk][line] = row < p.m && at < p.k ? to_double(a[row * p.a.row_stride + at * p.a.col_stride]) : 0.0;
      tile_b[kk][line] = col < p.n && at < p.k ? to_double(b[at * p.b.row_stride + col * p.b.col_stride]) : 0.0;
    }
    __syncthreads();  // the tiles are full
    // Not past k: adding a zero may change what was lost, and the host does not do it.
    const int depth = p.k - k0 < kDepth ? static_cast<int>(p.k - k0) : kDepth;
    for (int kk = 0; kk < depth; ++kk) {
#pragma unroll
      for (int i = 0; i < kPer; ++i) {
#pragma unroll
        for (int j = 0; j < kPer; ++j) {
          sums[i][j].add(tile_a[kk][i0 + i * kSide] * tile_b[kk][j0 + j * kSide]);
        }
      }
    }
    __syncthreads();  // all reads are done; the next pass may overwrite
  }
#pragma unroll
  for (int i = 0; i < kPer; ++i) {
#pragma unroll
    for (int j = 0; j < kPer; ++j) {
      const int64_t row = m0 + i0 + i * kSide, col = n0 + j0 + j * kSide;
      if (row < p.m && col < p.n) p.c[row * p.n + col] = sums[i][j].sum;
    }
  }
}

}  // namespace

int reference_on_device(const ReferenceProblem& p, CUstream_st* stream) {
  if (p.m == 0 || p.n == 0) return cudaSuccess;
  const int64_t blocks_m = (p.m + kTile - 1) / kTile, blocks_n = (p.n + kTile - 1) / kTile;
  const dim3 grid(static_cast<unsigned>(blocks_m * blocks_n)), block(kSide * kSide);
  switch (p.dtype) {
    case DType::kFloat16:
      kahan_kernel<__half><<<grid, block, 0, stream>>>(p, blocks_n);
      break;
    case DType::kBFloat16:
      kahan_kernel<__nv_bfloat16><<<grid, block, 0, stream>>>(p, blocks_n);
      break;
    default:
      kahan_kernel<float><<<grid, block, 0, stream>>>(p, blocks_n);
      break;
  }
  return cudaGetLastError();
}

}  // namespace tcgemm
