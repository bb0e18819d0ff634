// wgmma: Hopper's own path (sm_90a). TMA fills a ring in shared memory, and wgmma multiplies straight from it.
//
// A block is persistent, one on each SM, and takes tiles of C in turn. Its 384 threads are three warpgroups:
//   warpgroup  role      registers   does
//   0          producer  24 or 40    one thread asks TMA for the k-blocks of all the tiles, in order
//   1, 2       consumer  240 or 232  cooperative: half the rows of every tile; ping-pong: every other tile
//
//   barrier       arrivals                        its phase ends when
//   full[stage]   1 + the bytes of a k-block      the k-block has landed
//   empty[stage]  4 warps x consuming warpgroups  the wgmma that read the stage are done
//   named 1, 2    256, ping-pong only             consumer 0, 1 may start its main loop, the other's is issued. Without
//                                                 it one could run a round of the ring ahead of the other, and a
//                                                 parity would mean two phases
//
// Storing a tile takes as long as the SM's store path makes it (32 bytes a clock): cooperative forms show it,
// ping-pong hides it behind the other warpgroup's main loop. kernels/wgmma_forms.h has the forms and their choice.
#include "../device/launch.cuh"
#include "../device/mbarrier.cuh"
#include "../device/tma.cuh"
#include "../device/wgmma.cuh"
#include "../device/wgmma_store.cuh"
#include "wgmma_forms.h"

namespace tcgemm {
namespace {

constexpr int BK = 64;  // halves: one swizzled line
constexpr int kGroupThreads = 128, kConsumers = 2, kThreads = (1 + kConsumers) * kGroupThreads;
constexpr int kBlockOf64Bytes = TileWalk<Lines::kAlongK>::kPer64MnBytes;
constexpr int kOrderBarrier = 1;  // and 2; barrier 0 is __syncthreads
constexpr int kSharedBytesPerBlock = 232448;

// A form, and where its ring lies in shared memory: the stages of A, those of B, the full barriers, the empty ones.
template <int FORM>
struct Ring {
  static constexpr WgmmaForm kForm = kWgmmaForms[FORM];
  static constexpr int BM = kForm.bm, BN = kForm.bn, kStages = kForm.stages;
  static constexpr bool kPingPong = kForm.ping_pong;
  static constexpr int kRows = kForm.rows_per_group(), kBlocksM = kRows / kWgmmaM;  // of a warpgroup
  static constexpr int kABytes = BM * BK * 2, kBBytes = BN * BK * 2;
  static constexpr int kSharedBytes = kStages * (kABytes + kBBytes + 2 * 8);
  static_assert(kRows % kWgmmaM == 0 && BN % 64 == 0, "an operand along m or n comes in blocks of 64");
  static_assert(kSharedBytes <= kSharedBytesPerBlock, "the ring must fit");
  static_assert(kGroupThreads * (kForm.producer_registers + kConsumers * kForm.consumer_registers) <= 65536);

  uint32_t base;
  __device__ __forceinline__ uint32_t a(int stage) const { return base + stage * kABytes; }
  __device__ __forceinline__ uint32_t b(int stage) const { return base + kStages * kABytes + stage * kBBytes; }
  __device__ __forceinline__ Mbarrier full(int stage) const {
    return {base + kStages * (kABytes + kBBytes) + 8 * stage};
  }
  __device__ __forceinline__ Mbarrier empty(int stage) const { return full(kStages + stage); }
};

// What blocks need to know of the plan.
struct Tiling {
  int tiles_m, tiles_n, group;
  int k_blocks, chains, k_blocks_per_chain;
};

// A piece of work: a tile and a range of k-blocks. Without k-blocks there is nothing to do, but it counts as a turn.
struct Unit {
  int row0, col0, k_block0, k_blocks;
  bool first;  // of its tile: later ones add to C
};

// The units of this block, in the order in which the producer loads them. In ping-pong form they alternate between the
// consumers, and all the chains of a tile fall to one of them: each element of C is added up by one thread.
template <class R>
struct Schedule {
  Tiling tiling;
  int tiles;  // of this block

