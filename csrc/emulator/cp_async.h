// device/cp_async.cuh under g++. Bytes land at the wait that covers them, not before.
#pragma once
#include "memory.h"

namespace tcgemm {

// -DTCGEMM_EMULATED_ARCH=75 runs what a kernel does on hardware without cp.async.
#if defined(TCGEMM_EMULATED_ARCH) && TCGEMM_EMULATED_ARCH < 80
constexpr bool kHasCpAsync = false;
#else
constexpr bool kHasCpAsync = true;
#endif

template <class T>
void cp_async_16(const SharedSpan<T>& tile, int at, Global<const T> a, const At& i, int valid) {
  emulator::copy_async(tile.view(), at, a.extent, i.i, valid, sizeof(T), i.site);
}

template <class T>
void cp_async_16(const SharedSpan<T>& tile, int at, Global<const T> a, const At& i) {
  emulator::copy_async(tile.view(), at, a.extent, i.i, kVecLength<T>, sizeof(T), i.site);
}

inline void cp_async_commit(Site site = Site::current()) { emulator::copy_async_commit(site); }

template <int N>
void cp_async_wait(Site site = Site::current()) {
  emulator::copy_async_wait(N, site);
}

}  // namespace tcgemm
