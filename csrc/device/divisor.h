// Division: rounded up, and by a number that the host knows.
#pragma once
#include <cstdint>

#ifdef __CUDACC__
#define TCGEMM_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define TCGEMM_HOST_DEVICE inline
#endif

namespace tcgemm {

TCGEMM_HOST_DEVICE constexpr int64_t ceil_div(int64_t x, int64_t y) { return (x + y - 1) / y; }

// A multiplication and a shift: before a kernel's first load a real division costs more than the load's latency does
// (docs/log.md). x / divisor for 0 <= x < 2^31, by Granlund and Montgomery: with 2^shift the power of two from the
// divisor on, multiplier = floor(2^32 (2^shift - divisor) / divisor) + 1, and the sum below stays under 2^32.
struct Divisor {
  uint32_t multiplier, shift;

  TCGEMM_HOST_DEVICE int quotient(int x) const {
    const auto high = static_cast<uint32_t>(uint64_t{multiplier} * static_cast<uint32_t>(x) >> 32);
    return static_cast<int>((high + static_cast<uint32_t>(x)) >> shift);
  }
};

inline Divisor make_divisor(int divisor) {
  const auto d = static_cast<uint64_t>(divisor);
  uint32_t shift = 0;
  while (uint64_t{1} << shift < d) ++shift;
  return {static_cast<uint32_t>((uint64_t{1} << 32) * ((uint64_t{1} << shift) - d) / d + 1), shift};
}

}  // namespace tcgemm
