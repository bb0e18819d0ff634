// device/wmma.cuh under g++. Every operation is the whole warp's: the last lane to arrive executes it for all.
#pragma once
#include "memory.h"

namespace tcgemm {

template <class T, Major MAJOR>
struct FragmentA : emulator::FragmentData {
  static constexpr bool kByRow = MAJOR == Major::kRow;
  FragmentA() : FragmentData(emulator::FragmentKind::kA) {}
};
template <class T, Major MAJOR>
struct FragmentB : emulator::FragmentData {
  static constexpr bool kByRow = MAJOR == Major::kRow;
  FragmentB() : FragmentData(emulator::FragmentKind::kB) {}
};
struct FragmentC : emulator::FragmentData {
  FragmentC() : FragmentData(emulator::FragmentKind::kAccumulator) {}
};

namespace emulator {
template <class T>
constexpr Element kElement = Element::kHalf;
template <>
inline constexpr Element kElement<__nv_bfloat16> = Element::kBFloat16;
}  // namespace emulator

inline void fill_fragment(FragmentC& acc, float x, Site site = Site::current()) {
  emulator::fragment_fill(acc, x, site);
}

template <class Fragment, class T>
void load_fragment(Fragment& frag, const SharedSpan<T>& tile, const At& at, int ld) {
  emulator::fragment_load_shared(frag, tile.view(), at.i, ld, Fragment::kByRow, emulator::kElement<T>, at.site);
}
template <class Fragment, class T>
void load_fragment(Fragment& frag, Global<const T> a, const At& at, int64_t ld) {
  emulator::fragment_load_global(frag, a.extent, at.i, ld, Fragment::kByRow, emulator::kElement<T>, at.site);
}

template <class T, Major MAJOR_A, Major MAJOR_B>
void multiply(FragmentC& acc, const FragmentA<T, MAJOR_A>& frag_a, const FragmentB<T, MAJOR_B>& frag_b,
              Site site = Site::current()) {
  emulator::fragment_multiply(acc, frag_a, frag_b, site);
}

inline void store_fragment(const SharedSpan<float>& tile, const At& at, const FragmentC& acc, int ld) {
  emulator::fragment_store_shared(tile.view(), at.i, acc, ld, at.site);
}
inline void store_fragment(Global<float> c, const At& at, const FragmentC& acc, int64_t ld) {
  emulator::fragment_store_global(c.extent, at.i, acc, ld, at.site);
}

}  // namespace tcgemm
