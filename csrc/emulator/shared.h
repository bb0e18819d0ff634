// Shared memory of the block, and the shadow of every element: who wrote it and who read it, and when.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "hooks.h"

namespace tcgemm::emulator {

struct Warp;
struct Block;
enum class Fault;

// Two stamps, each 20 bits of clock, two flags and 10 bits of thread. A clock of 0 means never.
struct Shadow {
  uint32_t write = 0;  // flags: pending (a cp.async not waited for), whole (a warp-wide store)
  uint32_t read = 0;   // flags: several warps, several lanes of one warp
};
constexpr int kStampShift = 12;
constexpr uint32_t kPending = 1u << 11, kWhole = 1u << 10, kManyWarps = 1u << 11, kManyLanes = 1u << 10;
constexpr uint32_t kThreadMask = (1u << 10) - 1;
constexpr uint32_t kMaxClock = (1u << 20) - 1;

struct Region {
  std::byte* bytes = nullptr;
  int size = 0;     // bytes
  int offset = 0;   // in the block's shared memory: decides the bank
  int granule = 2;  // bytes that share a shadow
  int space = 0;    // its number in records and traces
  int element_bytes = 0;
  bool dynamic = false;
  Site declared;
  std::vector<Shadow> shadows;
};

class SharedMemory {
 public:
  // The region of the static array at `key`, made at its first use.
  Region* get(const void* key, int bytes, int element_bytes, const Site& declared, int limit);
  Region* dynamic(int bytes);
  void clear_shadows();
  const std::vector<std::unique_ptr<Region>>& regions() const { return regions_; }
  int static_bytes() const { return static_bytes_; }

 private:
  Region* add(int bytes, int granule);
  std::vector<std::unique_ptr<Region>> regions_;
  std::vector<const void*> keys_;
  std::unique_ptr<std::byte[]> arena_;
  int used_ = 0, static_bytes_ = 0;
};

constexpr int kFirstSharedSpace = 16;  // smaller numbers are operands

// Check one access of a whole element range and stamp it. `whole`: the warp acts as one, lanes unspecified.
// Each returns false after reporting a fault.
bool check_read(Region& region, int first, int bytes, bool whole, const Site& site);
bool check_write(Region& region, int first, int bytes, bool whole, bool pending, const Site& site);

}  // namespace tcgemm::emulator
