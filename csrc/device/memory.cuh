// How kernels touch memory. Under nvcc each name here is the bare access; under g++ the emulator's halves
// check and count it (csrc/emulator/memory.h). Kernels use nothing else, and hold no compiler conditional.
//
//   Global<T>       an operand in global memory; a[i] with a 64-bit i
//   SharedArray<T,N> a static shared array, declared __shared__; SharedSpan<T> a view of one, or of dynamic memory
//   Reg<T,N>        accumulators and register caches: index with compile-time constants only
//   load_or, store_if     a guarded element: the guard is an argument, so that every lane reaches the access
//   load_vec, store_vec   V at once (16 bytes for Vec8<half>); i must be a multiple of V's length
//   store_vec_if          the same with a guard
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math.h>

#include "../gemm.h"
#include "divisor.h"

namespace tcgemm {

enum class Major { kRow, kCol };  // which index runs along contiguous memory: column for kRow

// N elements that move together.
template <class T, int N>
struct alignas(sizeof(T) * N) Vec {
  T v[N];
};

template <class T>
constexpr int kVecLength = 16 / sizeof(T);  // elements in a 16-byte access

// x, in a way that compilers cannot know before the loop that counts `turns` (which is never negative): so what follows
// from x is computed after the loop and not kept in registers, or spilled, all through it.
__host__ __device__ inline int after(int turns, int x) {
#ifdef __CUDA_ARCH__
  asm volatile("" : "+r"(turns));
#endif
  return x | turns >> 31;
}

}  // namespace tcgemm

#ifndef __CUDACC__
#include "../emulator/memory.h"
#else

namespace tcgemm {

template <class T>
struct Global {
  T* data;
  __device__ __forceinline__ T& operator[](int64_t i) const { return data[i]; }
};

// A kernel argument for an operand of rows x cols. Its extent is for the emulator, which checks every access.
template <class T>
Global<T> global_operand(const Operand& x, int64_t /*rows*/, int64_t /*cols*/) {
  return {static_cast<T*>(const_cast<void*>(x.data))};
}

template <class T>
struct SharedSpan {
  T* data;
  __device__ __forceinline__ T& operator[](int i) const { return data[i]; }
  __device__ __forceinline__ SharedSpan from(int i) const { return {data + i}; }
};

template <class T, int N>
struct alignas(32) SharedArray {
  T data[N];
  __device__ __forceinline__ T& operator[](int i) { return data[i]; }
  __device__ __forceinline__ operator SharedSpan<T>() { return {data}; }
  __device__ __forceinline__ SharedSpan<T> from(int i) { return {data + i}; }
};

// The launch's dynamic shared memory, from `offset` bytes on (a multiple of 32).
template <class T>
__device__ __forceinline__ SharedSpan<T> dynamic_shared(int offset, int /*count*/) {
  extern __shared__ __align__(1024) unsigned char dynamic_shared_bytes[];
  return {reinterpret_cast<T*>(dynamic_shared_bytes + offset)};
}

template <class T, int N>
struct Reg {
  T v[N];
  __device__ __forceinline__ T& operator[](int i) { return v[i]; }
  __device__ __forceinline__ const T& operator[](int i) const { return v[i]; }
};

template <class T>
__device__ __forceinline__ T load_or(Global<const T> a, int64_t i, bool in, T otherwise) {
  return in ? a[i] : otherwise;
}

template <class T>
__device__ __forceinline__ void store_if(Global<T> c, int64_t i, bool in, T x) {
  if (in) c[i] = x;
}

template <int N, class T>
__device__ __forceinline__ Vec<T, N> load_vec(Global<const T> a, int64_t i) {
  return *reinterpret_cast<const Vec<T, N>*>(a.data + i);
}
template <int N, class T>
__device__ __forceinline__ Vec<T, N> load_vec(SharedSpan<T> tile, int i) {
  return *reinterpret_cast<const Vec<T, N>*>(tile.data + i);
}
template <class T, int N>
__device__ __forceinline__ void store_vec(SharedSpan<T> tile, int i, const Vec<T, N>& x) {
  *reinterpret_cast<Vec<T, N>*>(tile.data + i) = x;
}
template <class T, int N>
__device__ __forceinline__ void store_vec(Global<T> c, int64_t i, const Vec<T, N>& x) {
  *reinterpret_cast<Vec<T, N>*>(c.data + i) = x;
}

template <class T, int N>
__device__ __forceinline__ void store_vec_if(Global<T> c, int64_t i, bool in, const Vec<T, N>& x) {
  if (in) store_vec(c, i, x);
}

// The N elements from i on of which the first `valid` lie inside the matrix; the others are zero.
// One vector load when all do, element loads at the edge, so that nothing past the edge is read.
template <int N, class T>
__device__ __forceinline__ Vec<T, N> load_vec_or_zero(Global<const T> a, int64_t i, int valid) {
  if (valid >= N) return load_vec<N>(a, i);
  Vec<T, N> x;
#pragma unroll
  for (int e = 0; e < N; ++e) x.v[e] = load_or(a, i + e, e < valid, T(0.0f));
  return x;
}

}  // namespace tcgemm
#endif
