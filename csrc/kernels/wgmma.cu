// wgmma: Hopper's own path (sm_90a). TMA fills a ring in shared memory, and wgmma multiplies straight from it.
//
// A block is persistent, one on each SM, and takes tiles of C in turn. Its 256 to 512 threads are warpgroups:
//   warpgroup  role      registers   does
//   0          producer  24 to 40    one thread asks TMA for the k-blocks of all the tiles, in order; for the first
//                                    ones before it parts from the consumers
//   1, (2, 3)  consumer  160 to 240  cooperative: its share of the rows of every tile; ping-pong: every other tile
//
//   barrier       arrivals                        its phase ends when
//   full[stage]   1 + the bytes of a k-block      the k-block has landed
//   empty[stage]  4 warps x consuming warpgroups  the wgmma that read the stage are done, in each block that fills it
//                 x blocks that fill it
//   slice[i]      1 + the bytes of a slice x the  split k only: what the other blocks have of this one's i-th slice is
//                 other blocks                    here
//   named 1, 2    256, ping-pong only             consumer 0, 1 may start its main loop, the other's is issued. Without
//                                                 it one could run a round of the ring ahead of the other, and a
//                                                 parity would mean two phases
//   named 1       128 a consumer, split k only    the sums of all consumers are in shared memory
//   named 3 to 5  128, not deferred               all warps of consumer 0 to 2 have read the stage that they store from
//
// Storing a tile takes as long as the SM's store path makes it (about 32 bytes a clock). Ping-pong hides it behind the
// other warpgroup's main loop; of the cooperative forms one defers it into its own next main loop, and the others show
// it. Wide tiles go straight from registers; narrow ones, and those that cross the lines of C or are no multiple of 16
// bytes, through shared memory, since their code would be long: ping-pong has room for that, the others take what only
// their warpgroup has read of the last stage, and give it back afterwards.
//
// Blocks work together in two ways. Two or four, one below the other, share their tile of B, and four in a square those
// of A as well: where lines are no multiple of 128 bytes, L2 is what bounds the kernel. Up to 8 blocks share the k of
// one tile, where there are few tiles; then each adds up a slice of the columns, in the order of k. A cluster of 4 or 8
// can do both: what it shares then is for the blocks that have the same piece of k.
//
// Any product can be read the other way, C transposed as B^T A^T: then tiles are 256 x 128 and not 128 x 256, and an
// operand whose lines run along k takes the side where any width does.
//
// device/wgmma_forms.h has the forms, device/wgmma_plan.h the choice.
//
// Launching before the kernel before has ended, and L2 promotion, were measured and gained nothing (docs/log.md).
//
// Needs: compute capability 9.0 (code for sm_90a), and operands that TMA can address: 16-byte base and line stride.
// Next: operands that TMA cannot address.
#include "../device/launch.cuh"
#include "../device/wgmma_pipeline.cuh"
#include "../device/wgmma_plan.h"
#include "../device/wgmma_split.cuh"

