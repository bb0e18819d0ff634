// Global memory: bounds, alignment, who writes what how often.
#include "harness.h"

namespace tcgemm::emulator {
namespace {

__global__ void copy_element(Global<const float> a, Global<float> c, int64_t from) { c[0] = a[from]; }
__global__ void copy_four(Global<const float> a, Global<float> c, int64_t from) {
  store_vec(c, 0, load_vec<4>(a, from));
}

// 3 rows of 5 with 3 of padding behind each.
void global_bounds() {
  const auto run = [](int64_t from) {
    Bench bench;
    Buffer<float> a(24), c(1);
    launch(copy_element, {}, kNoStream, bench.input("A", a.data(), 3, 5, 8), bench.output("C", c.data(), 1, 1, 1),
           from);
    if (bench.found(Fault::kOutOfBounds)) CHECK(c[0] != c[0], "what may not be read is NaN");
    return bench.found(Fault::kOutOfBounds);
  };
  for (const int64_t inside : {0, 4, 8, 20}) CHECK(!run(inside), "element %lld", static_cast<long long>(inside));
  for (const int64_t outside : {-1, 5, 7, 21, 1000000})
    CHECK(run(outside), "element %lld", static_cast<long long>(outside));
}

void alignment() {
  for (const int64_t from : {0, 4, 1, 2}) {
    Bench bench;
    Buffer<float> a(16), c(4);
    launch(copy_four, {}, kNoStream, bench.input("A", a.data(), 1, 16, 16), bench.output("C", c.data(), 1, 4, 4), from);
    CHECK(bench.found(Fault::kMisaligned) == (from % 4 != 0), "from %lld: %s", static_cast<long long>(from),
          bench.faults().c_str());
  }
}

__global__ void write_where(Global<float> c, int mask) { c[static_cast<int>(threadIdx.x) & mask] = 1.0f; }

void each_element_is_written_once() {
  for (const int mask : {31, 15}) {
    Bench bench;
    Buffer<float> c(32);
    launch(write_where, {.blocks = 1, .threads = 32}, kNoStream, bench.output("C", c.data(), 4, 8, 8), mask);
    bench.get().check_written();
    CHECK(bench.found(Fault::kWrittenTwice) == (mask == 15), "%s", bench.faults().c_str());
    CHECK(bench.found(Fault::kNeverWritten) == (mask == 15), "%s", bench.faults().c_str());
  }
}

__global__ void add_to(Global<float> c) {
  const float x = c[0];
  c[0] = x + 1.0f;
}

void output_is_not_read_before_it_is_written() {
  Bench bench;
  Buffer<float> c(1);
  launch(add_to, {}, kNoStream, bench.output("C", c.data(), 1, 1, 1));
  EXPECT_FAULT(bench, Fault::kUninitialisedOutput);
}

void memory_of_no_operand() {
  Bench bench;
  Buffer<float> stray(4), c(1);
  const Global<float> output = bench.output("C", c.data(), 1, 1, 1);
  const Global<const float> unknown = global_operand<const float>({stray.data(), 4, 1, 0}, 1, 4);
  launch(copy_element, {}, kNoStream, unknown, output, int64_t{0});
  EXPECT_FAULT(bench, Fault::kUnknownOperand);
  EXPECT_FAULT(bench, Fault::kOutOfBounds);  // and none of it may be touched
}

}  // namespace

void test_operands() {
  global_bounds();
  alignment();
  each_element_is_written_once();
  output_is_not_read_before_it_is_written();
  memory_of_no_operand();
}

}  // namespace tcgemm::emulator
