#include "shared.h"

#include <algorithm>

#include "machine.h"
#include "session.h"

namespace tcgemm::emulator {

Region* SharedMemory::add(int bytes, int granule) {
  if (arena_ == nullptr) arena_ = std::make_unique<std::byte[]>(kMaxSharedBytes + 4096);
  const int offset = (used_ + 127) / 128 * 128;
  if (offset + bytes > kMaxSharedBytes + 2048) {
    abandon(Fault::kLaunch, Site{},
            "a block asks for more than " + std::to_string(kMaxSharedBytes) + " bytes of shared memory");
  }
  used_ = offset + bytes;
  auto region = std::make_unique<Region>();
  const auto base = reinterpret_cast<uintptr_t>(arena_.get());
  region->bytes = arena_.get() + ((base + 1023) / 1024 * 1024 - base) + offset;
  region->size = bytes;
  region->offset = offset;
  region->granule = granule;
  region->element_bytes = granule;
  region->space = kFirstSharedSpace + static_cast<int>(regions_.size());
  region->shadows.resize(static_cast<size_t>((bytes + granule - 1) / granule));
  regions_.push_back(std::move(region));
  return regions_.back().get();
}

Region* SharedMemory::get(const void* key, int bytes, int element_bytes, const Site& declared, int limit) {
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (keys_[i] == key) return regions_[i].get();
  }
  static_bytes_ += bytes;
  if (static_bytes_ > limit) {
    abandon(Fault::kLaunch, declared,
            "static shared arrays take " + std::to_string(static_bytes_) + " bytes of " + std::to_string(limit));
  }
  Region* region = add(bytes, element_bytes);
  region->declared = declared;
  keys_.push_back(key);
  return region;
}

Region* SharedMemory::dynamic(int bytes) {
  static constexpr char kDynamic = 0;
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (keys_[i] == &kDynamic) return regions_[i].get();
  }
  Region* region = add(bytes, 2);  // views of several types may lie on each other
  region->dynamic = true;
  keys_.push_back(&kDynamic);
  return region;
}

void SharedMemory::clear_shadows() {
  for (const auto& region : regions_) std::fill(region->shadows.begin(), region->shadows.end(), Shadow{});
}

namespace {

std::string name_of(const Region& region) {
  if (region.dynamic) return "dynamic shared memory";
  const std::string file = region.declared.file_name();
  return "the shared array of " + file.substr(file.rfind('/') + 1) + ":" + std::to_string(region.declared.line());
}

std::string element(const Region& region, int byte) {
  return region.dynamic ? "byte " + std::to_string(byte) + " of " + name_of(region)
                        : "element " + std::to_string(byte / region.element_bytes) + " of " + name_of(region);
}

// Whether what the stamp stands for is over and visible to this thread.
bool ordered(uint32_t stamp, bool whole) {
  const Block& block = *current->warp->block;
  const uint32_t clock = stamp >> kStampShift;
  if (clock < block.last_barrier) return true;
  const uint32_t thread = stamp & kThreadMask;
  if (static_cast<int>(thread) / kWarpSize != current->warp->index) return false;
  return clock < current->warp->clock || (!whole && static_cast<int>(thread) == current->thread);
}

void report_race(const Region& region, int byte, const char* what, uint32_t other, const char* did, const Site& site) {
  session->report(Fault::kRace, site, &region, byte / region.element_bytes, [&] {
    return std::string(what) + " " + element(region, byte) + ", which " + did + " by warp " +
           std::to_string((other & kThreadMask) / kWarpSize) + ", lane " +
           std::to_string((other & kThreadMask) % kWarpSize) + " with no barrier between";
  });
}

uint32_t stamp_now(bool flag_low, bool flag_high) {
  return current->warp->clock << kStampShift | (flag_high ? 1u << 11 : 0) | (flag_low ? 1u << 10 : 0) |
         static_cast<uint32_t>(current->thread);
}

uint32_t merged_read(uint32_t old, bool whole) {
  const Block& block = *current->warp->block;
  const uint32_t now = stamp_now(whole, false);
  const uint32_t clock = old >> kStampShift;
  if (clock < block.last_barrier || old == now) return now;
  const bool same_warp = static_cast<int>(old & kThreadMask) / kWarpSize == current->warp->index;
  if ((old & kManyWarps) != 0 || !same_warp) return now | kManyWarps;
  if (clock == current->warp->clock && (old & kThreadMask) != (now & kThreadMask)) return now | kManyLanes;
  return now | (clock == current->warp->clock ? old & kManyLanes : 0);
}

}  // namespace

bool check_read(Region& region, int first, int bytes, bool whole, const Site& site) {
  const Block& block = *current->warp->block;
  const int end = (first + bytes + region.granule - 1) / region.granule;
  for (int g = first / region.granule; g < end; ++g) {
    Shadow& shadow = region.shadows[static_cast<size_t>(g)];
    const uint32_t write = shadow.write;
    if (write >> kStampShift < block.start) {
      session->report(Fault::kUninitialisedShared, site, &region, g, [&] {
        return "reads " + element(region, g * region.granule) + ", which this block has not written";
      });
      return false;
    }
    if ((write & kPending) != 0) {
      session->report(Fault::kUnwaitedCopy, site, &region, g, [&] {
        return "reads " + element(region, g * region.granule) + ", where a cp.async of thread " +
               std::to_string(write & kThreadMask) + " has not been waited for";
      });
      return false;
    }
    if (!ordered(write, whole || (write & kWhole) != 0)) {
      report_race(region, g * region.granule, "reads", write, "was written", site);
      return false;
    }
    shadow.read = merged_read(shadow.read, whole);
  }
  return true;
}

bool check_write(Region& region, int first, int bytes, bool whole, bool pending, const Site& site) {
  const Block& block = *current->warp->block;
  const int end = (first + bytes + region.granule - 1) / region.granule;
  bool good = true;
  for (int g = first / region.granule; g < end; ++g) {
    Shadow& shadow = region.shadows[static_cast<size_t>(g)];
    const int byte = g * region.granule;
    if (shadow.write >> kStampShift >= block.start) {
      if ((shadow.write & kPending) != 0) {
        good = false;
        session->report(Fault::kUnwaitedCopy, site, &region, g, [&] {
          return "writes " + element(region, byte) + ", where a cp.async of thread " +
                 std::to_string(shadow.write & kThreadMask) + " has not been waited for";
        });
      } else if (!ordered(shadow.write, whole || (shadow.write & kWhole) != 0)) {
        good = false;
        report_race(region, byte, "writes", shadow.write, "was written", site);
      }
    }
    const bool several = (shadow.read & kManyWarps) != 0 && shadow.read >> kStampShift >= block.last_barrier;
    if (several || !ordered(shadow.read, whole || (shadow.read & kManyLanes) != 0)) {
      good = false;
      report_race(region, byte, "writes", shadow.read, "was read", site);
    }
    shadow.write = stamp_now(whole, pending);
    shadow.read = 0;
  }
  return good;
}

}  // namespace tcgemm::emulator
