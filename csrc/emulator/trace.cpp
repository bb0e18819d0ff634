#include "trace.h"

#include <cmath>
#include <cstdio>
#include <cstring>

#include "convert.h"
#include "machine.h"
#include "session.h"
#include "traffic.h"

namespace tcgemm::emulator {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", c);
      out += escape;
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string short_path(const char* file) {
  const std::string path = file;
  const size_t csrc = path.rfind("csrc/");
  if (csrc == std::string::npos) return path.substr(path.rfind('/') + 1);
  std::string below = path.substr(csrc + 5);
  for (size_t up = below.find("/../"); up != std::string::npos; up = below.find("/../")) {
    const size_t from = up == 0 ? std::string::npos : below.rfind('/', up - 1);
    below = (from == std::string::npos ? "" : below.substr(0, from + 1)) + below.substr(up + 4);
  }
  return below;
}

namespace {

std::string number_text(float x) {
  if (!std::isfinite(x)) return "null";
  char text[32];
  std::snprintf(text, sizeof(text), "%.9g", static_cast<double>(x));
  return text;
}

template <class Each>
std::string list(const std::vector<int>& lanes, const Each& each) {
  std::string out = "[";
  for (size_t i = 0; i < lanes.size(); ++i) out += (i == 0 ? "" : ",") + each(lanes[i]);
  return out + "]";
}

}  // namespace

std::string Trace::value(const uint32_t* words, int bytes, int element_bytes) const {
  std::string out = "[";
  for (int at = 0; at < bytes; at += element_bytes) {
    float x;
    if (element_bytes == 2) {
      uint16_t bits;
      std::memcpy(&bits, reinterpret_cast<const char*>(words) + at, 2);
      x = bfloat16_ ? from_bfloat16(bits) : from_half(bits);
    } else {
      std::memcpy(&x, reinterpret_cast<const char*>(words) + at, 4);
    }
    out += (at == 0 ? "" : ",") + number_text(x);
  }
  return out + "]";
}

int Trace::number(const void* object, const void* stack_top) {
  const int64_t place = static_cast<const char*>(stack_top) - static_cast<const char*>(object);
  return numbers_.try_emplace(place, static_cast<int>(numbers_.size())).first->second;
}

void Trace::describe(const SharedMemory& memory) {
  shared_.clear();
  for (const auto& region : memory.regions()) {
    shared_ += std::string(shared_.empty() ? "" : ",") + "{\"bytes\":" + std::to_string(region->size) +
               ",\"element_bytes\":" + std::to_string(region->element_bytes) +
               ",\"dynamic\":" + (region->dynamic ? "true" : "false") +
               ",\"file\":" + quoted(short_path(region->declared.file_name())) +
               ",\"line\":" + std::to_string(region->declared.line()) + "}";
  }
}

void Trace::add_event(int warp, Access access, const std::source_location& site, const std::string& details) {
  if (!wanted(warp)) return;
  steps_.push_back("{\"warp\":" + std::to_string(warp) + ",\"access\":\"" + access_name(access) + "\",\"file\":" +
                   quoted(short_path(site.file_name())) + ",\"line\":" + std::to_string(site.line()) + details + "}");
}

struct Trace::Lanes {
  Warp& warp;
  const Column& column;
  std::vector<int> active, inactive;
  int space = 0;

  Lanes(Warp& of, const Column& merged) : warp(of), column(merged) {
    for (int lane = 0; lane < warp.size; ++lane) {
      if (column.at[lane] < 0) continue;
      const Record each = record(lane);
      (each.active() ? active : inactive).push_back(lane);
      if (each.active() || active.empty()) space = each.space();
    }
  }
  Record record(int lane) const { return {column.key, column.where[lane]}; }
  const Values& values(int lane) const { return warp.lanes[lane]->values[static_cast<size_t>(column.at[lane])]; }
  // The active lanes' addresses.
  std::vector<uint64_t> addresses() const {
    std::vector<uint64_t> out;
    for (const int lane : active) out.push_back(record(lane).address());
    return out;
  }
};

std::string Trace::register_details(const Lanes& lanes, int bytes) const {
  return ",\"array\":" + std::to_string(lanes.space) +
         ",\"index\":" + list(lanes.active, [&](int lane) { return std::to_string(lanes.record(lane).address()); }) +
         ",\"values\":" + list(lanes.active, [&](int lane) {
           const Values& x = lanes.values(lane);
           return value(x.word, bytes, x.valid == 2 ? 2 : 4);
         });
}

std::string Trace::global_details(const Lanes& lanes, Access access, int bytes) const {
  const Extent& a = *session->extents()[static_cast<size_t>(lanes.space)];
  const auto base = reinterpret_cast<uint64_t>(a.base);
  std::string out =
      ",\"space\":" + quoted(a.name) + ",\"index\":" + list(lanes.active, [&](int lane) {
        return std::to_string(static_cast<int64_t>(lanes.record(lane).address() - base) / a.element_bytes);
      });
  out += ",\"values\":" +
         list(lanes.active, [&](int lane) { return value(lanes.values(lane).word, bytes, a.element_bytes); });
  if (access == Access::kAsyncLoad) {
    out += ",\"valid\":" + list(lanes.active, [&](int lane) { return std::to_string(lanes.values(lane).valid); });
  }
  const std::vector<uint64_t> addresses = lanes.addresses();
  std::vector<uint64_t> sectors;
  count_sectors(addresses.data(), static_cast<int>(addresses.size()), bytes, &sectors);
  out += ",\"sectors\":[";
  for (size_t i = 0; i < sectors.size(); ++i) {
    out += (i == 0 ? "" : ",") + std::to_string(static_cast<int64_t>(sectors[i] - base / 256 * 8));
  }
  return out + "]";
}

std::string Trace::shared_details(const Lanes& lanes, Access access, int bytes) const {
  const Region& region = *lanes.warp.block->shared.regions()[static_cast<size_t>(lanes.space - kFirstSharedSpace)];
  const int element = region.dynamic && bytes == 4 ? 4 : region.element_bytes;
  const std::vector<uint64_t> addresses = lanes.addresses();
  return ",\"space\":" + std::to_string(lanes.space - kFirstSharedSpace) + ",\"index\":" +
         list(lanes.active,
              [&](int lane) {
                return std::to_string((static_cast<int64_t>(lanes.record(lane).address()) - region.offset) / element);
              }) +
         ",\"values\":" + list(lanes.active, [&](int lane) { return value(lanes.values(lane).word, bytes, element); }) +
         ",\"wavefronts\":" +
         std::to_string(count_wavefronts(addresses.data(), lanes.active.data(), static_cast<int>(addresses.size()),
                                         bytes, access == Access::kSharedLoad));
}

void Trace::add_column(Warp& warp, const Column& column) {
  if (!wanted(warp.index)) return;
  const Record any{column.key, 0};
  const int bytes = any.bytes();
  const Lanes lanes(warp, column);
  const auto text = [](int lane) { return std::to_string(lane); };
  const std::string head = ",\"bytes\":" + std::to_string(bytes) + ",\"lanes\":" + list(lanes.active, text) +
                           ",\"inactive\":" + list(lanes.inactive, text);
  const Access access = any.access();
  const bool registers = access == Access::kRegisterRead || access == Access::kRegisterWrite;
  add_event(warp.index, access, any.site(),
            head + (registers                         ? register_details(lanes, bytes)
                    : lanes.space < kFirstSharedSpace ? global_details(lanes, access, bytes)
                                                      : shared_details(lanes, access, bytes)));
}

}  // namespace tcgemm::emulator
