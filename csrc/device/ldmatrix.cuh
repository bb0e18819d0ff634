// ldmatrix: a warp reads four 8x8 matrices of 2-byte elements from shared memory into the registers that
// mma.sync wants (sm_75 and newer).
//
// Lanes 8g to 8g+7 each give the address of one 8-element row of matrix g, a multiple of 16 bytes. Afterwards lane l
// holds of every matrix g, in frag[g], the elements [l/4][2(l%4)] (low half) and [l/4][2(l%4)+1]; with _trans, the
// elements [2(l%4)][l/4] and [2(l%4)+1][l/4]. A phase reads the rows of one matrix: it is free of bank conflicts
// when these eight addresses differ modulo 128 bytes.
#pragma once
#include "memory.cuh"

#ifndef __CUDACC__
#include "../emulator/ldmatrix.h"
#else

namespace tcgemm {

template <class T>
__device__ __forceinline__ void ldmatrix_x4(Reg<unsigned, 4>& frag, SharedSpan<T> tile, int at) {
  static_assert(sizeof(T) == 2, "ldmatrix .b16");
  const unsigned row = static_cast<unsigned>(__cvta_generic_to_shared(tile.data + at));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(frag.v[0]), "=r"(frag.v[1]), "=r"(frag.v[2]), "=r"(frag.v[3])
               : "r"(row)
               : "memory");
}

template <class T>
__device__ __forceinline__ void ldmatrix_x4_trans(Reg<unsigned, 4>& frag, SharedSpan<T> tile, int at) {
  static_assert(sizeof(T) == 2, "ldmatrix .b16");
  const unsigned row = static_cast<unsigned>(__cvta_generic_to_shared(tile.data + at));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(frag.v[0]), "=r"(frag.v[1]), "=r"(frag.v[2]), "=r"(frag.v[3])
               : "r"(row)
               : "memory");
}

}  // namespace tcgemm
#endif