  __device__ __forceinline__ explicit Schedule(const Tiling& t) : tiling(t) {
    const int blocks = gridDim.x, block = blockIdx.x;
    tiles = (t.tiles_m * t.tiles_n - block + blocks - 1) / blocks;
  }
  __device__ __forceinline__ int units() const {
    return (R::kPingPong ? (tiles + 1) / 2 * 2 : tiles) * tiling.chains;
  }
  __device__ __forceinline__ Unit unit(int u) const {
    constexpr int kTurns = R::kPingPong ? kConsumers : 1;
    const int round = u / (kTurns * tiling.chains), turn = u - round * kTurns * tiling.chains;
    const int index = round * kTurns + turn % kTurns, chain = turn / kTurns;
    const int tile = index * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x);
    const int per_group = tiling.group * tiling.tiles_n;
    const int group = tile / per_group, in_group = tile - group * per_group;
    const int rows = min(tiling.group, tiling.tiles_m - group * tiling.group);
    const int k_block0 = chain * tiling.k_blocks_per_chain;
    return {.row0 = (group * tiling.group + in_group % rows) * R::BM,
            .col0 = in_group / rows * R::BN,
            .k_block0 = k_block0,
            .k_blocks = index < tiles ? min(tiling.k_blocks_per_chain, tiling.k_blocks - k_block0) : 0,
            .first = chain == 0};
  }
};

// EXTENT rows of A, or columns of B, x 64 k.
template <Lines LINES, int EXTENT>
__device__ __forceinline__ void load_tile(uint32_t to, const CUtensorMap& map, int mn0, int k0, Mbarrier full) {
  if constexpr (LINES == Lines::kAlongK) {
    tma_load(to, map, k0, mn0, full);
  } else {
#pragma unroll
    for (int i = 0; i < EXTENT / 64; ++i) tma_load(to + i * kBlockOf64Bytes, map, mn0 + 64 * i, k0, full);
  }
}

template <Lines A, Lines B, class R>
__device__ __forceinline__ void produce(const R& ring, const Schedule<R>& schedule, const CUtensorMap& map_a,
                                        const CUtensorMap& map_b) {
  RingCursor<R::kStages> at;
  const int units = schedule.units();
  for (int u = 0; u < units; ++u) {
    const Unit unit = schedule.unit(u);
    for (int kb = 0; kb < unit.k_blocks; ++kb) {
      ring.empty(at.slot).wait(at.parity ^ 1);
      const Mbarrier full = ring.full(at.slot);
      full.arrive_expect_bytes(R::kABytes + R::kBBytes);
      const int k0 = (unit.k_block0 + kb) * BK;
      load_tile<A, R::BM>(ring.a(at.slot), map_a, unit.row0, k0, full);
      load_tile<B, R::BN>(ring.b(at.slot), map_b, unit.col0, k0, full);
      at.advance();
    }
  }
}

// acc = this warpgroup's rows x BN columns over the k-blocks of a unit; the last ones may still be under way. A stage
// is given back when the next one has been issued: one group of wgmma is always pending.
template <class T, Lines A, Lines B, class R>
__device__ __forceinline__ void multiply_unit(float (&acc)[R::kBlocksM][R::BN / 2], const R& ring,
                                              RingCursor<R::kStages>& at, int k_blocks, int row_in_tile) {
  const uint32_t offset_a = row_in_tile / kWgmmaM * kBlockOf64Bytes;
  int previous = 0;
  for (int kb = 0; kb < k_blocks; ++kb) {
    ring.full(at.slot).wait(at.parity);
    wgmma_fence();
    const uint64_t a = wgmma_descriptor(ring.a(at.slot) + offset_a), b = wgmma_descriptor(ring.b(at.slot));
#pragma unroll
    for (int k16 = 0; k16 < BK / kWgmmaK; ++k16) {
#pragma unroll
      for (int i = 0; i < R::kBlocksM; ++i) {
        Wgmma<T, R::BN, A, B>::run(acc[i], a + (i * kBlockOf64Bytes + k16 * TileWalk<A>::kPer16KBytes) / 16,
                                   b + k16 * TileWalk<B>::kPer16KBytes / 16, k16 == 0 ? kb : 1);
      }
    }
    wgmma_commit();
    wgmma_wait<1>();
    if (kb > 0 && threadIdx.x % 32 == 0) ring.empty(previous).arrive();
    previous = at.slot;
    at.advance();
  }
}

template <class T, Lines A, Lines B, class R>
__device__ __forceinline__ void consume(const R& ring, const Schedule<R>& schedule, const WgmmaResult& c, int consumer) {
  const int row_in_tile = R::kPingPong ? 0 : consumer * R::kRows;
  const int warp_row = row_in_tile + threadIdx.x % kGroupThreads / 32 * 16;
  const int units = schedule.units();
  RingCursor<R::kStages> at;
  if (R::kPingPong && consumer == 1) named_barrier_arrive(kOrderBarrier, 2 * kGroupThreads);
  for (int u = 0; u < units; ++u) {
    const Unit unit = schedule.unit(u);
    if (R::kPingPong && u % 2 != consumer) {
      at.advance(unit.k_blocks);
      continue;
    }
    float acc[R::kBlocksM][R::BN / 2];
    if (R::kPingPong) named_barrier_sync(kOrderBarrier + consumer, 2 * kGroupThreads);
    multiply_unit<T, A, B>(acc, ring, at, unit.k_blocks, row_in_tile);
    // Behind the last unit nobody waits for a turn.
    if (R::kPingPong && u + 1 < units) named_barrier_arrive(kOrderBarrier + 1 - consumer, 2 * kGroupThreads);
    wgmma_wait<0>();
    wgmma_landed(acc);
    if (unit.k_blocks == 0) continue;
    if (threadIdx.x % 32 == 0) ring.empty(at.slot == 0 ? R::kStages - 1 : at.slot - 1).arrive();
#pragma unroll
    for (int i = 0; i < R::kBlocksM; ++i) {
      store_accumulators<R::BN>(c, acc[i], unit.row0 + warp_row + i * kWgmmaM, unit.col0, c.accumulate || !unit.first);
    }
  }
}

template <class T, Lines A, Lines B, int FORM>
__global__ void __launch_bounds__(kThreads, 1)
    wgmma_kernel(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
                 const WgmmaResult c, const Tiling tiling) {
  using R = Ring<FORM>;
  const SharedSpan<unsigned char> shared = dynamic_shared<unsigned char>(0, R::kSharedBytes);
  const R ring = {static_cast<uint32_t>(__cvta_generic_to_shared(shared.data))};
  if (threadIdx.x == 0) {
    if (ring.base % kSwizzleAtomBytes != 0) __trap();  // the swizzle works on address bits
    for (int stage = 0; stage < R::kStages; ++stage) {
      ring.full(stage).init(1);
      ring.empty(stage).init(4 * (R::kPingPong ? 1 : kConsumers));
    }
    fence_mbarrier_init();
    tma_prefetch_map(map_a);
    tma_prefetch_map(map_b);
  }
  __syncthreads();
  const Schedule<R> schedule(tiling);
  const int warpgroup = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / kGroupThreads, 0);  // uniform, so ptxas knows
  if (warpgroup == 0) {
    release_registers<R::kForm.producer_registers>();
    if (threadIdx.x == 0) produce<A, B>(ring, schedule, map_a, map_b);
  } else {
    claim_registers<R::kForm.consumer_registers>();
    consume<T, A, B>(ring, schedule, c, warpgroup - 1);
  }
}

