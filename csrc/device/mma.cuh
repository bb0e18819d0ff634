// mma.sync: a warp multiplies halves or bfloat16s with FP32 accumulators, operands and accumulators in registers.
// A register of an operand holds two elements, the one with the lower k in its low half. In lane l, with
// r = l / 4 and q = l % 4:
//
//   acc[0], acc[1]   c[r][2q], c[r][2q+1]        acc[2], acc[3]   c[r+8][2q], c[r+8][2q+1]
//   m16n8k8    a0 a[r][2q..]    a1 a[r+8][2q..]                              b0 b[2q..][r]
//   m16n8k16   the same, and    a2 a[r][2q+8..]  a3 a[r+8][2q+8..]           b1 b[2q+8..][r]
//
// So an m16n8k16 is an m16n8k8 of (a0, a1, b0) and one of (a2, a3, b1), up to rounding.
#pragma once
#include "memory.cuh"

namespace tcgemm {
constexpr int kMmaM = 16, kMmaN = 8;
}

#ifndef __CUDACC__
#include "../emulator/mma.h"
#else

namespace tcgemm {

// What the architecture that is being compiled for has: FP16 m16n8k8 from sm_75 on, the rest from sm_80 on.
template <class T, int MMA_K>
struct MmaExists {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  static constexpr bool value = false;
#else
  static constexpr bool value = true;
#endif
};
template <>
struct MmaExists<__half, 8> {
  static constexpr bool value = true;
};

// Ends the launch with an error: for code that the table of kernels keeps from running.
__device__ __forceinline__ void mma_unavailable() { __trap(); }

// acc(16x8) += a(16x8) * b(8x8)
template <class T>
__device__ __forceinline__ void mma_m16n8k8(Reg<float, 4>& acc, unsigned a0, unsigned a1, unsigned b0);
template <>
__device__ __forceinline__ void mma_m16n8k8<__half>(Reg<float, 4>& acc, unsigned a0, unsigned a1, unsigned b0) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};\n"
      : "+f"(acc.v[0]), "+f"(acc.v[1]), "+f"(acc.v[2]), "+f"(acc.v[3])
      : "r"(a0), "r"(a1), "r"(b0));
}

// acc(16x8) += a(16x16) * b(16x8)
template <class T>
__device__ __forceinline__ void mma_m16n8k16(Reg<float, 4>& acc, const Reg<unsigned, 4>& a, unsigned b0, unsigned b1);

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
template <>
__device__ __forceinline__ void mma_m16n8k8<__nv_bfloat16>(Reg<float, 4>& acc, unsigned a0, unsigned a1, unsigned b0) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};\n"
      : "+f"(acc.v[0]), "+f"(acc.v[1]), "+f"(acc.v[2]), "+f"(acc.v[3])
      : "r"(a0), "r"(a1), "r"(b0));
}
template <>
__device__ __forceinline__ void mma_m16n8k16<__half>(Reg<float, 4>& acc, const Reg<unsigned, 4>& a, unsigned b0,
                                                     unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(acc.v[0]), "+f"(acc.v[1]), "+f"(acc.v[2]), "+f"(acc.v[3])
      : "r"(a.v[0]), "r"(a.v[1]), "r"(a.v[2]), "r"(a.v[3]), "r"(b0), "r"(b1));
}
template <>
__device__ __forceinline__ void mma_m16n8k16<__nv_bfloat16>(Reg<float, 4>& acc, const Reg<unsigned, 4>& a, unsigned b0,
                                                            unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(acc.v[0]), "+f"(acc.v[1]), "+f"(acc.v[2]), "+f"(acc.v[3])
      : "r"(a.v[0]), "r"(a.v[1]), "r"(a.v[2]), "r"(a.v[3]), "r"(b0), "r"(b1));
}
#endif

}  // namespace tcgemm
#endif
