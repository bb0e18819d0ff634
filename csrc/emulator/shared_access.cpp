// What kernels do to shared memory: plain and vector accesses, and cp.async.
#include <cstring>

#include "machine.h"
#include "session.h"

namespace tcgemm::emulator {
namespace {

// Where element i of the view lies, in bytes of its region; -1 after reporting that it is outside or misaligned.
int place(const View& tile, int64_t i, int element_bytes, int count, const char* verb, const Site& site) {
  const int64_t first = tile.first + i * element_bytes;
  const int64_t end = first + int64_t{count} * element_bytes;
  if (first < tile.first || end > tile.end) {
    const int64_t bad = first < tile.first ? i : (tile.end - tile.first) / element_bytes;
    session->report(Fault::kSharedOutOfBounds, site, tile.region, bad, [&] {
      return std::string(verb) + " element " + std::to_string(bad) + " of a shared view of " +
             std::to_string((tile.end - tile.first) / element_bytes) + " elements";
    });
    return -1;
  }
  const int64_t bytes = end - first;
  if (count > 1 && (tile.region->offset + first) % bytes != 0) {
    session->report(Fault::kMisaligned, site, tile.region, i, [&] {
      return std::to_string(bytes) + "-byte access of shared element " + std::to_string(i) + ", which is " +
             std::to_string((tile.region->offset + first) % bytes) + " bytes past a multiple of " +
             std::to_string(bytes);
    });
  }
  return static_cast<int>(first);
}

}  // namespace

void shared_load(const View& tile, int64_t i, int element_bytes, int count, void* out, Site site) {
  const int bytes = element_bytes * count;
  const int at = place(tile, i, element_bytes, count, "reads", site);
  Region& region = *tile.region;
  if (at < 0 || !check_read(region, at, bytes, false, site)) {
    std::memset(out, 0xff, static_cast<size_t>(bytes));  // NaN in every type
  } else {
    std::memcpy(out, region.bytes + at, static_cast<size_t>(bytes));
  }
  if (at >= 0) {
    record(Access::kSharedLoad, site, static_cast<uint64_t>(region.offset + at), bytes, region.space, true, out);
  }
}

void shared_store(const View& tile, int64_t i, int element_bytes, int count, const void* x, Site site) {
  const int bytes = element_bytes * count;
  const int at = place(tile, i, element_bytes, count, "writes", site);
  if (at < 0) return;
  Region& region = *tile.region;
  check_write(region, at, bytes, false, false, site);
  std::memcpy(region.bytes + at, x, static_cast<size_t>(bytes));
  record(Access::kSharedStore, site, static_cast<uint64_t>(region.offset + at), bytes, region.space, true, x);
}

void copy_async(const View& tile, int64_t at, Extent* a, int64_t i, int valid, int element_bytes, Site site) {
  PendingCopy copy{tile.region, place(tile, at, element_bytes, 16 / element_bytes, "copies to", site), {}};
  if (valid > 0) ++current->global_reads;
  const uint64_t from = static_cast<uint64_t>(reinterpret_cast<intptr_t>(a->base) + i * a->element_bytes);
  if (valid > 0 && from % 16 != 0) {
    session->report(Fault::kMisaligned, site, a, i, [&] {
      return "cp.async from " + a->place(i) + ", which is " + std::to_string(from % 16) +
             " bytes past a multiple of 16";
    });
  }
  for (int e = 0; e < valid; ++e) {
    if (a->contains(i + e)) {
      std::memcpy(copy.bytes + e * element_bytes, a->base + (i + e) * element_bytes,
                  static_cast<size_t>(element_bytes));
      continue;
    }
    std::memset(copy.bytes + e * element_bytes, 0xff, static_cast<size_t>(element_bytes));
    session->report(Fault::kOutOfBounds, site, a, i + e, [&] { return "cp.async reads " + a->place(i + e); });
  }
  record(Access::kAsyncLoad, site, valid > 0 ? from : 0, 16, a->space, valid > 0, copy.bytes, 0, valid);
  Region& region = *tile.region;
  const bool inside = copy.first >= 0;
  if (inside) {
    check_write(region, copy.first, 16, false, true, site);
    std::memset(region.bytes + copy.first, 0xff, 16);  // nobody may rely on what was there, nor on what will be
    current->groups.back().push_back(copy);
  }
  record(Access::kAsyncStore, site, inside ? static_cast<uint64_t>(region.offset + copy.first) : 0, 16, region.space,
         inside, copy.bytes);
}

void copy_async_commit(Site) { current->groups.emplace_back(); }

void copy_async_wait(int newest, Site) {
  auto& groups = current->groups;
  const uint32_t stamp = current->warp->clock << kStampShift | static_cast<uint32_t>(current->thread);
  const auto closed = static_cast<int>(groups.size()) - 1;
  const int landing = closed > newest ? closed - newest : 0;
  for (int g = 0; g < landing; ++g) {
    for (const PendingCopy& copy : groups[static_cast<size_t>(g)]) {
      Region& region = *copy.region;
      std::memcpy(region.bytes + copy.first, copy.bytes, 16);
      for (int byte = copy.first; byte < copy.first + 16; byte += region.granule) {
        region.shadows[static_cast<size_t>(byte / region.granule)].write = stamp;
      }
    }
  }
  groups.erase(groups.begin(), groups.begin() + landing);
}

}  // namespace tcgemm::emulator
