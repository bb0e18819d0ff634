#include "counts.h"

#include <algorithm>
#include <bit>

#include "traffic.h"

namespace tcgemm::emulator {

const char* access_name(Access access) {
  switch (access) {
    case Access::kGlobalLoad:
      return "global_load";
    case Access::kGlobalStore:
      return "global_store";
    case Access::kSharedLoad:
      return "shared_load";
    case Access::kSharedStore:
      return "shared_store";
    case Access::kAsyncLoad:
      return "async_load";
    case Access::kAsyncStore:
      return "async_store";
    case Access::kRegisterRead:
      return "register_read";
    case Access::kRegisterWrite:
      return "register_write";
    case Access::kFragmentFill:
      return "fragment_fill";
    case Access::kFragmentLoad:
      return "fragment_load";
    case Access::kMultiply:
      return "multiply";
    case Access::kFragmentStore:
      return "fragment_store";
    case Access::kLoadMatrix:
      return "ldmatrix";
    case Access::kMma:
      return "mma";
    case Access::kShuffle:
      return "shuffle";
    case Access::kBlockBarrier:
      return "block_barrier";
    case Access::kWarpBarrier:
      return "warp_barrier";
    case Access::kCopyCommit:
      return "copy_commit";
    case Access::kCopyWait:
      return "copy_wait";
  }
  return "?";
}

Record Record::make(Access access, const std::source_location& site, uint64_t address, int bytes, int space,
                    bool active, int skip) {
  static_assert(sizeof(site) == sizeof(uint64_t), "a source location is one pointer in libstdc++");
  Record record;
  record.key = std::bit_cast<uint64_t>(site) | static_cast<uint64_t>(access) << 48 |
               static_cast<uint64_t>(std::countr_zero(static_cast<unsigned>(bytes))) << 53;
  record.where = (address & 0xffffffffffff) | static_cast<uint64_t>(space) << 48 | static_cast<uint64_t>(skip) << 56 |
                 static_cast<uint64_t>(active) << 63;
  return record;
}

std::source_location Record::site() const { return std::bit_cast<std::source_location>(key & 0xffffffffffff); }

void Counts::add(const Counts& other) {
  for (const auto& [key, row] : other.rows) {
    Row& mine = rows[key];
    mine.instructions += row.instructions;
    mine.requests += row.requests;
    mine.sectors += row.sectors;
    mine.wavefronts += row.wavefronts;
    mine.bytes += row.bytes;
  }
  for (int space = 0; space < Interval::kSpaces; ++space) {
    for (int store = 0; store < 2; ++store) distinct_sectors[space][store] += other.distinct_sectors[space][store];
  }
  reads_per_thread = std::max(reads_per_thread, other.reads_per_thread);
  multiplications += other.multiplications;
  mma_k8 += other.mma_k8;
  mma_k16 += other.mma_k16;
  barriers += other.barriers;
}

void Counts::add_access(int warp, Interval& interval, uint64_t key, int space, const uint64_t* addresses,
                        const int* lanes, int count, int bytes, const uint64_t* to) {
  Row& row = rows[{key, space, warp}];
  ++row.instructions;
  if (count == 0) return;
  ++row.requests;
  row.bytes += int64_t{count} * bytes;
  const Access access = Record{key, 0}.access();
  if (space < Interval::kSpaces) {
    const bool store = access == Access::kGlobalStore || access == Access::kFragmentStore;
    const int sectors = count_sectors(addresses, count, bytes, &interval.sectors[space][store ? 1 : 0]);
    row.sectors += to == nullptr ? sectors : count_copy_sectors(addresses, to, count);
  } else {
    row.wavefronts += count_wavefronts(addresses, lanes, count, bytes, access == Access::kSharedLoad);
  }
}

void Counts::add_column(int warp, Interval& interval, const Column& column, const std::vector<Record>* const* lists,
                        int size) {
  const bool copy = Record{column.key, 0}.access() == Access::kAsyncLoad;
  uint64_t addresses[32], to[32];
  int lanes[32], count = 0, space = -1;
  for (int lane = 0; lane < size; ++lane) {
    if (column.at[lane] < 0) continue;
    const Record record{column.key, column.where[lane]};
    if (space < 0 || record.active()) space = record.space();
    if (!record.active()) continue;
    // The record behind a cp.async's global side is its shared side.
    if (copy) to[count] = (*lists[lane])[static_cast<size_t>(column.at[lane]) + 1].address();
    addresses[count] = record.address();
    lanes[count++] = lane;
  }
  add_access(warp, interval, column.key, space, addresses, lanes, count, Record{column.key, 0}.bytes(),
             copy ? to : nullptr);
}

void Counts::close(Interval& interval) {
  for (int space = 0; space < Interval::kSpaces; ++space) {
    for (int store = 0; store < 2; ++store) {
      std::vector<uint64_t>& sectors = interval.sectors[space][store];
      if (sectors.empty()) continue;
      std::sort(sectors.begin(), sectors.end());
      distinct_sectors[space][store] += std::unique(sectors.begin(), sectors.end()) - sectors.begin();
      sectors.clear();
    }
  }
}

namespace {

bool same_sequence(const std::vector<Record>* const* lanes, int size) {
  for (int lane = 1; lane < size; ++lane) {
    if (lanes[lane]->size() != lanes[0]->size()) return false;
  }
  for (size_t i = 0; i < lanes[0]->size(); ++i) {
    const uint64_t key = (*lanes[0])[i].key;
    const int skip = (*lanes[0])[i].skip();
    for (int lane = 1; lane < size; ++lane) {
      if ((*lanes[lane])[i].key != key || (*lanes[lane])[i].skip() != skip) return false;
    }
  }
  return true;
}

void merge_by_visit(const std::vector<Record>* const* lanes, int size,
                    const std::function<void(const Column&)>& visit) {
  std::map<std::pair<uint64_t, int>, size_t> found;
  std::vector<Column> columns;
  for (int lane = 0; lane < size; ++lane) {
    std::map<uint64_t, int> visits;
    for (size_t i = 0; i < lanes[lane]->size(); ++i) {
      const Record& record = (*lanes[lane])[i];
      int& visited = visits[record.key];
      if (record.skip() > 0) {
        visited += record.skip();
        continue;
      }
      const auto [place, is_new] = found.try_emplace({record.key, visited++}, columns.size());
      if (is_new) {
        Column& added = columns.emplace_back();
        added.key = record.key;
        added.order = static_cast<int>(i);
        std::fill(added.at, added.at + 32, -1);
      }
      Column& column = columns[place->second];
      column.where[lane] = record.where;
      column.at[lane] = static_cast<int>(i);
    }
  }
  std::stable_sort(columns.begin(), columns.end(), [](const Column& x, const Column& y) { return x.order < y.order; });
  for (const Column& column : columns) visit(column);
}

}  // namespace

void merge(const std::vector<Record>* const* lanes, int size, const std::function<void(const Column&)>& visit) {
  if (!same_sequence(lanes, size)) return merge_by_visit(lanes, size, visit);
  Column column;
  for (size_t i = 0; i < lanes[0]->size(); ++i) {
    if ((*lanes[0])[i].skip() > 0) continue;
    column.key = (*lanes[0])[i].key;
    for (int lane = 0; lane < size; ++lane) {
      column.where[lane] = (*lanes[lane])[i].where;
      column.at[lane] = static_cast<int>(i);
    }
    visit(column);
  }
}

}  // namespace tcgemm::emulator