namespace tcgemm {
namespace {

constexpr int kOrderBarrier = 1;  // and 2; barrier 0 is __syncthreads
constexpr int kStoreBarrier = 3;  // and 4, 5

template <class T, Lines A, Lines B, class R>
__device__ __forceinline__ void consume(const R& ring, const Schedule<R>& schedule, const WgmmaResult& c,
                                        int consumer) {
  const int row_in_tile = R::kPingPong ? 0 : consumer * R::kRows, warp = threadIdx.x % kGroupThreads / 32;
  RingCursor<R::kStages> at;
  if (R::kPingPong && consumer == 1) named_barrier_arrive(kOrderBarrier, 2 * kGroupThreads);
  for (int u = 0; schedule.has(u); ++u) {
    const int k_blocks = schedule.unit(u).k_blocks;
    if (R::kPingPong && u % 2 != consumer) {
      at.advance(k_blocks);
      continue;
    }
    float acc[R::kBlocksM][R::BN / 2];
    if (R::kPingPong) named_barrier_sync(kOrderBarrier + consumer, 2 * kGroupThreads);
    multiply_unit<0, T, A, B>(acc, ring, at, k_blocks, row_in_tile, [](int) {});
    // Behind the last unit nobody waits for a turn.
    if (R::kPingPong && schedule.has(u + 1)) named_barrier_arrive(kOrderBarrier + 1 - consumer, 2 * kGroupThreads);
    finish_unit<R>(acc);
    if (R::kPingPong && k_blocks == 0) continue;  // an odd last tile leaves the other warpgroup an empty turn
    const Unit unit = schedule.unit_anew(u);
    const int row0 = unit.row0 + row_in_tile + 16 * warp;
    if (!R::kStoresNarrow && stores_directly(c)) {
      ring.release(at.before());
      store_directly(c, acc, row0, unit.col0);
    } else if (R::kPingPong) {
      ring.release(at.before());
      StagedStore{c, ring.c(consumer * 4 + warp)}.store(acc, row0, unit.col0);
    } else {
      named_barrier_sync(kStoreBarrier + consumer, kGroupThreads);
      StagedStore{c, ring.of_warp(at.before(), row_in_tile)}.store(acc, row0, unit.col0);
      ring.release_used(at.before());
    }
  }
}

// The same where k is cut: in chains, one after the other, and in pieces, one in each block of the cluster. A cluster
// of more than one has one tile.
template <class T, Lines A, Lines B, class R>
__device__ __forceinline__ void consume_split(const R& ring, const Schedule<R>& schedule, const WgmmaResult& c,
                                              int consumer, int splits) {
  const int row_in_tile = consumer * R::kRows;
  const SplitSum<R> others = {ring, Schedule<R>::piece(), splits, schedule.tiling.by_splits};
  RingCursor<R::kStages> at;
  for (int u = 0; schedule.has(u); ++u) {
    float acc[1][R::BN / 2];
    multiply_in_chains<T, A, B>(acc, ring, at, schedule.unit(u).k_blocks, schedule.tiling.k_blocks_per_chain,
                                row_in_tile);
    const Unit unit = schedule.unit_anew(u);
    const int row0 = unit.row0 + row_in_tile + threadIdx.x % kGroupThreads / 32 * 16;
    if (splits > 1) {
      others.send(acc[0]);
      others.store(c, row0, unit.col0);
    } else {
      named_barrier_sync(kStoreBarrier + consumer, kGroupThreads);
      StagedStore{c, ring.of_warp(at.before(), row_in_tile)}.store(acc, row0, unit.col0);
      ring.release_used(at.before());
    }
  }
}

// The same with deferred stores. Each tile has at least kHeldFours k-blocks, in one chain.
template <class T, Lines A, Lines B, class R>
__device__ __forceinline__ void consume_deferred(const R& ring, const Schedule<R>& schedule, const WgmmaResult& c,
                                                 const CUtensorMap& map_c, int consumer) {
  constexpr int kHead = DeferredStore::kHeldFours;
  const int row_in_tile = consumer * R::kRows, warp = threadIdx.x % kGroupThreads / 32;
  const uint32_t shared = ring.c(consumer * 4 + warp);
  const int k_blocks = schedule.tiling.k_blocks;
  RingCursor<R::kStages> at;
  DeferredStore deferred;
  float acc[1][R::BN / 2];
  multiply_unit<0, T, A, B>(acc, ring, at, k_blocks, row_in_tile, [](int) {});
  finish_unit<R>(acc);
  ring.release(at.before());
  for (int u = 0;;) {
    const Unit unit = schedule.unit(u);
    deferred.take(c, map_c, shared, acc[0], unit.row0 + row_in_tile + warp * 16, unit.col0);
    if (!schedule.has(++u)) break;
    multiply_unit<kHead, T, A, B>(acc, ring, at, k_blocks, row_in_tile, [&](int kb) { deferred.store(c, kb); });
    // No wgmma is under way where the loop turns: ptxas would serialise them all (C7518).
    finish_unit<R>(acc);
    ring.release(at.before());
  }
#pragma unroll
  for (int h = 0; h < kHead; ++h) deferred.store(c, h);
}

template <class T, Lines A, Lines B, int FORM>
__global__ void __launch_bounds__(Ring<FORM>::kThreads, 1)
    wgmma_kernel(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
                 const __grid_constant__ CUtensorMap map_c, const WgmmaResult c, const Tiling tiling,
                 const int splits) {
  using R = Ring<FORM>;
  const SharedSpan<unsigned char> shared = dynamic_shared<unsigned char>(0, R::kSharedBytes);
  const R ring = {static_cast<uint32_t>(__cvta_generic_to_shared(shared.data))};
  if (ring.base % kSwizzleAtomBytes != 0) __trap();  // the swizzle works on address bits
  const Schedule<R> schedule = {tiling};
  const Asking<A, B, R> asking = {ring, map_a, map_b};
  int asked = 0;
  if (threadIdx.x == 0) {
#pragma unroll
    for (int stage = 0; stage < R::kStages; ++stage) {
      ring.full(stage).init(1);
      ring.empty(stage).init(4 * (R::kPingPong ? 1 : R::kConsumers) * R::kFillers);
    }
#pragma unroll
    for (int i = 0; i < R::kSliceBarriers; ++i) ring.slice(i).init(1);
    fence_mbarrier_init();
    // Here, and not in the producer's branch: the code behind a jump would have to come from memory first.
    asked = ask_first(asking, schedule);
  } else if (threadIdx.x == 32) {
    tma_prefetch_map(map_a);
    tma_prefetch_map(map_b);
    if constexpr (R::kDeferred) tma_prefetch_map(map_c);
  }
  if constexpr (R::kSharers > 1) {
    cluster_arrive_relaxed();  // the barriers have a fence of their own
    cluster_wait();
    if (threadIdx.x == 0) ask_first_for_shared(asking, schedule, asked);
  } else {
    __syncthreads();
  }
  const int warpgroup = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / kGroupThreads, 0);  // uniform, so ptxas knows
  if (warpgroup == 0) {
    release_registers<R::kForm.producer_registers>();
    if (threadIdx.x == 0) produce(asking, schedule, asked);
    if (R::kSplitK && splits > 1) cluster_sync();  // where the consumers meet, too
  } else {
    claim_registers<R::kForm.consumer_registers>();
    if constexpr (R::kSplitK) {
      consume_split<T, A, B>(ring, schedule, c, warpgroup - 1, splits);
    } else if constexpr (R::kDeferred) {
      consume_deferred<T, A, B>(ring, schedule, c, map_c, warpgroup - 1);
    } else {
      consume<T, A, B>(ring, schedule, c, warpgroup - 1);
    }
  }
  // Here, for all threads: in the consumers' branch it costs them registers.
  if constexpr (R::kDeferred) tma_store_wait_read();
  // What the other blocks still send here, arrivals or pieces, must find this block's shared memory.
  if (R::kSplitK && splits > 1) {
    cluster_arrive_relaxed();  // all that is sent has been waited for
    cluster_wait();
  } else if constexpr (R::kSharers > 1) {
    cluster_sync();
  }
}

template <class T, Lines A, Lines B, int FORM>
int launch_form(const GemmProblem& p, const DeviceInfo& device, const WgmmaPlan& plan, const TmaView& a,
                const TmaView& b) {
  using R = Ring<FORM>;
  CUtensorMap map_a = {}, map_b = {}, map_c = {};
  if (p.stream.footprint == nullptr) {
    const int error_a = tma_encode(&map_a, a, p.dtype, Loads<A, R::BM, R::kSharersA>::kLinesOfBox);
    if (error_a != cudaSuccess) return error_a;
    const int error_b = tma_encode(&map_b, b, p.dtype, Loads<B, R::BN, R::kSharersB>::kLinesOfBox);
    if (error_b != cudaSuccess) return error_b;
    const TmaView c = {p.c.data, p.n, p.m, p.m == 1 ? (p.n + 3) / 4 * 4 : p.c.row_stride};
    const int error_c = R::kDeferred ? tma_encode(&map_c, c, DType::kFloat32, 16) : cudaSuccess;
    if (error_c != cudaSuccess) return error_c;
  }
  const Tiling tiling =
      make_tiling(plan.tiles_m, plan.tiles_n, plan.group, ceil_div(p.k, BK), plan.splits, plan.chains);
  const int cluster = R::kForm.blocks_per_cluster(plan.splits);
  const int64_t tiles = plan.tiles_m * plan.tiles_n;
  // A block stays for all its tiles, but one that splits k with others has a single one.
  const int64_t clusters = plan.splits > 1 ? tiles : std::min(wgmma_clusters(cluster, device.sm_count), tiles);
  return launch(
      wgmma_kernel<T, A, B, FORM>,
      {.blocks = clusters * cluster, .threads = R::kThreads, .shared_bytes = R::kSharedBytes, .cluster = cluster},
      p.stream, map_a, map_b, map_c, wgmma_result(p), tiling, plan.splits);
}

template <class T, Lines A, Lines B, int FORM = 0>
int launch_row(const GemmProblem& p, const DeviceInfo& device, const WgmmaPlan& plan, const TmaView& a,
               const TmaView& b) {
  if (plan.form == FORM) return launch_form<T, A, B, FORM>(p, device, plan, a, b);
  if constexpr (FORM + 1 < kWgmmaFormCount) return launch_row<T, A, B, FORM + 1>(p, device, plan, a, b);
  return cudaErrorInvalidValue;
}

std::string refuses_wgmma(const GemmProblem& p, const DeviceInfo&) {
  if (p.m == 0 || p.n == 0 || p.k == 0) return "";
  const std::string a = tma_view(p.a, p.m, p.k, "a").refusal, b = tma_view(p.b, p.k, p.n, "b").refusal;
  if (!a.empty() || !b.empty()) return a.empty() ? b : a;
  const int64_t tiles = ceil_div(p.m, 32) * ceil_div(p.n, 32);  // the smallest is 64x32, or 32x64 of c
  if (tiles > INT32_MAX) return "c has " + std::to_string(tiles) + " tiles of 32x32, they are counted in 31 bits";
  return "";
}

// Copies that the producer asks for, for one tile: a box is at most 64 x 256.
int64_t reads_wgmma(const GemmProblem& p) {
  const int64_t boxes_a = tma_view(p.a, p.m, p.k, "a").along_cols ? 1 : 2;
  const int64_t boxes_b = tma_view(p.b, p.k, p.n, "b").along_cols ? 4 : 1;
  return ceil_div(p.k, BK) * (boxes_a + boxes_b);
}

int launch_plan(const GemmProblem& p, const DeviceInfo& device, const WgmmaPlan& plan) {
  if (p.m == 0 || p.n == 0 || p.k == 0) return cudaErrorInvalidValue;  // nothing to multiply, and no tiles
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

int launch_wgmma(const GemmProblem& p, const DeviceInfo& device) {
  const WgmmaPlan plan = wgmma_plan(wgmma_task(p, device.sm_count));
  return launch_plan(plan.transposed ? transposed(p) : p, device, plan);
}

}  // namespace

int launch_wgmma_form(const GemmProblem& p, const DeviceInfo& device, int form, int splits) {
  const WgmmaTask task = wgmma_task(p, device.sm_count);
  if (!wgmma_form_can(kWgmmaForms[form], task) || !kWgmmaForms[form].splits_into(splits)) return cudaErrorInvalidValue;
  return launch_plan(p, device, wgmma_plan_form(form, task, splits));
}

extern const KernelEntry wgmma_entry = {
    .features = kAccumulateFeature, .refuses = refuses_wgmma, .global_reads = reads_wgmma, .launch = launch_wgmma};

}  // namespace tcgemm
