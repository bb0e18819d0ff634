// cp.async: bytes are there after the wait that covers them, and for others after a barrier too.
#include "harness.h"

namespace tcgemm::emulator {
namespace {

constexpr int kCopies = 4;  // groups of one copy a thread
constexpr int kThreads = 32;

// Thread t copies kCopies chunks of 4 floats in groups of one, waits until WAIT are under way, and reads from chunk
// `group` of the thread BY further on.
template <int WAIT, bool BARRIER, int BY>
__global__ void copy_and_read(Global<const float> a, Global<float> c, int group) {
  __shared__ SharedArray<float, kThreads * kCopies * 4> tile;
  const int thread = static_cast<int>(threadIdx.x);
  for (int g = 0; g < kCopies; ++g) {
    const int at = (g * kThreads + thread) * 4;
    cp_async_16(SharedSpan<float>(tile), at, a, at, 4);
    cp_async_commit();
  }
  cp_async_wait<WAIT>();
  if (BARRIER) __syncthreads();
  c[thread] = tile[(group * kThreads + (thread + BY) % kThreads) * 4 + 1];
}

template <int WAIT, bool BARRIER, int BY>
std::string outcome(int group) {
  Bench bench;
  Buffer<float> a(kThreads * kCopies * 4), c(kThreads);
  launch(copy_and_read<WAIT, BARRIER, BY>, {.blocks = 1, .threads = kThreads}, kNoStream,
         bench.input("A", a.data(), 1, kThreads * kCopies * 4, kThreads * kCopies * 4),
         bench.output("C", c.data(), 1, kThreads, kThreads), group);
  if (!bench.clean()) return fault_name(bench.get().findings()[0].fault);
  for (int t = 0; t < kThreads; ++t) {
    EXPECT_EQUAL(c[t], static_cast<float>((group * kThreads + (t + BY) % kThreads) * 4 + 1));
  }
  return "";
}

#define EXPECT_OUTCOME(call, expected) CHECK((call) == (expected), "%s", (call).c_str())

void a_wait_covers_the_oldest_groups() {
  for (int group = 0; group < kCopies; ++group) {
    EXPECT_OUTCOME((outcome<0, false, 0>(group)), "");
    EXPECT_OUTCOME((outcome<2, false, 0>(group)), group < 2 ? "" : "unwaited_copy");
    EXPECT_OUTCOME((outcome<4, false, 0>(group)), "unwaited_copy");
  }
}

void others_need_a_barrier() {
  EXPECT_OUTCOME((outcome<0, true, 5>(1)), "");
  CHECK(!(outcome<0, false, 5>(1)).empty(), "another thread's copy without a barrier");
}

template <int VALID>
__global__ void copy_part(Global<const float> a, Global<float> c, int64_t from, int to) {
  __shared__ SharedArray<float, 8> tile;
  cp_async_16(SharedSpan<float>(tile), to, a, from, VALID);
  cp_async_commit();
  cp_async_wait<0>();
  for (int e = 0; e < 4; ++e) c[e] = tile[to + e];
}

template <int VALID>
std::string part(int64_t from, int to) {
  Bench bench;
  Buffer<float> a(8, 1.0f), c(4);
  launch(copy_part<VALID>, {}, kNoStream, bench.input("A", a.data(), 1, 6, 6), bench.output("C", c.data(), 1, 4, 4),
         from, to);
  if (!bench.clean()) return fault_name(bench.get().findings()[0].fault);
  for (int e = 0; e < 4; ++e) EXPECT_EQUAL(c[e], e < VALID ? static_cast<float>(from + e + 1) : 0.0f);
  return "";
}

void edges_and_alignment() {
  EXPECT_OUTCOME(part<4>(0, 4), "");
  EXPECT_OUTCOME(part<2>(4, 0), "");  // the last two of six, and zeros
  EXPECT_OUTCOME(part<0>(8, 0), "");  // nothing is read
  EXPECT_OUTCOME(part<3>(4, 0), "out_of_bounds");
  EXPECT_OUTCOME(part<2>(1, 0), "misaligned");
  EXPECT_OUTCOME(part<2>(0, 2), "misaligned");
}

}  // namespace

void test_copies() {
  a_wait_covers_the_oldest_groups();
  others_need_a_barrier();
  edges_and_alignment();
}

}  // namespace tcgemm::emulator
