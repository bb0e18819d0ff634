#include "machine.h"

#include <atomic>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <chrono>
#include <cstring>
#include <thread>

#include "session.h"

namespace tcgemm::emulator {

constinit thread_local Lane* current = nullptr;
constinit thread_local const Position* position = nullptr;

namespace {

constexpr size_t kStackBytes = 128 * 1024;  // of a fibre; only what is touched costs memory
constexpr size_t kMaxRecords = 4096;        // a lane that has recorded so much waits for its warp to be merged

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
    abandon(Fault::kDivergentWarp, site, "lanes of one warp are at different warp-wide operations: the others at line " +
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
      block.counts.add_column(warp.index, warp.interval, column, warp.size);
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
            int skip) {
  Lane& lane = *current;
  const bool traced = lane.warp->block->traced;
  if (!session->options().counts && !traced) return;
  lane.records.push_back(Record::make(access, site, address, bytes, space, active, skip));
  if (traced) {
    Values values = {};
    if (x != nullptr) std::memcpy(&values, x, static_cast<size_t>(bytes));
    lane.values.push_back(values);
  }
  if (lane.records.size() >= kMaxRecords) stop(State::kFull);
}

void block_barrier(Site site) {
  current->stopped_at = site;
  stop(State::kAtBarrier);
}

void warp_barrier(Site site) {
  warp_operation(&site, [](Warp& warp, const void* const* args) {
    const Site& where = *static_cast<const Site*>(args[0]);
    advance(warp, warp.clock + 1, where);
    if (warp.block->traced) session->trace.add_event(warp.index, Access::kWarpBarrier, where, "");
  }, site);
}

uint32_t shuffle(uint32_t x, int from, Site site) {
  struct Args {
    uint32_t x;
    int from;
    uint32_t result;
    Site site;
  } args{x, from, 0, site};
  warp_operation(&args, [](Warp& warp, const void* const* all) {
    for (int lane = 0; lane < warp.size; ++lane) {
      Args& mine = *const_cast<Args*>(static_cast<const Args*>(all[lane]));
      mine.result = static_cast<const Args*>(all[mine.from & 31])->x;
    }
    if (!warp.block->traced) return;
    session->trace.add_event(warp.index, Access::kShuffle, static_cast<const Args*>(all[0])->site, "");
  }, site);
  return args.result;
}

void register_access(const void* array, int i, const void* x, int bytes, bool write, Site site) {
  if (!current->warp->block->traced) return;
  const int number = session->trace.number(array, current->stack_top);
  record(write ? Access::kRegisterWrite : Access::kRegisterRead, site, static_cast<uint64_t>(i), bytes, number, true, x);
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
                std::to_string(block.shape.shared_bytes) + " bytes of dynamic shared memory (it must start at a "
                "multiple of 32)");
  }
  return {block.shared.dynamic(block.shape.shared_bytes), offset, static_cast<int>(end)};
}

namespace {

// What one OS thread owns: the fibres, made once, and the block that they run now.
class Worker {
 public:
  Worker(const Launch& shape, void (*body)(const void*), const void* context) : body_(body), context_(context) {
    block_.shape = shape;
    block_.warps.resize(static_cast<size_t>((shape.threads + kWarpSize - 1) / kWarpSize));
    for (int thread = 0; thread < shape.threads; ++thread) add_lane(thread);
  }

  void run(int64_t index) {
    start(index);
    while (true) {
      bool done = true;
      for (size_t i = 0; i < block_.warps.size(); ++i) {
        Warp& warp = block_.warps[descending_ ? block_.warps.size() - 1 - i : i];
        run_warp(warp);
        done = done && warp.done == warp.size;
      }
      if (done) break;
      if (block_.abandoned) {
        give_up();
      } else {
        release_barrier();
      }
    }
    finish();
  }

  const Counts& counts() const { return block_.counts; }

 private:
  void add_lane(int thread) {
    auto lane = std::make_unique<Lane>();
    Warp& warp = block_.warps[static_cast<size_t>(thread / kWarpSize)];
    warp.block = &block_;
    warp.index = thread / kWarpSize;
    warp.lanes[warp.size++] = lane.get();
    lane->warp = &warp;
    lane->thread = thread;
    lane->position.thread.x = static_cast<unsigned>(thread);
    lane->position.block_dim = {static_cast<unsigned>(block_.shape.threads), 1, 1};
    lane->position.grid_dim = {static_cast<unsigned>(block_.shape.blocks), 1, 1};
    lane->fibre = boost::context::fiber(std::allocator_arg, boost::context::protected_fixedsize_stack(kStackBytes),
                                        [this](boost::context::fiber&& scheduler) { return live(std::move(scheduler)); });
    block_.lanes.push_back(std::move(lane));
  }

  boost::context::fiber live(boost::context::fiber&& scheduler) {
    Lane& lane = *current;
    const char top = 0;
    lane.scheduler = std::move(scheduler);
    lane.stack_top = &top;
    while (true) {
      try {
        if (!block_.abandoned) body_(context_);
      } catch (const AbandonBlock&) {
      }
      lane.state = State::kDone;
      ++lane.warp->done;
      lane.scheduler = std::move(lane.scheduler).resume();  // the next block
    }
  }

  void start(int64_t index) {
    uint32_t clock = block_.last_barrier;
    for (const Warp& warp : block_.warps) clock = std::max(clock, warp.clock);
    if (++clock > kMaxClock / 2) {
      block_.shared.clear_shadows();
      clock = 1;
    }
    block_.index = index;
    block_.abandoned = false;
    block_.traced = index == session->options().trace_block;
    block_.start = block_.last_barrier = clock;
    const Order order = session->options().order;
    descending_ = order == Order::kDescending || (order == Order::kAlternate && index % 2 == 1);
    for (Warp& warp : block_.warps) {
      warp.clock = clock;
      warp.waiting = warp.done = 0;
    }
    for (const auto& lane : block_.lanes) {
      lane->position.block.x = static_cast<unsigned>(index);
      lane->state = State::kRunnable;
      lane->groups.assign(1, {});
      lane->global_reads = 0;
    }
  }

