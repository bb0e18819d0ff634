// What the lanes of a warp recorded, merged into instructions, and the memory traffic of each.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <source_location>
#include <tuple>
#include <vector>

namespace tcgemm::emulator {

struct Warp;

enum class Access : uint8_t {
  kGlobalLoad,
  kGlobalStore,
  kSharedLoad,
  kSharedStore,
  kAsyncLoad,
  kAsyncStore,  // cp.async: its global and its shared side
  kRegisterRead,
  kRegisterWrite,
  kFragmentFill,
  kFragmentLoad,
  kMultiply,
  kFragmentStore,
  kLoadMatrix,
  kMma,
  kShuffle,
  kBlockBarrier,
  kWarpBarrier,
  kCopyCommit,
  kCopyWait,
};
const char* access_name(Access access);

// One lane's part of one instruction, 16 bytes. key: site, access, log2 of the bytes. where: address, space, how
// many visits of the site it skips, whether the lane is active.
struct Record {
  uint64_t key, where;

  static Record make(Access access, const std::source_location& site, uint64_t address, int bytes, int space,
                     bool active, int skip);
  Access access() const { return static_cast<Access>(key >> 48 & 0x1f); }
  int bytes() const { return 1 << (key >> 53 & 0xf); }
  std::source_location site() const;
  uint64_t address() const { return where & 0xffffffffffff; }
  int space() const { return static_cast<int>(where >> 48 & 0xff); }
  int skip() const { return static_cast<int>(where >> 56 & 0x7f); }
  bool active() const { return where >> 63 != 0; }
};

struct Values {
  uint32_t word[4];
  int valid;  // elements that a cp.async reads (the others are zero), or that a register holds
};

// Sectors that a warp touched since the last barrier, by operand and direction.
struct Interval {
  static constexpr int kSpaces = 16;
  std::vector<uint64_t> sectors[kSpaces][2];
};

// One instruction of one warp: 32 lanes' records.
struct Column {
  uint64_t key = 0;
  uint64_t where[32] = {};
  int at[32];  // the record's place in its lane's list; -1: the lane has none
  int order = 0;
};

struct Row {
  int64_t instructions = 0;  // executed by at least one lane
  int64_t requests = 0;      // with at least one active lane
  int64_t sectors = 0;       // 32-byte sectors, distinct within a request; of a cp.async, see count_copy_sectors
  int64_t wavefronts = 0;    // shared memory, 32 banks of 4 bytes
  int64_t bytes = 0;         // that active lanes asked for
};

struct RowKey {
  uint64_t key;
  int space, warp;
  auto operator<=>(const RowKey&) const = default;
};

struct Counts {
  std::map<RowKey, Row> rows;
  int64_t distinct_sectors[Interval::kSpaces][2] = {};  // summed over warps and the intervals between barriers
  int64_t reads_per_thread = 0;                         // of the busiest thread
  int64_t multiplications = 0;                          // 16x16x16 WMMA
  int64_t mma_k8 = 0, mma_k16 = 0;                      // m16n8k8, m16n8k16
  int64_t barriers = 0;

  void add(const Counts& other);
  // One instruction of a warp: `count` active lanes (their numbers in `lanes`) access `bytes` each. `to`: where a
  // cp.async puts each lane's bytes.
  void add_access(int warp, Interval& interval, uint64_t key, int space, const uint64_t* addresses, const int* lanes,
                  int count, int bytes, const uint64_t* to = nullptr);
  // `lists`: the records of `size` lanes that `column` was merged from.
  void add_column(int warp, Interval& interval, const Column& column, const std::vector<Record>* const* lists,
                  int size);
  // The interval between two barriers ends.
  void close(Interval& interval);
};

// Lines up the records of `size` lanes by (site, access, how many times the lane has been there), so that lanes
// that took different paths still meet, and calls visit for each instruction, in the order of the program.
void merge(const std::vector<Record>* const* lanes, int size, const std::function<void(const Column&)>& visit);

}  // namespace tcgemm::emulator
