// cp.async: copies from global to shared memory that run behind the thread's back (sm_80 and newer).
// The bytes are there after a wait that covers their group, and for other threads after a barrier as well.
#pragma once
#include "memory.cuh"

#ifndef __CUDACC__
#include "../emulator/cp_async.h"
#else

namespace tcgemm {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr bool kHasCpAsync = false;
#else
constexpr bool kHasCpAsync = true;
#endif

// 16 bytes from a[i] to tile[at], of which the first `valid` elements lie inside the matrix; the others are
// zero-filled and not read. Both addresses must be multiples of 16 bytes.
template <class T>
__device__ __forceinline__ void cp_async_16(SharedSpan<T> tile, int at, Global<const T> a, int64_t i, int valid) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(tile.data + at));
  const int bytes = valid * static_cast<int>(sizeof(T));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(a.data + i), "r"(bytes) : "memory");
#endif
}

// The same with all of the 16 bytes inside the matrix: a handful of instructions less.
template <class T>
__device__ __forceinline__ void cp_async_16(SharedSpan<T> tile, int at, Global<const T> a, int64_t i) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(tile.data + at));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(to), "l"(a.data + i) : "memory");
#endif
}

// Closes the group of the copies issued since the last one.
__device__ __forceinline__ void cp_async_commit() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;\n" ::: "memory");
#endif
}

// Waits until at most N of this thread's newest groups are still under way.
template <int N>
__device__ __forceinline__ void cp_async_wait() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;\n" ::"n"(N) : "memory");
#endif
}

}  // namespace tcgemm
#endif