// C transposed is B transposed times A transposed: with C column-major that is the problem whose rows of C are contiguous.
GemmProblem with_row_major_result(const GemmProblem& p) {
  const auto transposed = [](const Operand& x) { return Operand{x.data, x.col_stride, x.row_stride, x.batch_stride}; };
  if (p.c.col_stride == 1 || p.c.row_stride != 1 || p.n == 1) return p;
  GemmProblem t = p;
  t.m = p.n;
  t.n = p.m;
  t.a = transposed(p.b);
  t.b = transposed(p.a);
  t.c = transposed(p.c);
  return t;
}

template <class T, Lines A, Lines B, int FORM>
int launch_form(const GemmProblem& p, const DeviceInfo& device, const WgmmaPlan& plan, const TmaView& a,
                const TmaView& b) {
  using R = Ring<FORM>;
  CUtensorMap map_a = {}, map_b = {};
  if (p.stream.footprint == nullptr) {
    const int error_a = tma_encode(&map_a, a, p.dtype, A == Lines::kAlongK ? R::BM : BK);
    if (error_a != cudaSuccess) return error_a;
    const int error_b = tma_encode(&map_b, b, p.dtype, B == Lines::kAlongK ? R::BN : BK);
    if (error_b != cudaSuccess) return error_b;
  }
  const int64_t k_blocks = ceil_div(p.k, BK);
  const Tiling tiling = {static_cast<int>(plan.tiles_m), static_cast<int>(plan.tiles_n), plan.group,
                         static_cast<int>(k_blocks),     static_cast<int>(plan.chains),
                         static_cast<int>(ceil_div(k_blocks, plan.chains))};
  return launch(wgmma_kernel<T, A, B, FORM>,
                {.blocks = std::min<int64_t>(device.sm_count, plan.tiles_m * plan.tiles_n),
                 .threads = kThreads,
                 .shared_bytes = R::kSharedBytes},
                p.stream, map_a, map_b, wgmma_result(p), tiling);
}

