// Requests and sectors, against figures that were measured on an H200 or follow from the addresses.
#include <cmath>

#include "harness.h"

namespace tcgemm::emulator {
namespace {

// c[lane] = a[lane * by + from]
__global__ void strided(Global<const float> a, Global<float> c, int64_t from, int64_t by) {
  const auto lane = static_cast<int64_t>(threadIdx.x);
  c[lane] = a[lane * by + from];
}

Row strided_loads(int64_t from, int64_t by) {
  Bench bench;
  Buffer<float> a(2048), c(32);
  launch(strided, {.blocks = 1, .threads = 32}, kNoStream, bench.input("A", a.data(), 1, 2048, 2048),
         bench.output("C", c.data(), 1, 32, 32), from, by);
  EXPECT_CLEAN(bench);
  EXPECT_EQUAL(bench.sum(Access::kGlobalStore).sectors, 4);
  return bench.sum(Access::kGlobalLoad);
}

void sectors_of_one_request() {
  EXPECT_EQUAL(strided_loads(0, 1).sectors, 4);  // 128 bytes
  EXPECT_EQUAL(strided_loads(1, 1).sectors, 5);  // the same, not aligned
  EXPECT_EQUAL(strided_loads(0, 0).sectors, 1);  // a broadcast
  EXPECT_EQUAL(strided_loads(0, 2).sectors, 8);
  EXPECT_EQUAL(strided_loads(0, 50).sectors, 32);  // down a column
  EXPECT_EQUAL(strided_loads(0, 1).requests, 1);
}

// Warps down columns, and the same with x and y swapped: one step of k (SEEDS.md, rows 1 and 2).
template <bool SWAPPED>
__global__ void naive_step(Global<const float> a, Global<const float> b, Global<float> c, int64_t lda, int64_t ldb) {
  const auto lane = static_cast<int64_t>(threadIdx.x);
  const int64_t row = SWAPPED ? 0 : lane, col = SWAPPED ? lane : 0;
  c[lane] = fmaf(a[row * lda], b[col], 0.0f);
  (void)ldb;
}

template <bool SWAPPED>
int64_t naive_sectors() {
  Bench bench;
  Buffer<float> a(32 * 1200, 0.0f, 0.0f), b(800), c(32);
  launch(naive_step<SWAPPED>, {.blocks = 1, .threads = 32}, kNoStream, bench.input("A", a.data(), 32, 1200, 1200),
         bench.input("B", b.data(), 1, 800, 800), bench.output("C", c.data(), 1, 32, 32), int64_t{1200}, int64_t{800});
  EXPECT_CLEAN(bench);
  return bench.sum(Access::kGlobalLoad).sectors;
}

void rows_one_and_two_of_the_table() {
  EXPECT_EQUAL(naive_sectors<false>(), 33);
  EXPECT_EQUAL(naive_sectors<true>(), 5);
}

// Guards inside load_or keep the lanes' visits aligned; an `if` around the access would not.
template <bool GUARD_IN_THE_ACCESS>
__global__ void ragged(Global<const float> a, Global<float> c) {
  const auto lane = static_cast<int64_t>(threadIdx.x);
  float sum = 0.0f;
  for (int step = 0; step < 4; ++step) {
    const int64_t i = step * 32 + lane;
    const bool in = step % 2 == 0 ? lane < 20 : lane >= 12;
    if (GUARD_IN_THE_ACCESS) {
      sum += load_or(a, i, in, 0.0f);
    } else if (in) {
      const float x = a[i];
      sum += x;
    }
  }
  c[lane] = sum;
}

template <bool GUARD_IN_THE_ACCESS>
Row ragged_loads() {
  Bench bench;
  Buffer<float> a(128), c(32);
  launch(ragged<GUARD_IN_THE_ACCESS>, {.blocks = 1, .threads = 32}, kNoStream, bench.input("A", a.data(), 1, 128, 128),
         bench.output("C", c.data(), 1, 32, 32));
  EXPECT_CLEAN(bench);
  return bench.sum(Access::kGlobalLoad);
}

void guarded_loads_are_counted_exactly() {
  EXPECT_EQUAL(ragged_loads<true>().requests, 4);
  EXPECT_EQUAL(ragged_loads<true>().sectors, 12);  // 20 floats from an aligned address are 3 sectors, from 12 on also
  EXPECT_EQUAL(ragged_loads<false>().requests, 4);
  CHECK(ragged_loads<false>().sectors > 12, "visits of different steps were merged: that is why load_or exists");
}

// A vector where all of it lies inside, elements at the edge: both paths of one call line up.
__global__ void vectors_with_an_edge(Global<const float> a, Global<float> c) {
  const auto lane = static_cast<int64_t>(threadIdx.x);
  float sum = 0.0f;
  for (int step = 0; step < 2; ++step) {
    const int64_t i = step * 128 + lane * 4;
    const int valid = static_cast<int>(min(max(int64_t{250} - i, int64_t{0}), int64_t{4}));
    const Vec<float, 4> x = load_vec_or_zero<4>(a, i, valid);
    sum += x.v[0] + x.v[1] + x.v[2] + x.v[3];
  }
  c[lane] = sum;
}

void vector_loads_at_an_edge() {
  Bench bench;
  Buffer<float> a(256), c(32);
  launch(vectors_with_an_edge, {.blocks = 1, .threads = 32}, kNoStream, bench.input("A", a.data(), 1, 250, 250),
         bench.output("C", c.data(), 1, 32, 32));
  EXPECT_CLEAN(bench);
  const Row loads = bench.sum(Access::kGlobalLoad);
  EXPECT_EQUAL(loads.requests, 2 + 2);           // two vectors, and two of the edge's four elements
  EXPECT_EQUAL(loads.sectors, 16 + 15 + 1 + 1);  // 128 and 120 floats by vector, 2 by element
  EXPECT_EQUAL(bench.get().counts().reads_per_thread, 3);
}

// TC-01: the whole of a 16x16 product; 16 + 16 distinct sectors.
__global__ void one_fragment(Global<const __half> a, Global<const __half> b, Global<float> c) {
  FragmentA<__half, Major::kRow> frag_a;
  FragmentB<__half, Major::kCol> frag_b;
  FragmentC acc;
  fill_fragment(acc, 0.0f);
  load_fragment(frag_a, a, 0, 16);
  load_fragment(frag_b, b, 0, 16);
  multiply<__half, Major::kRow, Major::kCol>(acc, frag_a, frag_b);
  store_fragment(c, 0, acc, 16);
}

void fragments_from_global_memory() {
  Bench bench;
  Buffer<__half> a(256, 0.0f, 0.0f), b(256, 0.0f, 0.0f);
  Buffer<float> c(256);
  const auto global_a = bench.input("A", a.data(), 16, 16, 16);
  const auto global_b = bench.input("B", b.data(), 16, 16, 1, 16);
  const auto global_c = bench.output("C", c.data(), 16, 16, 16);
  launch(one_fragment, {.blocks = 1, .threads = 32}, kNoStream, global_a, global_b, global_c);
  EXPECT_CLEAN(bench);
  const Counts& counts = bench.get().counts();
  EXPECT_EQUAL(counts.distinct_sectors[0][0], 16);
  EXPECT_EQUAL(counts.distinct_sectors[1][0], 16);
  EXPECT_EQUAL(counts.distinct_sectors[2][1], 32);
  EXPECT_EQUAL(bench.sum(Access::kFragmentLoad).sectors, 2 * 32);  // four 4-byte loads of 8 half sectors each
  EXPECT_EQUAL(bench.sum(Access::kFragmentStore).sectors, 32);
  EXPECT_EQUAL(counts.multiplications, 1);
  EXPECT_EQUAL(counts.reads_per_thread, 8);
}

}  // namespace

void test_counts() {
  sectors_of_one_request();
  rows_one_and_two_of_the_table();
  guarded_loads_are_counted_exactly();
  vector_loads_at_an_edge();
  fragments_from_global_memory();
}

}  // namespace tcgemm::emulator
