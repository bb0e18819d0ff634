#include "trace.h"

#include <cmath>
#include <cstdio>
#include <cstring>

#include "convert.h"
#include "machine.h"
#include "session.h"

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

const Extent* extent_of(int space) { return session->extents()[static_cast<size_t>(space)].get(); }

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

void Trace::add_column(Warp& warp, const Column& column) {
  const Record any{column.key, 0};
  const int bytes = any.bytes();
  std::vector<int> active, inactive;
  int space = 0;
  for (int lane = 0; lane < warp.size; ++lane) {
    if (column.at[lane] < 0) continue;
    const Record record{column.key, column.where[lane]};
    (record.active() ? active : inactive).push_back(lane);
    if (record.active() || active.empty()) space = record.space();
  }
  const auto record_of = [&](int lane) { return Record{column.key, column.where[lane]}; };
  const auto value_of = [&](int lane) { return warp.lanes[lane]->values[static_cast<size_t>(column.at[lane])].word; };
  const auto text = [](auto x) { return std::to_string(x); };

  if (!wanted(warp.index)) return;
  std::string out = ",\"bytes\":" + std::to_string(bytes);
  out += ",\"lanes\":" + list(active, text) + ",\"inactive\":" + list(inactive, text);
  const Access access = any.access();
  if (access == Access::kRegisterRead || access == Access::kRegisterWrite) {
    out += ",\"array\":" + std::to_string(active.empty() ? 0 : record_of(active[0]).space());
    out += ",\"index\":" + list(active, [&](int lane) { return text(record_of(lane).address()); });
    out += ",\"values\":" + list(active, [&](int lane) {
             return value(value_of(lane), bytes,
                          warp.lanes[lane]->values[static_cast<size_t>(column.at[lane])].valid == 2 ? 2 : 4);
           });
  } else if (space < kFirstSharedSpace) {
    const Extent& a = *extent_of(space);
    const auto base = reinterpret_cast<uint64_t>(a.base), origin = base / 256 * 256;
    uint64_t addresses[32];
    for (size_t i = 0; i < active.size(); ++i) addresses[i] = record_of(active[i]).address();
    std::vector<uint64_t> sectors;
    count_sectors(addresses, static_cast<int>(active.size()), bytes, &sectors);
    out += ",\"space\":" + quoted(a.name);
    out += ",\"index\":" + list(active, [&](int lane) {
             return text((static_cast<int64_t>(record_of(lane).address() - base)) / a.element_bytes);
           });
    out += ",\"values\":" + list(active, [&](int lane) { return value(value_of(lane), bytes, a.element_bytes); });
    if (access == Access::kAsyncLoad) {
      out += ",\"valid\":" + list(active, [&](int lane) {
               return text(warp.lanes[lane]->values[static_cast<size_t>(column.at[lane])].valid);
             });
    }
    out += ",\"sectors\":[";
    for (size_t i = 0; i < sectors.size(); ++i) {
      out += (i == 0 ? "" : ",") + std::to_string(static_cast<int64_t>(sectors[i]) - static_cast<int64_t>(origin / 32));
    }
    out += "]";
  } else {
    const Region& region = *warp.block->shared.regions()[static_cast<size_t>(space - kFirstSharedSpace)];
    uint64_t addresses[32];
    for (size_t i = 0; i < active.size(); ++i) addresses[i] = record_of(active[i]).address();
    const int element = region.dynamic && bytes == 4 ? 4 : region.element_bytes;
    out += ",\"space\":" + std::to_string(space - kFirstSharedSpace);
    out += ",\"index\":" + list(active, [&](int lane) {
             return text((static_cast<int64_t>(record_of(lane).address()) - region.offset) / element);
           });
    out += ",\"values\":" + list(active, [&](int lane) { return value(value_of(lane), bytes, element); });
    out += ",\"wavefronts\":" +
           std::to_string(count_wavefronts(addresses, active.data(), static_cast<int>(active.size()), bytes));
  }
  add_event(warp.index, access, any.site(), out);
}

}  // namespace tcgemm::emulator
