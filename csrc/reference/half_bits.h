// Half-precision numbers on the host, without CUDA's or torch's types.
#pragma once
#include <bit>
#include <cstdint>

namespace tcgemm {

inline float float_of_bfloat16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

inline float float_of_float16(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t rest = bits & 0x7fffu;
  uint32_t magnitude;
  if (rest < 0x0400u) {  // subnormal: a whole number of 2^-24
    magnitude = std::bit_cast<uint32_t>(static_cast<float>(rest) * 0x1p-24f);
  } else if (rest < 0x7c00u) {
    magnitude = (rest << 13) + (112u << 23);  // the exponent's bias is 127 instead of 15
  } else {
    magnitude = 0x7f800000u | (rest << 13);  // Inf or NaN
  }
  return std::bit_cast<float>(sign | magnitude);
}

}  // namespace tcgemm
