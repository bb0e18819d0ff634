// The machine: one block at a time per OS thread, a fibre for each of its CUDA threads.
#pragma once
#include <boost/context/fiber.hpp>
#include <memory>
#include <vector>

#include "counts.h"
#include "hooks.h"
#include "session.h"
#include "shared.h"

namespace tcgemm::emulator {

constexpr int kWarpSize = 32;
constexpr int kMaxThreads = 1024;
constexpr int kMaxSharedBytes = 227 * 1024;  // static and dynamic together, sm_90
constexpr int kMaxStaticBytes = 48 * 1024;

struct Warp;
struct Block;

enum class State : uint8_t { kRunnable, kAtWarpOperation, kAtBarrier, kFull, kDone };

struct PendingCopy {
  Region* region;
  int first;  // byte
  unsigned char bytes[16];
};

struct Lane {
  Position position;
  Warp* warp = nullptr;
  int thread = 0;
  State state = State::kDone;
  const void* stack_top = nullptr;
  Site stopped_at;
  const void* posted = nullptr;  // the arguments of the warp operation it waits for
  std::vector<Record> records;
  std::vector<Values> values;                    // beside records, in a traced block only
  std::vector<std::vector<PendingCopy>> groups;  // cp.async, oldest first; the last one is open
  int64_t global_reads = 0;                      // load instructions in this block
  boost::context::fiber fibre, scheduler;
};

using WarpOperation = void (*)(Warp& warp, const void* const* args);

struct Warp {
  Block* block = nullptr;
  int index = 0, size = 0;
  uint32_t clock = 0;
  Lane* lanes[kWarpSize] = {};
  int waiting = 0, done = 0;
  WarpOperation operation = nullptr;
  Site operation_site;
  Interval interval;  // sectors touched since the last barrier
};

// Thrown in every fibre of a block that cannot go on.
struct AbandonBlock {};

struct Block {
  Launch shape;
  int64_t index = 0;
  bool traced = false, abandoned = false;
  uint32_t start = 0, last_barrier = 0;  // clocks; older stamps are another block's, or ordered before everything now
  std::vector<Warp> warps;
  std::vector<std::unique_ptr<Lane>> lanes;
  SharedMemory shared;
  Counts counts;
};

extern constinit thread_local Lane* current;

// Runs `operation` once all lanes of the warp have come here, on the last one's fibre.
void warp_operation(const void* args, WarpOperation operation, const Site& site);
// Reports and leaves the block.
[[noreturn]] void abandon(Fault fault, const Site& site, const std::string& text);
// Merges what a warp's lanes have recorded since the last call.
void flush(Warp& warp, bool end_of_interval);

// Appends an access to the current lane's record. `x`: its value, `bytes` of it. `skip`: visits of the site that the
// lane leaves out. `valid`: elements that a cp.async reads, or that a register holds.
void record(Access access, const Site& site, uint64_t address, int bytes, int space, bool active, const void* x,
            int skip = 0, int valid = 0);

}  // namespace tcgemm::emulator
