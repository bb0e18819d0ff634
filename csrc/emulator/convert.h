// Half-precision bits to float, the way the hardware does it (exact).
#pragma once
#include <immintrin.h>

#include <bit>
#include <cstdint>

namespace tcgemm::emulator {

inline float from_half(uint16_t bits) { return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits))); }
inline float from_bfloat16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// 8 elements at once.
inline __m256 from_half_8(const void* x) { return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(x))); }
inline __m256 from_bfloat16_8(const void* x) {
  const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(static_cast<const __m128i*>(x)));
  return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}

}  // namespace tcgemm::emulator
