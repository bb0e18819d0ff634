#include "session.h"

#include "machine.h"

namespace tcgemm::emulator {

Session* session = nullptr;

const char* fault_name(Fault fault) {
  switch (fault) {
    case Fault::kOutOfBounds:
      return "out_of_bounds";
    case Fault::kSharedOutOfBounds:
      return "shared_out_of_bounds";
    case Fault::kUninitialisedShared:
      return "uninitialised_shared";
    case Fault::kUninitialisedOutput:
      return "uninitialised_output";
    case Fault::kUninitialisedFragment:
      return "uninitialised_fragment";
    case Fault::kRace:
      return "race";
    case Fault::kMisaligned:
      return "misaligned";
    case Fault::kUnwaitedCopy:
      return "unwaited_copy";
    case Fault::kDivergentBarrier:
      return "divergent_barrier";
    case Fault::kDivergentWarp:
      return "divergent_warp";
    case Fault::kWrittenTwice:
      return "written_twice";
    case Fault::kNeverWritten:
      return "never_written";
    case Fault::kUnknownOperand:
      return "unknown_operand";
    case Fault::kLaunch:
      return "launch";
  }
  return "?";
}

void Session::add_operand(const char* name, const Operand& x, int64_t rows, int64_t cols, int element_bytes,
                          bool output) {
  extents_.push_back(
      std::make_unique<Extent>(name, x, rows, cols, element_bytes, output, static_cast<int>(extents_.size())));
}

Extent* Session::find(const Operand& x, int64_t rows, int64_t cols, int element_bytes) {
  for (const auto& extent : extents_) {
    if (extent->base == x.data && extent->element_bytes == element_bytes) return extent.get();
  }
  // Unknown memory: nothing of it may be touched.
  extents_.push_back(
      std::make_unique<Extent>("unknown operand", x, 0, 0, element_bytes, false, static_cast<int>(extents_.size())));
  report(Fault::kUnknownOperand, Site{}, extents_.back().get(), -1, [&] {
    return "the launcher passes an operand of " + std::to_string(rows) + "x" + std::to_string(cols) +
           " that starts at no operand of the problem";
  });
  return extents_.back().get();
}

void Session::check_written() {
  for (const auto& extent : extents_) {
    if (!extent->output) continue;
    int64_t missing = 0, first = -1;
    for (int64_t row = 0; row < extent->rows; ++row) {
      for (int64_t col = 0; col < extent->cols; ++col) {
        const int64_t i = row * extent->row_stride + col * extent->col_stride;
        if (extent->writes(i) != 0) continue;
        if (missing++ == 0) first = i;
      }
    }
    if (missing == 0) continue;
    report(Fault::kNeverWritten, Site{}, extent.get(), first,
           [&] { return std::to_string(missing) + " elements never written, the first is " + extent->place(first); });
  }
}

void Session::report(Fault fault, const Site& site, const void* space, int64_t index,
                     const std::function<std::string()>& text) {
  const std::lock_guard lock(mutex_);
  // Instantiations of one template are one place to a reader, so the line counts, not the site.
  const auto [known, is_new] = known_.try_emplace({fault, site.line(), space}, findings_.size());
  if (!is_new) {
    if (known->second < findings_.size()) ++findings_[known->second].times;
    return;
  }
  if (static_cast<int>(findings_.size()) >= options_.max_findings) {
    known->second = SIZE_MAX;
    return;
  }
  Finding finding{
      .fault = fault, .text = text(), .file = site.file_name(), .line = site.line(), .index = index, .times = 1};
  if (current != nullptr && current->warp != nullptr) {
    finding.block = current->warp->block->index;
    finding.warp = current->warp->index;
    finding.lane = current->thread % kWarpSize;
  }
  findings_.push_back(std::move(finding));
}

void Session::reach(const Site& site) {
  const std::lock_guard lock(mutex_);
  ++reached_[{short_path(site.file_name()), site.line()}];
}

void reached(Site site) { session->reach(site); }

void Session::add(const Counts& counts) {
  const std::lock_guard lock(mutex_);
  counts_.add(counts);
}

}  // namespace tcgemm::emulator
