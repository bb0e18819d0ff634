// ldmatrix and mma.sync: values by lane, and products in both shapes.
#include <cstring>

#include "harness.h"

#include "emulator/ldmatrix.h"
#include "emulator/mma.h"

namespace tcgemm::emulator {
namespace {

// Four 8x8 matrices below each other, element (row, col) of matrix g holding 64 g + 8 row + col; `c` gets the two
// halves of each lane's four registers.
template <bool TRANSPOSED>
__global__ void matrices(Global<const __half> a, Global<float> c, int ld) {
  __shared__ SharedArray<__half, 32 * 40> tile;
  const int lane = static_cast<int>(threadIdx.x);
  for (int i = lane; i < 256; i += 32) tile[i / 8 * ld + i % 8] = a[i];
  __syncwarp();
  Reg<unsigned, 4> frag;
  if (TRANSPOSED) {
    ldmatrix_x4_trans(frag, SharedSpan<__half>(tile), lane * ld);
  } else {
    ldmatrix_x4(frag, SharedSpan<__half>(tile), lane * ld);
  }
  for (int g = 0; g < 4; ++g) {
    const unsigned pair = frag[g];
    __half_raw low, high;
    low.x = static_cast<unsigned short>(pair);
    high.x = static_cast<unsigned short>(pair >> 16);
    c[lane * 8 + g * 2] = static_cast<float>(__half(low));
    c[lane * 8 + g * 2 + 1] = static_cast<float>(__half(high));
  }
}

template <bool TRANSPOSED>
void check_matrices(int ld, int64_t wavefronts) {
  Bench bench;
  Buffer<__half> a(256);
  Buffer<float> c(256);
  launch(matrices<TRANSPOSED>, {.blocks = 1, .threads = 32}, kNoStream, bench.input("A", a.data(), 32, 8, 8),
         bench.output("C", c.data(), 32, 8, 8), ld);
  EXPECT_CLEAN(bench);
  for (int lane = 0; lane < 32; ++lane) {
    for (int e = 0; e < 8; ++e) {
      const int along = lane % 4 * 2 + e % 2, across = lane / 4;
      const int row = TRANSPOSED ? along : across, col = TRANSPOSED ? across : along;
      EXPECT_EQUAL(c[lane * 8 + e], static_cast<float>(e / 2 * 64 + row * 8 + col));
    }
  }
  EXPECT_EQUAL(bench.sum(Access::kLoadMatrix).wavefronts, wavefronts);
}

template <class T>
unsigned pair_of(Global<const T> x, int64_t low, int64_t high) {
  const T first = x[low], second = x[high];
  unsigned short bits[2];
  std::memcpy(&bits[0], static_cast<const void*>(&first), 2);
  std::memcpy(&bits[1], static_cast<const void*>(&second), 2);
  return bits[0] | static_cast<unsigned>(bits[1]) << 16;
}

// c(16x8) = 0.25 + a(16 x k, row-major) b(k x 8, column-major), loaded as the documentation lays the lanes out.
// BROKEN: with a wrong lane layout, two registers of a swapped.
template <class T, int K, bool BROKEN>
__global__ void product(Global<const T> a, Global<const T> b, Global<float> c) {
  const int lane = static_cast<int>(threadIdx.x), r = lane / 4, q = lane % 4 * 2;
  Reg<unsigned, 4> frag_a;
  unsigned frag_b[2] = {};
  for (int i = 0; i < K / 4; ++i) {
    const int row = BROKEN ? r + i / 2 * 8 : r + i % 2 * 8, col = BROKEN ? q + i % 2 * 8 : q + i / 2 * 8;
    frag_a[i] = pair_of(a, row * K + col % K, row * K + col % K + 1);
  }
  for (int i = 0; i < K / 8; ++i) frag_b[i] = pair_of(b, r * K + q + i * 8, r * K + q + i * 8 + 1);
  Reg<float, 4> acc;
  for (int i = 0; i < 4; ++i) acc[i] = 0.25f;
  if constexpr (K == 8) {
    mma_m16n8k8<T>(acc, frag_a[0], frag_a[1], frag_b[0]);
  } else {
    mma_m16n8k16<T>(acc, frag_a, frag_b[0], frag_b[1]);
  }
  for (int i = 0; i < 4; ++i) c[(r + i / 2 * 8) * 8 + q + i % 2] = acc[i];
}

template <class T, int K, bool BROKEN = false>
int wrong_elements() {
  Bench bench;
  Buffer<T> a(16 * K), b(8 * K);
  Buffer<float> c(128);
  for (int i = 0; i < 16 * K; ++i) a[i] = T(static_cast<float>(i * 7 % 11 - 5));
  for (int i = 0; i < 8 * K; ++i) b[i] = T(static_cast<float>(i * 5 % 13 - 6));
  launch(product<T, K, BROKEN>, {.blocks = 1, .threads = 32}, kNoStream, bench.input("A", a.data(), 16, K, K),
         bench.input("B", b.data(), K, 8, 1, K), bench.output("C", c.data(), 16, 8, 8));
  EXPECT_CLEAN(bench);
  EXPECT_EQUAL(bench.get().counts().mma_k8, K == 8 ? 1 : 0);
  EXPECT_EQUAL(bench.get().counts().mma_k16, K == 16 ? 1 : 0);
  int wrong = 0;
  for (int row = 0; row < 16; ++row) {
    for (int col = 0; col < 8; ++col) {
      float sum = 0.25f;
      for (int k = 0; k < K; ++k) sum += static_cast<float>(a[row * K + k]) * static_cast<float>(b[col * K + k]);
      wrong += c[row * 8 + col] != sum;
    }
  }
  return wrong;
}

}  // namespace

void test_mma() {
  check_matrices<false>(40, 4);  // rows of 80 bytes: 8 of them on different banks
  check_matrices<true>(40, 4);
  check_matrices<false>(32, 16);  // rows of 64 bytes: four of eight collide
  EXPECT_EQUAL((wrong_elements<__half, 8>()), 0);
  EXPECT_EQUAL((wrong_elements<__half, 16>()), 0);
  EXPECT_EQUAL((wrong_elements<__nv_bfloat16, 8>()), 0);
  EXPECT_EQUAL((wrong_elements<__nv_bfloat16, 16>()), 0);
  CHECK((wrong_elements<__half, 16, true>()) > 0, "a wrong lane layout gives a wrong product");
}

}  // namespace tcgemm::emulator
