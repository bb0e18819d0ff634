#include "machine.h"

#include <cstring>

#include "session.h"

namespace tcgemm::emulator {

constinit thread_local Lane* current = nullptr;
constinit thread_local const Position* position = nullptr;

namespace {

constexpr size_t kMaxRecords = 4096;  // a lane that has recorded so much waits for its warp to be merged

// Back to the scheduler, until it finds this lane runnable.
void stop(State state) {
  Lane& lane = *current;
  lane.state = state;
  lane.scheduler = std::move(lane.scheduler).resume();
  if (lane.warp->block->abandoned) throw AbandonBlock{};
}

void advance(Warp& warp, uint32_t clock, const Site& site) {
  if (clock >= kMaxClock) abandon(Fault::kLaunch, site, "more barriers in one block than the emulator can tell apart");
  warp.clock = clock;
}

}  // namespace

void abandon(Fault fault, const Site& site, const std::string& text) {
  session->report(fault, site, nullptr, -1, [&] { return text; });
  current->warp->block->abandoned = true;
  throw AbandonBlock{};
}

void warp_operation(const void* args, WarpOperation operation, const Site& site) {
  Lane& lane = *current;
  Warp& warp = *lane.warp;
  if (warp.size != kWarpSize) {
    abandon(Fault::kDivergentWarp, site, "a warp-wide operation in a warp of " + std::to_string(warp.size) + " lanes");
  }
  if (warp.waiting == 0) {
    warp.operation = operation;
    warp.operation_site = site;
  } else if (warp.operation != operation || warp.operation_site.line() != site.line()) {
    abandon(Fault::kDivergentWarp, site,
            "lanes of one warp are at different warp-wide operations: the others at line " +
                std::to_string(warp.operation_site.line()));
  }
  lane.posted = args;
  lane.stopped_at = site;
  if (++warp.waiting < warp.size) return stop(State::kAtWarpOperation);
  warp.waiting = 0;
  const void* all[kWarpSize];
  for (int i = 0; i < warp.size; ++i) {
    all[i] = warp.lanes[i]->posted;
    warp.lanes[i]->state = State::kRunnable;
  }
  if (warp.block->traced) flush(warp, false);
  operation(warp, all);
}

void flush(Warp& warp, bool end_of_interval) {
  Block& block = *warp.block;
  const std::vector<Record>* lists[kWarpSize];
  for (int lane = 0; lane < warp.size; ++lane) lists[lane] = &warp.lanes[lane]->records;
  merge(lists, warp.size, [&](const Column& column) {
    const Access access = Record{column.key, 0}.access();
    const bool memory = access != Access::kRegisterRead && access != Access::kRegisterWrite;
    if (memory && session->options().counts) {
      block.counts.add_column(warp.index, warp.interval, column, lists, warp.size);
    }
    if (block.traced) session->trace.add_column(warp, column);
  });
  for (int lane = 0; lane < warp.size; ++lane) {
    warp.lanes[lane]->records.clear();
    warp.lanes[lane]->values.clear();
  }
  if (end_of_interval) block.counts.close(warp.interval);
}

void record(Access access, const Site& site, uint64_t address, int bytes, int space, bool active, const void* x,
            int skip, int valid) {
  Lane& lane = *current;
  const bool traced = lane.warp->block->traced;
  if (!session->options().counts && !traced) return;
  lane.records.push_back(Record::make(access, site, address, bytes, space, active, skip));
  if (traced) {
    Values values = {};
    if (x != nullptr) std::memcpy(values.word, x, static_cast<size_t>(bytes));
    values.valid = valid;
    lane.values.push_back(values);
  }
  // Not between the two records of a cp.async, which are counted together.
  if (lane.records.size() >= kMaxRecords && access != Access::kAsyncLoad) stop(State::kFull);
}

void block_barrier(Site site) {
  current->stopped_at = site;
  stop(State::kAtBarrier);
}

void warp_barrier(Site site) {
  warp_operation(
      &site,
      [](Warp& warp, const void* const* args) {
        const Site& where = *static_cast<const Site*>(args[0]);
        advance(warp, warp.clock + 1, where);
        if (warp.block->traced) session->trace.add_event(warp.index, Access::kWarpBarrier, where, "");
      },
      site);
}

uint32_t shuffle(uint32_t x, int from, Site site) {
  struct Args {
    uint32_t x;
    int from;
    uint32_t result;
    Site site;
  } args{x, from, 0, site};
  warp_operation(
      &args,
      [](Warp& warp, const void* const* all) {
        for (int lane = 0; lane < warp.size; ++lane) {
          Args& mine = *const_cast<Args*>(static_cast<const Args*>(all[lane]));
          mine.result = static_cast<const Args*>(all[mine.from & 31])->x;
        }
        if (!warp.block->traced) return;
        session->trace.add_event(warp.index, Access::kShuffle, static_cast<const Args*>(all[0])->site, "");
      },
      site);
  return args.result;
}

void register_access(const void* array, int i, const void* x, int bytes, bool packed, bool write, Site site) {
  if (!current->warp->block->traced) return;
  const int number = session->trace.number(array, current->stack_top);
  record(write ? Access::kRegisterWrite : Access::kRegisterRead, site, static_cast<uint64_t>(i), bytes, number, true, x,
         0, packed ? 2 : 1);
}

View static_shared(const void* array, int bytes, int element_bytes, Site declared) {
  return {current->warp->block->shared.get(array, bytes, element_bytes, declared, kMaxStaticBytes), 0, bytes};
}

View dynamic_shared_view(int offset, int count, int element_bytes, Site site) {
  Block& block = *current->warp->block;
  const int64_t end = offset + int64_t{count} * element_bytes;
  if (offset < 0 || end > block.shape.shared_bytes || offset % 32 != 0) {
    abandon(Fault::kSharedOutOfBounds, site,
            "a view of bytes " + std::to_string(offset) + " to " + std::to_string(end) + " of the launch's " +
                std::to_string(block.shape.shared_bytes) +
                " bytes of dynamic shared memory (it must start at a "
                "multiple of 32)");
  }
  return {block.shared.dynamic(block.shape.shared_bytes), offset, static_cast<int>(end)};
}

}  // namespace tcgemm::emulator
