// Small kernels under the emulator: buffers, a session, and what it found.
#pragma once
#include <string>
#include <vector>

#include "../cpp/check.h"
#include "device/cp_async.cuh"
#include "device/launch.cuh"
#include "device/memory.cuh"
#include "device/wmma.cuh"
#include "emulator/session.h"

namespace tcgemm::emulator {

// Memory whose first byte is 256-byte aligned.
template <class T>
class Buffer {
 public:
  explicit Buffer(int64_t count, float first = 0.0f, float step = 1.0f) : memory_(count + 256) {
    const auto address = reinterpret_cast<uintptr_t>(memory_.data());
    data_ = memory_.data() + ((address + 255) / 256 * 256 - address) / sizeof(T);
    for (int64_t i = 0; i < count; ++i) data_[i] = T(first + step * static_cast<float>(i));
  }
  T* data() { return data_; }
  T& operator[](int64_t i) { return data_[i]; }

 private:
  std::vector<T> memory_;
  T* data_;
};

// A session whose operands are added by hand.
class Bench {
 public:
  explicit Bench(Options options = {}) : session_(std::move(options)) { session = &session_; }
  ~Bench() { session = nullptr; }

  template <class T>
  Global<const T> input(const char* name, T* data, int64_t rows, int64_t cols, int64_t row_stride,
                        int64_t col_stride = 1) {
    const Operand x{data, row_stride, col_stride, 0};
    session_.add_operand(name, x, rows, cols, sizeof(T), false);
    return global_operand<const T>(x, rows, cols);
  }
  Global<float> output(const char* name, float* data, int64_t rows, int64_t cols, int64_t row_stride) {
    const Operand x{data, row_stride, 1, 0};
    session_.add_operand(name, x, rows, cols, sizeof(float), true);
    return global_operand<float>(x, rows, cols);
  }

  bool found(Fault fault) const {
    for (const Finding& finding : session_.findings()) {
      if (finding.fault == fault) return true;
    }
    return false;
  }
  // The faults, for messages.
  std::string faults() const {
    std::string out;
    for (const Finding& finding : session_.findings()) {
      out += std::string(out.empty() ? "" : "; ") + fault_name(finding.fault) + ": " + finding.text;
    }
    return out.empty() ? "nothing found" : out;
  }
  bool clean() const { return session_.findings().empty(); }
  Session& get() { return session_; }

  // Sums over the rows of one access.
  Row sum(Access access) const {
    Row total;
    for (const auto& [key, row] : session_.counts().rows) {
      if (Record{key.key, 0}.access() != access) continue;
      total.instructions += row.instructions;
      total.requests += row.requests;
      total.sectors += row.sectors;
      total.wavefronts += row.wavefronts;
    }
    return total;
  }

 private:
  Session session_;
};

inline const Stream kNoStream{};

inline Options in_order(Order order) {
  Options options;
  options.order = order;
  return options;
}

#define EXPECT_FAULT(bench, fault) CHECK((bench).found(fault), "%s", (bench).faults().c_str())
#define EXPECT_CLEAN(bench) CHECK((bench).clean(), "%s", (bench).faults().c_str())
#define EXPECT_EQUAL(got, expected) \
  CHECK((got) == (expected), "%lld, expected %lld", static_cast<long long>(got), static_cast<long long>(expected))

void test_machine();
void test_operands();
void test_copies();
void test_fragments();
void test_counts();
void test_traffic();
void test_mma();

}  // namespace tcgemm::emulator
