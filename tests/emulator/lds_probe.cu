// What shared memory charges for reads that share addresses. compare_ncu.py profiles it: each kernel executes kReads
// reads in one warp, and wavefronts over instructions is the answer. The emulator's rule (count_wavefronts) is: 32, 16
// or 8 lanes a pass for 4, 8 or 16 bytes, whatever their addresses.
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

// Lane l reads the item (its BYTES bytes) number `item`.
template <int BYTES>
__device__ void read_items(int item, float* out) {
  __shared__ __align__(1024) float tile[1024];
  for (int i = threadIdx.x; i < 1024; i += 32) tile[i] = static_cast<float>(i);
  __syncthreads();
  const unsigned base = static_cast<unsigned>(__cvta_generic_to_shared(tile)) + item * BYTES;
  float sum = 0.0f;
#pragma unroll 8
  for (int i = 0; i < kReads; ++i) sum += read<BYTES>(base);
  out[threadIdx.x] = sum;
}

// name: bytes, then which lanes share an item.
#define PROBE(name, bytes, item)                                  \
  extern "C" __global__ void probe_##bytes##_##name(float* out) { \
    const int l = static_cast<int>(threadIdx.x);                  \
    read_items<bytes>(item, out);                                 \
  }
#define PROBES(bytes)        \
  PROBE(distinct, bytes, l)  \
  PROBE(pairs, bytes, l / 2) \
  PROBE(fours, bytes, l / 4) \
  PROBE(eights, bytes, l / 8) PROBE(halves, bytes, l % 16) PROBE(quarters, bytes, l % 8) PROBE(all, bytes, l * 0)

PROBES(4)
PROBES(8)
PROBES(16)

#define RUN(name, bytes) probe_##bytes##_##name<<<1, 32>>>(out);
#define RUN_ALL(bytes) \
  RUN(distinct, bytes) \
  RUN(pairs, bytes) RUN(fours, bytes) RUN(eights, bytes) RUN(halves, bytes) RUN(quarters, bytes) RUN(all, bytes)

int main() {
  float* out = nullptr;
  if (cudaMalloc(&out, 32 * sizeof(float)) != cudaSuccess) return 1;
  RUN_ALL(4)
  RUN_ALL(8)
  RUN_ALL(16)
  const cudaError_t error = cudaDeviceSynchronize();
  if (error != cudaSuccess) std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
  return error == cudaSuccess ? 0 : 1;
}
