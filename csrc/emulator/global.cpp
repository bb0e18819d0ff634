#include "global.h"

#include <cstring>

#include "machine.h"
#include "session.h"

namespace tcgemm::emulator {

Extent::Extent(const char* label, const Operand& x, int64_t nrows, int64_t ncols, int bytes, bool is_output, int number)
    : name(label),
      base(static_cast<std::byte*>(const_cast<void*>(x.data))),
      element_bytes(bytes),
      rows(nrows),
      cols(ncols),
      row_stride(x.row_stride),
      col_stride(x.col_stride),
      output(is_output),
      space(number) {
  span = rows == 0 || cols == 0 ? 0 : (rows - 1) * row_stride + (cols - 1) * col_stride + 1;
  dense_ = (col_stride == 1 && row_stride == cols) || (row_stride == 1 && col_stride == rows);
  if (!dense_) {
    valid_.resize(static_cast<size_t>(span + 63) / 64);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t col = 0; col < cols; ++col) {
        const int64_t i = row * row_stride + col * col_stride;
        valid_[static_cast<size_t>(i >> 6)] |= uint64_t{1} << (i & 63);
      }
    }
  }
  if (output) writes_ = std::vector<std::atomic<uint8_t>>(static_cast<size_t>(span));
}

std::string Extent::place(int64_t i) const {
  const int64_t line = row_stride >= col_stride ? row_stride : col_stride;
  const std::string size = std::to_string(rows) + "x" + std::to_string(cols);
  if (line <= 0 || i < 0) return name + "[" + std::to_string(i) + "] of " + size;
  const int64_t along = row_stride >= col_stride ? col_stride : row_stride;
  int64_t major = i / line, minor = along > 0 ? i % line / along : 0;
  const int64_t lines = row_stride >= col_stride ? rows : cols;
  if (lines > 0 && major >= lines && along > 0) {  // past the end of the last line
    minor += (major - (lines - 1)) * line / along;
    major = lines - 1;
  }
  const int64_t row = row_stride >= col_stride ? major : minor, col = row_stride >= col_stride ? minor : major;
  return name + "[" + std::to_string(i) + "] (row " + std::to_string(row) + ", column " + std::to_string(col) +
         ") of " + size;
}

namespace {

uint64_t address_of(const Extent& a, int64_t i) {
  return static_cast<uint64_t>(reinterpret_cast<intptr_t>(a.base) + i * a.element_bytes);
}

bool in_place(Extent* a, int64_t i, int count, const char* verb, const Site& site) {
  if (a->contains(i, count)) return true;
  int64_t bad = i;
  while (a->contains(bad)) ++bad;
  session->report(Fault::kOutOfBounds, site, a, bad, [&] { return std::string(verb) + " " + a->place(bad); });
  return false;
}

void check_alignment(Extent* a, int64_t i, int count, const Site& site) {
  const uint64_t bytes = static_cast<uint64_t>(count) * a->element_bytes;
  if (count == 1 || address_of(*a, i) % bytes == 0) return;
  session->report(Fault::kMisaligned, site, a, i, [&] {
    return std::to_string(bytes) + "-byte access of " + a->place(i) + ", whose address is " +
           std::to_string(address_of(*a, i) % bytes) + " past a multiple of " + std::to_string(bytes);
  });
}

}  // namespace

void global_load(Extent* a, int64_t i, int count, void* out, bool active, Site site) {
  const int bytes = count * a->element_bytes;
  if (active) {
    ++current->global_reads;
    check_alignment(a, i, count, site);
    if (in_place(a, i, count, "reads", site)) {
      std::memcpy(out, a->base + i * a->element_bytes, static_cast<size_t>(bytes));
      for (int e = 0; a->output && e < count; ++e) {
        if (a->writes(i + e) != 0) continue;
        session->report(Fault::kUninitialisedOutput, site, a, i + e,
                        [&] { return "reads " + a->place(i + e) + " before anything was written there"; });
      }
    } else {
      std::memset(out, 0xff, static_cast<size_t>(bytes));  // NaN in every type
    }
  }
  record(Access::kGlobalLoad, site, active ? address_of(*a, i) : 0, bytes, a->space, active, out);
}

void global_store(Extent* c, int64_t i, int count, const void* x, bool active, Site site) {
  const int bytes = count * c->element_bytes;
  if (active) {
    check_alignment(c, i, count, site);
    if (in_place(c, i, count, "writes", site)) {
      std::memcpy(c->base + i * c->element_bytes, x, static_cast<size_t>(bytes));
      for (int e = 0; c->output && e < count; ++e) {
        if (c->count_write(i + e) == 0) continue;
        session->report(Fault::kWrittenTwice, site, c, i + e,
                        [&] { return "writes " + c->place(i + e) + " a second time"; });
      }
      if (!c->output) {
        session->report(Fault::kOutOfBounds, site, c, i, [&] { return "writes the input " + c->place(i); });
      }
    }
  }
  record(Access::kGlobalStore, site, active ? address_of(*c, i) : 0, bytes, c->space, active, x);
}

void global_skip(Extent* a, int count, int element_bytes, Site site) {
  record(Access::kGlobalLoad, site, 0, element_bytes, a->space, false, nullptr, count);
}

Extent* find_extent(const Operand& x, int64_t rows, int64_t cols, int element_bytes) {
  return session->find(x, rows, cols, element_bytes);
}

}  // namespace tcgemm::emulator
