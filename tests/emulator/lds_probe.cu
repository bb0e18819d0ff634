// What shared memory charges for reads that share addresses. compare_ncu.py profiles it: each kernel executes kReads
// reads in one warp, and wavefronts over instructions is the answer. The emulator's rule (count_wavefronts) is: 32, 16
// or 8 lanes a pass for 4, 8 or 16 bytes, and twice as many of 8 or 16 bytes where all active lanes share addresses with
// lane ^ 1, or all with lane ^ 2.
#include <cstdio>

constexpr int kReads = 1024;

template <int BYTES>
__device__ float read(unsigned address) {
  float x = 0.0f, y = 0.0f, z = 0.0f, w = 0.0f;
  if constexpr (BYTES == 4) asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(address));
  if constexpr (BYTES == 8) asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x), "=f"(y) : "r"(address));
  if constexpr (BYTES == 16) {
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(x), "=f"(y), "=f"(z), "=f"(w) : "r"(address));
  }
  return x + y + z + w;
}

// Lane l reads the item (its BYTES bytes) number `item`, if it is active.
template <int BYTES>
__device__ void read_items(int item, bool active, float* out) {
  __shared__ __align__(1024) float tile[1024];
  for (int i = threadIdx.x; i < 1024; i += 32) tile[i] = static_cast<float>(i);
  __syncthreads();
  const unsigned base = static_cast<unsigned>(__cvta_generic_to_shared(tile)) + item * BYTES;
  float sum = 0.0f;
  if (active) {
#pragma unroll 8
    for (int i = 0; i < kReads; ++i) sum += read<BYTES>(base);
  }
  out[threadIdx.x] = sum;
}

// name, bytes, the lane's item, whether the lane is active. The name says which lanes share an item.
// clang-format off
#define PATTERNS(each, bytes)                       \
  each(distinct, bytes, l, true)                    \
  each(pairs, bytes, l / 2, true)                   \
  each(fours, bytes, l / 4, true)                   \
  each(eights, bytes, l / 8, true)                  \
  each(halves, bytes, l % 16, true)                 \
  each(quarters, bytes, l % 8, true)                \
  each(all, bytes, l * 0, true)                     \
  each(alternating, bytes, l / 4 * 2 + l % 2, true) \
  each(mixed, bytes, l < 16 ? l / 2 : l, true)      \
  each(even_lanes, bytes, l / 2, l % 2 == 0)        \
  each(lower_half, bytes, l, l < 16)
// clang-format on

#define PROBE(name, bytes, item, active)                          \
  extern "C" __global__ void probe_##bytes##_##name(float* out) { \
    const int l = static_cast<int>(threadIdx.x);                  \
    read_items<bytes>(item, active, out);                         \
  }
PATTERNS(PROBE, 4)
PATTERNS(PROBE, 8)
PATTERNS(PROBE, 16)

#define RUN(name, bytes, item, active) probe_##bytes##_##name<<<1, 32>>>(out);

int main() {
  float* out = nullptr;
  if (cudaMalloc(&out, 32 * sizeof(float)) != cudaSuccess) return 1;
  PATTERNS(RUN, 4)
  PATTERNS(RUN, 8)
  PATTERNS(RUN, 16)
  const cudaError_t error = cudaDeviceSynchronize();
  if (error != cudaSuccess) std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
  return error == cudaSuccess ? 0 : 1;
}
