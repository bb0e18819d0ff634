// device/mma.cuh under g++.
#pragma once
#include "memory.h"
#include "wmma.h"

namespace tcgemm {

#if defined(TCGEMM_EMULATED_ARCH) && TCGEMM_EMULATED_ARCH < 80
constexpr bool kHasNewerMma = false;
#else
constexpr bool kHasNewerMma = true;
#endif

template <class T, int MMA_K>
struct MmaExists {
  static constexpr bool value = kHasNewerMma;
};
template <>
struct MmaExists<__half, 8> {
  static constexpr bool value = true;
};

[[noreturn]] inline void mma_unavailable(Site site = Site::current()) { emulator::no_such_instruction(site); }

template <class T>
void mma_m16n8k8(Reg<float, 4>& acc, unsigned a0, unsigned a1, unsigned b0, Site site = Site::current()) {
  const unsigned a[4] = {a0, a1}, b[2] = {b0};
  emulator::multiply_registers(acc.v, a, b, 8, emulator::kElement<T>, site);
}

template <class T>
void mma_m16n8k16(Reg<float, 4>& acc, const Reg<unsigned, 4>& a, unsigned b0, unsigned b1,
                  Site site = Site::current()) {
  const unsigned b[2] = {b0, b1};
  emulator::multiply_registers(acc.v, a.v, b, 16, emulator::kElement<T>, site);
}

}  // namespace tcgemm
