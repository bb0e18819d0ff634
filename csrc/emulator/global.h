// Operands in global memory: which elements exist, and how often each was written.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "../gemm.h"

namespace tcgemm::emulator {

struct Extent {
  std::string name;
  std::byte* base = nullptr;  // of element 0
  int element_bytes = 0;
  int64_t rows = 0, cols = 0, row_stride = 0, col_stride = 0;
  int64_t span = 0;  // elements from the first to the last, inclusive
  bool output = false;
  int space = 0;  // its number in records and traces

  Extent(const char* label, const Operand& x, int64_t rows, int64_t cols, int element_bytes, bool output, int space);

  bool contains(int64_t i) const {
    return i >= 0 && i < span && (dense_ || (valid_[static_cast<size_t>(i >> 6)] >> (i & 63) & 1) != 0);
  }
  bool contains(int64_t i, int count) const {
    for (int e = 0; e < count; ++e) {
      if (!contains(i + e)) return false;
    }
    return true;
  }
  // How often element i had been written before this write.
  int count_write(int64_t i) { return writes_[static_cast<size_t>(i)].fetch_add(1, std::memory_order_relaxed); }
  int writes(int64_t i) const { return writes_[static_cast<size_t>(i)].load(std::memory_order_relaxed); }
  // "row 610, column 617 of 611x617", for messages.
  std::string place(int64_t i) const;

 private:
  bool dense_;
  std::vector<uint64_t> valid_;  // a bit for each element of the span: inside the matrix, not padding
  std::vector<std::atomic<uint8_t>> writes_;
};

}  // namespace tcgemm::emulator
