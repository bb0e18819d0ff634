// Barriers, races, shared memory, shuffles: kernels that do one thing right or wrong.
#include "harness.h"

namespace tcgemm::emulator {
namespace {

constexpr int kThreads = 64;

enum class Sync { kNone, kWarp, kBlock };

// Each thread writes its number and reads what the thread BY further on wrote.
template <Sync SYNC, int BY>
__global__ void read_neighbour(Global<float> c) {
  __shared__ SharedArray<float, kThreads> tile;
  const int thread = static_cast<int>(threadIdx.x);
  tile[thread] = static_cast<float>(thread);
  if constexpr (SYNC == Sync::kBlock) __syncthreads();
  if constexpr (SYNC == Sync::kWarp) __syncwarp();
  c[thread] = tile[(thread + BY) % kThreads];
}

// The values that arrive, and whether a race was found.
template <Sync SYNC, int BY>
bool races(Order order) {
  Bench bench(in_order(order));
  Buffer<float> c(kThreads);
  launch(read_neighbour<SYNC, BY>, {.blocks = 1, .threads = kThreads}, kNoStream,
         bench.output("C", c.data(), 1, kThreads, kThreads));
  if (bench.clean()) {
    for (int i = 0; i < kThreads; ++i) EXPECT_EQUAL(c[i], static_cast<float>((i + BY) % kThreads));
  }
  return bench.found(Fault::kRace) || bench.found(Fault::kUninitialisedShared);
}

void races_are_found_in_either_order() {
  for (const Order order : {Order::kAscending, Order::kDescending}) {
    CHECK((!races<Sync::kNone, 0>(order)), "a thread may read what it wrote itself");
    CHECK((races<Sync::kNone, 1>(order)), "another lane's write needs a barrier");
    CHECK((races<Sync::kNone, 32>(order)), "another warp's write needs a barrier");
    CHECK((races<Sync::kWarp, 32>(order)), "__syncwarp orders one warp alone");
    CHECK((!races<Sync::kBlock, 1>(order)), "__syncthreads orders the block");
    CHECK((!races<Sync::kBlock, 32>(order)), "__syncthreads orders the block");
  }
}

__global__ void exchange_in_a_warp(Global<float> c) {
  __shared__ SharedArray<float, 32> tile;
  const int lane = static_cast<int>(threadIdx.x);
  for (int round = 0; round < 3; ++round) {
    tile[lane] = static_cast<float>(lane + round);
    __syncwarp();
    const float x = tile[31 - lane];
    __syncwarp();
    if (round == 2) c[lane] = x;
  }
}

__global__ void overwrite_too_early(Global<float> c) {
  __shared__ SharedArray<float, 32> tile;
  const int lane = static_cast<int>(threadIdx.x);
  for (int round = 0; round < 2; ++round) {
    tile[lane] = static_cast<float>(round);
    __syncwarp();
    const float x = tile[31 - lane];
    if (round == 1) c[lane] = x;
  }
}

__global__ void all_write_one(Global<float> c) {
  __shared__ SharedArray<float, 1> tile;
  tile[0] = 1.0f;
  __syncthreads();
  c[threadIdx.x] = tile[0];
}

// Shared memory keeps its bytes from block to block, but a block may not use what another one left.
__global__ void leave_something_behind(Global<float> c) {
  __shared__ SharedArray<float, 32> tile;
  const int lane = static_cast<int>(threadIdx.x);
  if (blockIdx.x == 0) tile[lane] = 1.0f;
  const float x = tile[lane];
  c[static_cast<int64_t>(blockIdx.x) * 32 + lane] = x;
}

template <class Kernel>
void run_on_c(Kernel kernel, Fault expected, bool should_fail, int blocks = 1, int threads = 32) {
  Bench bench;
  Buffer<float> c(blocks * threads);
  launch(kernel, {.blocks = blocks, .threads = threads}, kNoStream,
         bench.output("C", c.data(), 1, blocks * threads, blocks * threads));
  CHECK(bench.found(expected) == should_fail && (should_fail || bench.clean()), "%s", bench.faults().c_str());
}

void order_inside_a_warp() {
  run_on_c(exchange_in_a_warp, Fault::kRace, false);
  run_on_c(overwrite_too_early, Fault::kRace, true);
  run_on_c(all_write_one, Fault::kRace, true);
  run_on_c(leave_something_behind, Fault::kUninitialisedShared, true, 2);
}

__global__ void barrier_for_one_warp(Global<float> c) {
  if (threadIdx.x < 32) __syncthreads();
  c[threadIdx.x] = 0.0f;
}
__global__ void two_barriers(Global<float> c) {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
  c[threadIdx.x] = 0.0f;
}
__global__ void leaves_early(Global<float> c) {
  c[threadIdx.x] = 0.0f;
  if (threadIdx.x == 63) return;
  __syncthreads();
}
__global__ void syncwarp_for_half(Global<float> c) {
  c[threadIdx.x] = 0.0f;
  if (threadIdx.x % 32 < 16) __syncwarp();
}

void divergence() {
  run_on_c(barrier_for_one_warp, Fault::kDivergentBarrier, true, 1, 64);
  run_on_c(two_barriers, Fault::kDivergentBarrier, true, 1, 64);
  run_on_c(leaves_early, Fault::kDivergentBarrier, true, 1, 64);
  run_on_c(syncwarp_for_half, Fault::kDivergentWarp, true, 1, 64);
}

__global__ void shared_index(Global<float> c, int index) {
  __shared__ SharedArray<float, 8> tile;
  for (int i = 0; i < 8; ++i) tile[i] = 1.0f;
  c[0] = tile[index];
}

void shared_bounds() {
  for (const int index : {0, 7, 8, -1}) {
    Bench bench;
    Buffer<float> c(1);
    launch(shared_index, {}, kNoStream, bench.output("C", c.data(), 1, 1, 1), index);
    CHECK(bench.found(Fault::kSharedOutOfBounds) == (index < 0 || index > 7), "%s", bench.faults().c_str());
  }
}

__global__ void shuffles(Global<float> c) {
  const int lane = static_cast<int>(threadIdx.x);
  const float x = static_cast<float>(lane);
  float sum = x;
  for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, by);
  const float down = __shfl_down_sync(0xffffffffu, x, 3), up = __shfl_up_sync(0xffffffffu, x, 1);
  const float first = __shfl_sync(0xffffffffu, x, 5);
  c[lane] = sum + 1000.0f * down + 100000.0f * up + first / 64.0f;
}

void shuffles_move_registers() {
  Bench bench;
  Buffer<float> c(32);
  launch(shuffles, {.blocks = 1, .threads = 32}, kNoStream, bench.output("C", c.data(), 1, 32, 32));
  EXPECT_CLEAN(bench);
  for (int lane = 0; lane < 32; ++lane) {
    const int down = lane + 3 < 32 ? lane + 3 : lane, up = lane > 0 ? lane - 1 : lane;
    EXPECT_EQUAL(c[lane],
                 496.0f + 1000.0f * static_cast<float>(down) + 100000.0f * static_cast<float>(up) + 5.0f / 64.0f);
  }
}

void launches_that_cannot_be() {
  for (const LaunchShape& shape :
       {LaunchShape{.threads = 1025}, LaunchShape{.shared_bytes = 300000}, LaunchShape{.blocks = 0}}) {
    Bench bench;
    Buffer<float> c(1);
    const int error = launch(shared_index, shape, kNoStream, bench.output("C", c.data(), 1, 1, 1), 0);
    CHECK(error != 0, "the launch must fail");
    EXPECT_FAULT(bench, Fault::kLaunch);
  }
}

}  // namespace

void test_machine() {
  races_are_found_in_either_order();
  order_inside_a_warp();
  divergence();
  shared_bounds();
  shuffles_move_registers();
  launches_that_cannot_be();
}

}  // namespace tcgemm::emulator
