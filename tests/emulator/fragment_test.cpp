// WMMA fragments: values in every layout, conversion, and what a warp may not do.
#include <cmath>
#include <cstring>

#include "harness.h"

namespace tcgemm::emulator {
namespace {

constexpr int kDim = 16;

template <class T, Major MAJOR_A, Major MAJOR_B, bool THROUGH_SHARED>
__global__ void product(Global<const T> a, Global<const T> b, Global<float> c) {
  __shared__ SharedArray<T, 256> tile_a;
  __shared__ SharedArray<float, 256> tile_c;
  const int lane = static_cast<int>(threadIdx.x);
  FragmentA<T, MAJOR_A> frag_a;
  FragmentB<T, MAJOR_B> frag_b;
  FragmentC acc;
  fill_fragment(acc, 0.5f);
  if (THROUGH_SHARED) {
    for (int i = lane; i < 256; i += 32) tile_a[i] = a[i];
    __syncwarp();
    load_fragment(frag_a, SharedSpan<T>(tile_a), 0, kDim);
  } else {
    load_fragment(frag_a, a, 0, kDim);
  }
  load_fragment(frag_b, b, 0, kDim);
  multiply<T, MAJOR_A, MAJOR_B>(acc, frag_a, frag_b);
  if (!THROUGH_SHARED) return store_fragment(c, 0, acc, kDim);
  store_fragment(SharedSpan<float>(tile_c), 0, acc, kDim);
  __syncwarp();
  for (int i = lane; i < 256; i += 32) c[i] = tile_c[i];
}

template <class T, Major MAJOR_A, Major MAJOR_B, bool THROUGH_SHARED>
void check_product() {
  Bench bench;
  Buffer<T> a(256), b(256);
  Buffer<float> c(256);
  for (int i = 0; i < 256; ++i) {
    a[i] = T(static_cast<float>(i * 7 % 11 - 5));
    b[i] = T(static_cast<float>(i * 5 % 13 - 6));
  }
  launch(product<T, MAJOR_A, MAJOR_B, THROUGH_SHARED>, {.blocks = 1, .threads = 32}, kNoStream,
         bench.input("A", a.data(), kDim, kDim, kDim), bench.input("B", b.data(), kDim, kDim, kDim),
         bench.output("C", c.data(), kDim, kDim, kDim));
  EXPECT_CLEAN(bench);
  for (int row = 0; row < kDim; ++row) {
    for (int col = 0; col < kDim; ++col) {
      float sum = 0.5f;
      for (int k = 0; k < kDim; ++k) {
        const float x = static_cast<float>(a[MAJOR_A == Major::kRow ? row * kDim + k : k * kDim + row]);
        const float y = static_cast<float>(b[MAJOR_B == Major::kRow ? k * kDim + col : col * kDim + k]);
        sum += x * y;
      }
      EXPECT_EQUAL(c[row * kDim + col], sum);
    }
  }
}

void products_in_every_layout() {
  check_product<__half, Major::kRow, Major::kRow, false>();
  check_product<__half, Major::kRow, Major::kCol, true>();
  check_product<__half, Major::kCol, Major::kRow, true>();
  check_product<__nv_bfloat16, Major::kCol, Major::kCol, true>();
  check_product<__nv_bfloat16, Major::kRow, Major::kCol, false>();
}

// Every bit pattern, through a fragment and the identity matrix.
template <class T>
__global__ void convert(Global<const T> a, Global<const T> identity, Global<float> c) {
  FragmentA<T, Major::kRow> frag_a;
  FragmentB<T, Major::kRow> frag_b;
  FragmentC acc;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * 256;
  fill_fragment(acc, 0.0f);
  load_fragment(frag_a, a, first, kDim);
  load_fragment(frag_b, identity, 0, kDim);
  multiply<T, Major::kRow, Major::kRow>(acc, frag_a, frag_b);
  store_fragment(c, first, acc, kDim);
}

template <class T>
void every_value_converts() {
  Bench bench;
  Buffer<T> a(65536), identity(256, 0.0f, 0.0f);
  Buffer<float> c(65536);
  for (int i = 0; i < 65536; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    std::memcpy(static_cast<void*>(&a[i]), &bits, 2);
    if (!std::isfinite(static_cast<float>(a[i]))) a[i] = T(0.0f);  // Inf times the identity's zeros is NaN
  }
  for (int i = 0; i < kDim; ++i) identity[i * kDim + i] = T(1.0f);
  launch(convert<T>, {.blocks = 256, .threads = 32}, kNoStream, bench.input("A", a.data(), 4096, kDim, kDim),
         bench.input("I", identity.data(), kDim, kDim, kDim), bench.output("C", c.data(), 4096, kDim, kDim));
  EXPECT_CLEAN(bench);
  int wrong = 0;
  for (int i = 0; i < 65536; ++i) wrong += c[i] != static_cast<float>(a[i]);
  EXPECT_EQUAL(wrong, 0);
}

enum class Mistake {
  kNone,
  kUnfilled,
  kUnaligned,
  kOddLines,
  kOutside,
  kDifferentFragments,
  kDifferentAddresses,
  kHalfWarp
};

template <Mistake MISTAKE>
__global__ void mistaken(Global<const __half> a, Global<float> c) {
  const int lane = static_cast<int>(threadIdx.x);
  FragmentA<__half, Major::kRow> frag_a[2];
  FragmentC acc;
  if (MISTAKE == Mistake::kHalfWarp && lane < 16) return;
  if (MISTAKE != Mistake::kUnfilled) fill_fragment(acc, 1.0f);
  const int which = MISTAKE == Mistake::kDifferentFragments ? lane % 2 : 0;
  const int64_t first = MISTAKE == Mistake::kUnaligned            ? 8
                        : MISTAKE == Mistake::kOutside            ? 256
                        : MISTAKE == Mistake::kDifferentAddresses ? lane / 16 * 16
                                                                  : 0;
  load_fragment(frag_a[which], a, first, MISTAKE == Mistake::kOddLines ? 20 : 24);
  store_fragment(c, 0, acc, kDim);
}

template <Mistake MISTAKE>
void check_mistake(Fault expected) {
  Bench bench;
  Buffer<__half> a(600);
  Buffer<float> c(256);
  launch(mistaken<MISTAKE>, {.blocks = 1, .threads = 32}, kNoStream, bench.input("A", a.data(), 1, 600, 600),
         bench.output("C", c.data(), kDim, kDim, kDim));
  if (MISTAKE == Mistake::kNone) {
    EXPECT_CLEAN(bench);
  } else {
    EXPECT_FAULT(bench, expected);
  }
}

void mistakes() {
  check_mistake<Mistake::kNone>(Fault::kLaunch);
  check_mistake<Mistake::kUnfilled>(Fault::kUninitialisedFragment);
  check_mistake<Mistake::kUnaligned>(Fault::kMisaligned);
  check_mistake<Mistake::kOddLines>(Fault::kMisaligned);
  check_mistake<Mistake::kOutside>(Fault::kOutOfBounds);
  check_mistake<Mistake::kDifferentFragments>(Fault::kDivergentWarp);
  check_mistake<Mistake::kDifferentAddresses>(Fault::kDivergentWarp);
  check_mistake<Mistake::kHalfWarp>(Fault::kDivergentWarp);
}

}  // namespace

void test_fragments() {
  products_in_every_layout();
  every_value_converts<__half>();
  every_value_converts<__nv_bfloat16>();
  mistakes();
}

}  // namespace tcgemm::emulator