  void resume(Lane& lane) {
    current = &lane;
    position = &lane.position;
    lane.fibre = std::move(lane.fibre).resume();
  }

  // Until no lane of the warp can go on by itself.
  void run_warp(Warp& warp) {
    for (bool any = true; any;) {
      any = false;
      bool full = false;
      for (int i = 0; i < warp.size; ++i) {
        if (warp.lanes[i]->state == State::kRunnable) {
          resume(*warp.lanes[i]);
          any = true;
        }
        full = full || warp.lanes[i]->state == State::kFull;
      }
      if (any || !full) continue;
      flush(warp, false);
      for (int i = 0; i < warp.size; ++i) {
        if (warp.lanes[i]->state == State::kFull) warp.lanes[i]->state = State::kRunnable;
      }
      any = true;
    }
  }

  // All warps stand still. Either everybody is at the same barrier, or the block cannot go on.
  void release_barrier() {
    const Lane* first = nullptr;
    for (const auto& lane : block_.lanes) {
      if (first == nullptr && lane->state == State::kAtBarrier) first = lane.get();
    }
    uint32_t clock = 0;
    for (const auto& lane : block_.lanes) {
      if (!check_arrival(*lane, first)) return give_up();
      clock = std::max(clock, lane->warp->clock);
    }
    if (clock + 1 >= kMaxClock) {
      session->report(Fault::kLaunch, first->stopped_at, nullptr, -1,
                      [] { return "more barriers in one block than the emulator can tell apart"; });
      return give_up();
    }
    ++block_.counts.barriers;
    block_.last_barrier = clock + 1;
    for (Warp& warp : block_.warps) {
      current = warp.lanes[0];
      flush(warp, true);
      if (block_.traced) session->trace.add_event(warp.index, Access::kBlockBarrier, first->stopped_at, "");
      warp.clock = block_.last_barrier;
    }
    for (const auto& lane : block_.lanes) lane->state = State::kRunnable;
  }

  bool check_arrival(Lane& lane, const Lane* first) {
    current = &lane;
    if (lane.state == State::kAtWarpOperation) {
      session->report(Fault::kDivergentWarp, lane.stopped_at, nullptr, -1,
                      [] { return "waits at a warp-wide operation that other lanes of the warp never reach"; });
      return false;
    }
    if (lane.state == State::kDone) {
      session->report(Fault::kDivergentBarrier, first->stopped_at, nullptr, -1,
                      [] { return "returned while other threads of the block wait at a barrier"; });
      return false;
    }
    if (lane.stopped_at.line() == first->stopped_at.line()) return true;
    session->report(Fault::kDivergentBarrier, lane.stopped_at, nullptr, -1, [&] {
      return "waits at this barrier while warp " + std::to_string(first->warp->index) + ", lane " +
             std::to_string(first->thread % kWarpSize) + " waits at line " + std::to_string(first->stopped_at.line());
    });
    return false;
  }

  void give_up() {
    block_.abandoned = true;
    for (const auto& lane : block_.lanes) {
      if (lane->state != State::kDone) lane->state = State::kRunnable;
    }
  }

  void finish() {
    for (Warp& warp : block_.warps) flush(warp, true);
    if (block_.traced) session->trace.describe(block_.shared);
    for (const auto& lane : block_.lanes) {
      block_.counts.reads_per_thread = std::max(block_.counts.reads_per_thread, lane->global_reads);
    }
    current = nullptr;
  }

  Block block_;
  void (*body_)(const void*);
  const void* context_;
  bool descending_ = false;
};

std::string why_not_launch(const Launch& shape) {
  if (shape.threads < 1 || shape.threads > kMaxThreads) {
    return std::to_string(shape.threads) + " threads a block; 1 to " + std::to_string(kMaxThreads) + " are possible";
  }
  if (shape.shared_bytes > kMaxSharedBytes) {
    return std::to_string(shape.shared_bytes) + " bytes of dynamic shared memory; the most is " +
           std::to_string(kMaxSharedBytes);
  }
  if (shape.blocks < 1 || shape.blocks > INT32_MAX) {
    return "a grid of " + std::to_string(shape.blocks) + " blocks; 1 to 2147483647 are possible";
  }
  return "";
}

}  // namespace

int run_grid(const Launch& shape, void (*body)(const void*), const void* context) {
  if (const std::string reason = why_not_launch(shape); !reason.empty()) {
    session->report(Fault::kLaunch, Site{}, nullptr, -1, [&] { return reason; });
    return 9;  // cudaErrorInvalidConfiguration
  }
  std::atomic<int64_t> next{0}, done{0};
  const auto work = [&] {
    Worker worker(shape, body, context);
    for (int64_t index = next++; index < shape.blocks; index = next++) {
      worker.run(index);
      ++done;
    }
    session->add(worker.counts());
  };
  const int64_t threads = std::min<int64_t>(session->options().os_threads, shape.blocks);
  std::vector<std::thread> pool;
  for (int64_t i = 0; i < threads; ++i) pool.emplace_back(work);
  while (session->options().progress && done < shape.blocks) {
    session->options().progress(done, shape.blocks);
    std::this_thread::sleep_for(std::chrono::milliseconds(done == 0 ? 20 : 100));
  }
  for (std::thread& thread : pool) thread.join();
  return 0;
}

}  // namespace tcgemm::emulator
