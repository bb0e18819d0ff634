// The scheduler: fibres made once per OS thread, blocks dealt out to the OS threads, lanes run one after the other.
#include <algorithm>
#include <atomic>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <chrono>
#include <thread>

#include "../device/launch.cuh"
#include "machine.h"
#include "session.h"

namespace tcgemm::emulator {
namespace {

constexpr size_t kStackBytes = 128 * 1024;  // of a fibre; only what is touched costs memory

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
    lane->fibre =
        boost::context::fiber(std::allocator_arg, boost::context::protected_fixedsize_stack(kStackBytes),
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
      if (lane->state == State::kAtWarpOperation) return report_stuck(*lane);
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

  void report_stuck(Lane& lane) {
    current = &lane;
    session->report(Fault::kDivergentWarp, lane.stopped_at, nullptr, -1,
                    [] { return "waits at a warp-wide operation that other lanes of the warp never reach"; });
    give_up();
  }

  bool check_arrival(Lane& lane, const Lane* first) {
    current = &lane;
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

std::string why_not_launch(const Launch& shape, int capability) {
  if (shape.threads < 1 || shape.threads > kMaxThreads) {
    return std::to_string(shape.threads) + " threads a block; 1 to " + std::to_string(kMaxThreads) + " are possible";
  }
  if (const int most = shared_bytes_a_block(capability); shape.shared_bytes > most) {
    return std::to_string(shape.shared_bytes) + " bytes of dynamic shared memory; the most is " + std::to_string(most);
  }
  if (shape.blocks < 1 || shape.blocks > INT32_MAX) {
    return "a grid of " + std::to_string(shape.blocks) + " blocks; 1 to 2147483647 are possible";
  }
  return "";
}

}  // namespace

int run_grid(const Launch& shape, void (*body)(const void*), const void* context) {
  if (const std::string reason = why_not_launch(shape, session->options().arch); !reason.empty()) {
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