template <class T, Lines A, Lines B, int FORM = 0>
int launch_row(const GemmProblem& p, const DeviceInfo& device, const WgmmaPlan& plan, const TmaView& a,
               const TmaView& b) {
  if (plan.form == FORM) return launch_form<T, A, B, FORM>(p, device, plan, a, b);
  if constexpr (FORM + 1 < kWgmmaFormCount) return launch_row<T, A, B, FORM + 1>(p, device, plan, a, b);
  return cudaErrorInvalidValue;
}

std::string refuses_wgmma(const GemmProblem& problem, const DeviceInfo&) {
  const GemmProblem p = with_row_major_result(problem);
  if (p.batch != 1) return "takes no batches (batch=" + std::to_string(p.batch) + "); use algo=None";
  if (p.bias != nullptr || p.activation != Activation::kNone) return "has no bias and no activation; use algo=None";
  if (p.precision != Precision::kTensorCore) return "adds up inside the tensor cores only; use algo=None";
  if (p.m == 0 || p.n == 0 || p.k == 0) return "";
  const std::string a = tma_view(p.a, p.m, p.k, "a").refusal, b = tma_view(p.b, p.k, p.n, "b").refusal;
  if (!a.empty() || !b.empty()) return (a.empty() ? b : a) + "; use algo=None";
  constexpr int kSmallest = 64 * 64;
  if (ceil_div(p.m, 64) * ceil_div(p.n, 64) > INT32_MAX) return "has more than 2^31 tiles of " + std::to_string(kSmallest);
  return "";
}

int launch_wgmma(const GemmProblem& p, const DeviceInfo& device) {
  const GemmProblem q = with_row_major_result(p);
  return launch_wgmma_plan(q, device, wgmma_plan(q.m, q.n, q.k, device.sm_count));
}

// Copies that the producer asks for, for one tile: a box is at most 64 x 256.
int64_t reads_wgmma(const GemmProblem& problem) {
  const GemmProblem p = with_row_major_result(problem);
  const int64_t boxes_a = tma_view(p.a, p.m, p.k, "a").along_cols ? 1 : 2;
  const int64_t boxes_b = tma_view(p.b, p.k, p.n, "b").along_cols ? 4 : 1;
  return ceil_div(p.k, BK) * (boxes_a + boxes_b);
}

}  // namespace

int launch_wgmma_plan(const GemmProblem& problem, const DeviceInfo& device, const WgmmaPlan& plan) {
  const GemmProblem p = with_row_major_result(problem);
  const TmaView a = tma_view(p.a, p.m, p.k, "a"), b = tma_view(p.b, p.k, p.n, "b");
  if (!a.refusal.empty() || !b.refusal.empty()) return cudaErrorInvalidValue;
  const auto for_layout = [&]<class T>() {
    if (a.along_cols) {
      return b.along_cols ? launch_row<T, Lines::kAlongK, Lines::kAlongMn>(p, device, plan, a, b)
                          : launch_row<T, Lines::kAlongK, Lines::kAlongK>(p, device, plan, a, b);
    }
    return b.along_cols ? launch_row<T, Lines::kAlongMn, Lines::kAlongMn>(p, device, plan, a, b)
                        : launch_row<T, Lines::kAlongMn, Lines::kAlongK>(p, device, plan, a, b);
  };
  return p.dtype == DType::kFloat16 ? for_layout.template operator()<__half>()
                                    : for_layout.template operator()<__nv_bfloat16>();
}

extern const KernelEntry wgmma_entry = {
    .refuses = refuses_wgmma, .global_reads = reads_wgmma, .launch = launch_wgmma};

}  // namespace tcgemm
