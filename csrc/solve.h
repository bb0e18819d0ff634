// The product as one C function, in libtcgemm_solve.a: no torch, no cuBLAS.
#pragma once
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cstddef>

// c = a b with FP32 sums. a is [m,k] row-major, b is [k,n] column-major, c is [m,n] row-major, all packed, on the
// current device, and of any size: 0 too. Enqueues on `stream`; neither allocates nor synchronises.
// A problem that cannot be launched leaves c as it was and says why on stderr.
extern "C" void solve(const __half* a, const __half* b, float* c, std::size_t m, std::size_t n, std::size_t k,
                      cudaStream_t stream);
