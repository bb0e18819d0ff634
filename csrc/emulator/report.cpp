#include "report.h"

#include "machine.h"

namespace tcgemm::emulator {
namespace {

std::string member(const char* name, int64_t x) { return std::string("\"") + name + "\":" + std::to_string(x); }
std::string member(const char* name, const std::string& x) { return std::string("\"") + name + "\":" + quoted(x); }

template <class List, class Each>
std::string array(const List& list, const Each& each) {
  std::string out = "[";
  bool first = true;
  for (const auto& x : list) {
    out += (first ? "" : ",") + each(x);
    first = false;
  }
  return out + "]";
}

}  // namespace

std::string findings_json(const Session& session) {
  return array(session.findings(), [](const Finding& f) {
    return "{" + member("fault", fault_name(f.fault)) + "," + member("text", f.text) + "," +
           member("file", short_path(f.file)) + "," + member("line", f.line) + "," + member("block", f.block) + "," +
           member("warp", f.warp) + "," + member("lane", f.lane) + "," + member("index", f.index) + "," +
           member("times", f.times) + "}";
  });
}

std::string reached_json(const Session& session) {
  return array(session.reached(), [](const auto& entry) {
    return "{" + member("file", entry.first.first) + "," + member("line", entry.first.second) + "," +
           member("times", entry.second) + "}";
  });
}

std::string counts_json(const Session& session) {
  const Counts& counts = session.counts();
  const std::string rows = array(counts.rows, [&](const auto& entry) {
    const auto& [key, row] = entry;
    const Record record{key.key, 0};
    const bool global = key.space < kFirstSharedSpace;
    const std::string space = global ? session.extents()[static_cast<size_t>(key.space)]->name
                                     : "shared " + std::to_string(key.space - kFirstSharedSpace);
    return "{" + member("access", access_name(record.access())) + "," + member("space", space) + "," +
           member("file", short_path(record.site().file_name())) + "," + member("line", record.site().line()) + "," +
           member("warp", key.warp) + "," + member("width", record.bytes()) + "," +
           member("instructions", row.instructions) + "," + member("requests", row.requests) + "," +
           member("sectors", row.sectors) + "," + member("wavefronts", row.wavefronts) + "," +
           member("bytes", row.bytes) + "}";
  });
  const std::string distinct = array(session.extents(), [&](const auto& extent) {
    return "{" + member("space", extent->name) + "," +
           member("load_sectors", counts.distinct_sectors[extent->space][0]) + "," +
           member("store_sectors", counts.distinct_sectors[extent->space][1]) + "}";
  });
  return "{\"rows\":" + rows + ",\"distinct\":" + distinct + "," + member("reads_per_thread", counts.reads_per_thread) +
         "," + member("wmma", counts.multiplications) + "," + member("mma_k8", counts.mma_k8) + "," +
         member("mma_k16", counts.mma_k16) + "," + member("barriers", counts.barriers) + "}";
}

std::string trace_json(const Session& session, const std::string& head) {
  const std::string operands = array(session.extents(), [](const auto& x) {
    return "{" + member("name", x->name) + "," + member("rows", x->rows) + "," + member("cols", x->cols) + "," +
           member("row_stride", x->row_stride) + "," + member("col_stride", x->col_stride) + "," +
           member("element_bytes", x->element_bytes) + ",\"output\":" + (x->output ? "true" : "false") + "," +
           member("offset_bytes", static_cast<int64_t>(reinterpret_cast<uintptr_t>(x->base) % 256)) + "}";
  });
  std::string out =
      "{" + head + ",\n\"operands\":" + operands + ",\n\"shared\":[" + session.trace.shared() + "],\n\"steps\":[\n";
  for (size_t i = 0; i < session.trace.steps().size(); ++i) {
    out += (i == 0 ? "" : ",\n") + session.trace.steps()[i];
  }
  return out + "\n]}\n";
}

}  // namespace tcgemm::emulator
