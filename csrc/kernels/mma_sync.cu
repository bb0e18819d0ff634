// mma.sync fed by ldmatrix: the instructions that WMMA hides (the seed's stretch path).
//
// Changed: tiles are swizzled instead of padded, so that cp.async fills and ldmatrix reads them without conflicts;
//          `kStages` tiles are under way; a warp loads its next fragments while it multiplies; blocks that run at the
//          same time share rows of A and columns of B in L2. One barrier a K step.
// Costs:   (BM + BN) * BK * 2 bytes of shared memory a stage, 48 KB of it, and every register: accumulators take half.
// Needs:   nothing. Operands that cp.async cannot read by 16 bytes, and devices without it (sm_75), go through
//          registers instead: the next tiles' loads are under way while the warps multiply (mma_staged_kernel).
// Next:    wgmma reads operands from shared memory by itself, and twice as fast.
//
// An m16n8k16 adds 16 products to an accumulator in an order of the hardware's. Every form below feeds it the same
// k in the same order, so a result's bits depend neither on the form, nor on m, n or the place in C, nor on layout
// and alignment.
#include "../device/launch.cuh"
#include "../device/mma_store.cuh"
#include "../device/mma_warp.cuh"
#include "../device/select.cuh"

namespace tcgemm {
namespace {

template <int BLOCK_M, int BLOCK_N, int BLOCK_K, int WARP_M, int WARP_N, int STAGES, int MMA_K = 16>
struct MmaForm {
  static constexpr int BM = BLOCK_M, BN = BLOCK_N, BK = BLOCK_K, WM = WARP_M, WN = WARP_N;
  static constexpr int kStages = STAGES, kMmaK = MMA_K;
  static constexpr int kWarpsN = BN / WN, kWarps = BM / WM * kWarpsN, kThreads = 32 * kWarps;
  static constexpr int kBlocksM = WM / 16, kBlocksN = WN / 16;  // 16x16 blocks of a warp tile
  static constexpr int kSteps = BK / 16;
  static constexpr int kGroup = 2048 / BM;  // rows of tiles that are walked together
  static constexpr int kStageElements = (BM + BN) * BK;
  static constexpr int kSharedBytes = kStages * kStageElements * 2;
  static constexpr int kAccumulators = WM * WN / 32, kRegisters = kAccumulators <= 64 ? 128 : 256;
  static constexpr int kBlocksPerSm = 65536 / (kThreads * kRegisters);
  // Sets of B's fragments. With four warps for each scheduler the others multiply while one waits for its B.
  static constexpr int kSetsB = kThreads * kBlocksPerSm >= 512 ? 1 : 2;
  template <int N>
  using WithStages = MmaForm<BM, BN, BK, WM, WN, N, kMmaK>;
  template <Major MAJOR>
  using TileA = SwizzledTile<BM, BK, MAJOR == Major::kRow>;
  template <Major MAJOR>
  using TileB = SwizzledTile<BN, BK, MAJOR == Major::kCol>;
  static_assert(BM % WM == 0 && BN % WN == 0, "warp tiles must cover the block tile");
  static_assert((WM & (WM - 1)) == 0 && (WN & (WN - 1)) == 0, "BlockReader reaches a block by XOR");
  static_assert(reads_without_conflicts<TileA<Major::kRow>>() && reads_without_conflicts<TileA<Major::kCol>>() &&
                    reads_without_conflicts<TileB<Major::kRow>>() && reads_without_conflicts<TileB<Major::kCol>>(),
                "ldmatrix would serve rows one after another");
  static_assert(kSteps % kSetsB == 0, "a tile's steps take turns with the sets of B's fragments");
};

// Where a block and its warps work.
template <class Form>
struct Place {
  int64_t m0, n0;
  int warp_m, warp_n, lane;

  __device__ __forceinline__ Place(int64_t m, int64_t n, int thread) {
    const TilePlace tile = place_block<Form::kGroup>(blockIdx.x, ceil_div(m, Form::BM), ceil_div(n, Form::BN));
    m0 = int64_t{tile.m} * Form::BM;
    n0 = int64_t{tile.n} * Form::BN;
    const int warp = thread / 32;
    warp_m = warp / Form::kWarpsN * Form::WM;
    warp_n = warp % Form::kWarpsN * Form::WN;
    lane = thread % 32;
  }
};

template <class T, Major MAJOR_A, Major MAJOR_B, class Form>
__global__ void __launch_bounds__(Form::kThreads, Form::kBlocksPerSm)
    mma_async_kernel(const Panel<T> a, const Panel<T> b, const MmaOutput c) {
  if constexpr (!kHasCpAsync || !MmaExists<T, Form::kMmaK>::value) {
    mma_unavailable();
  } else {
    using TileA = typename Form::template TileA<MAJOR_A>;
    using TileB = typename Form::template TileB<MAJOR_B>;
    using FillA = TileFiller<TileA, Form::kThreads, kVecLength<T>, T>;
    using FillB = TileFiller<TileB, Form::kThreads, kVecLength<T>, T>;
    constexpr int kStage = Form::kStageElements, kRing = Form::kStages * kStage;
    const SharedSpan<T> ring = dynamic_shared<T>(0, kRing);
    const Place<Form> place(c.rows, c.cols, threadIdx.x);
    // One group of copies for each k tile, past the end of k as well (zeros): so "the next tile has landed" is always
    // a wait for all but the newest kStages - 2 groups.
    const auto fill = [&]<bool INSIDE>(FillA& fill_a, FillB& fill_b, int stage, int tile) {
      const int k_left = INSIDE ? Form::BK : k_left_at<Form>(a.k, int64_t{tile} * Form::BK);
      fill_a.template fill_async<INSIDE>(ring.from(stage), k_left);
      fill_b.template fill_async<INSIDE>(ring.from(stage + TileA::kElements), k_left);
      cp_async_commit();
    };
    WarpProduct<T, Form, TileA, TileB> product(place.warp_m, place.warp_n, place.lane);
    FillA fill_a(a, place.m0, threadIdx.x);
    FillB fill_b(b, place.n0, threadIdx.x);
#pragma unroll
    for (int i = 0; i < Form::kStages - 1; ++i) fill.template operator()<false>(fill_a, fill_b, i * kStage, i);
    cp_async_wait<Form::kStages - 2>();
    __syncthreads();  // the first tiles are full
    product.load(ring, 0, 0);

    int tile = 0, reading = 0, filling = kRing - kStage;  // stages, by where they begin in the ring
    const auto multiply_tile = [&]<bool INSIDE>(FillA& fill_a, FillB& fill_b) {
#pragma unroll
      for (int step = 0; step < Form::kSteps; ++step) {
        if (step == Form::kSteps - 1) {
          reading = reading + kStage == kRing ? 0 : reading + kStage;
          cp_async_wait<Form::kStages - 2>();
          __syncthreads();  // the next tiles are full, and all reads of the current ones are done
        }
        // Behind the first products, so that they do not wait until the copies have been issued; but at an edge before
        // them, since there are no registers for an edge's bounds and the next step's fragments.
        const auto fill_next = [&] {
          fill.template operator()<INSIDE>(fill_a, fill_b, filling, tile + Form::kStages - 1);
        };
        if (step == 0 && !INSIDE) fill_next();
        product.multiply_and_load(step % Form::kSetsB, ring, reading, (step + 1) % Form::kSteps * 16);
        if (step == 0 && INSIDE) fill_next();
      }
      filling = filling + kStage == kRing ? 0 : filling + kStage;
    };
    // Most tiles need no look at the edges, which costs more than a copy does.
    const bool inside = place.m0 + Form::BM <= c.rows && place.n0 + Form::BN <= c.cols;
    const int tiles = static_cast<int>(ceil_div(a.k, Form::BK));
    const int tiles_inside = inside ? static_cast<int>(a.k / Form::BK) - (Form::kStages - 1) : 0;
    for (; tile < tiles_inside; ++tile) multiply_tile.template operator()<true>(fill_a, fill_b);

    const int thread = after(tile, threadIdx.x);
    const Place<Form> rest(c.rows, c.cols, thread);
    FillA fill_rest_a(a, rest.m0, thread);
    FillB fill_rest_b(b, rest.n0, thread);
    fill_rest_a.skip(tile + Form::kStages - 1);
    fill_rest_b.skip(tile + Form::kStages - 1);
    for (; tile < tiles; ++tile) multiply_tile.template operator()<false>(fill_rest_a, fill_rest_b);
    cp_async_wait<0>();  // no copy outlives its block
    const Place<Form> end(c.rows, c.cols, after(tile, threadIdx.x));
    store_accumulators(c, end.m0 + end.warp_m, end.n0 + end.warp_n, product.acc, end.lane);
  }
}

// Two stages, filled through registers V elements at a time.
template <class T, Major MAJOR_A, Major MAJOR_B, class Form, int V>
__global__ void __launch_bounds__(Form::kThreads, 1)
    mma_staged_kernel(const Panel<T> a, const Panel<T> b, const MmaOutput c) {
  if constexpr (!MmaExists<T, Form::kMmaK>::value) {
    mma_unavailable();
  } else {
    using TileA = typename Form::template TileA<MAJOR_A>;
    using TileB = typename Form::template TileB<MAJOR_B>;
    using FillA = TileFiller<TileA, Form::kThreads, V, T>;
    using FillB = TileFiller<TileB, Form::kThreads, V, T>;
    const SharedSpan<T> ring = dynamic_shared<T>(0, 2 * Form::kStageElements);
    const Place<Form> place(c.rows, c.cols, threadIdx.x);
    FillA fill_a(a, place.m0, threadIdx.x);
    FillB fill_b(b, place.n0, threadIdx.x);
    Vec<T, V> pieces_a[FillA::kPieces], pieces_b[FillB::kPieces];
    WarpProduct<T, Form, TileA, TileB> product(place.warp_m, place.warp_n, place.lane);

    fill_a.load(pieces_a, k_left_at<Form>(a.k, 0));
    fill_b.load(pieces_b, k_left_at<Form>(a.k, 0));
    fill_a.store(ring, pieces_a);
    fill_b.store(ring.from(TileA::kElements), pieces_b);
    __syncthreads();  // the first tiles are full

    int reading = 0, filling = Form::kStageElements;  // stages, by where they begin in the ring
    for (int64_t k0 = 0; k0 < a.k; k0 += Form::BK) {
      const int k_left = k_left_at<Form>(a.k, k0 + Form::BK);  // none: zeros, and nothing is read
      fill_a.load(pieces_a, k_left);
      fill_b.load(pieces_b, k_left);
#pragma unroll
      for (int step = 0; step < Form::kSteps; ++step) {
        product.load(ring, reading, step * 16);
        product.multiply();
      }
      fill_a.store(ring.from(filling), pieces_a);
      fill_b.store(ring.from(filling + TileA::kElements), pieces_b);
      __syncthreads();  // the next tiles are full, and all reads of the current ones are done
      filling = reading;
      reading = Form::kStageElements - reading;
    }
    store_accumulators(c, place.m0 + place.warp_m, place.n0 + place.warp_n, product.acc, place.lane);
  }
}

// The forms, by row of kernels.def.      BM   BN  BK  WM  WN  stages
using Default = /* mma_sync          */ MmaForm<256, 128, 64, 64, 32, 3>;
using Wide = /*    mma_sync_64x64    */ MmaForm<256, 128, 64, 64, 64, 3>;
using Small = /*   mma_sync_small    */ MmaForm<64, 64, 64, 32, 32, 4>;
// Through registers: before sm_80 with m16n8k8, later for operands that are not aligned to 16 bytes.
using Turing = MmaForm<128, 128, 32, 64, 32, 2, 8>;
using Unaligned = MmaForm<128, 128, 32, 64, 32, 2>;

bool by_16_bytes(const GemmProblem& p) {
  return reads_by_16_bytes(p.a, p.dtype, p.m, p.k) && reads_by_16_bytes(p.b, p.dtype, p.k, p.n);
}

template <class Form>
LaunchShape launch_shape(const GemmProblem& p, int shared_bytes) {
  return {.blocks = ceil_div(p.m, Form::BM) * ceil_div(p.n, Form::BN),
          .threads = Form::kThreads,
          .shared_bytes = shared_bytes};
}

template <class Form, int V>
int launch_staged(const GemmProblem& p) {
  return for_type_and_layout(p, [&]<class T, Major MAJOR_A, Major MAJOR_B>() {
    return launch(mma_staged_kernel<T, MAJOR_A, MAJOR_B, Form, V>, launch_shape<Form>(p, 2 * Form::kStageElements * 2),
                  p.stream, panel_a<T, MAJOR_A>(p), panel_b<T, MAJOR_B>(p), mma_output(p));
  });
}

int launch_mma_sync_k8(const GemmProblem& p, const DeviceInfo&) {
  return by_16_bytes(p) ? launch_staged<Turing, 8>(p) : launch_staged<Turing, 2>(p);
}

template <class Form>
int launch_async(const GemmProblem& p) {
  return for_type_and_layout(p, [&]<class T, Major MAJOR_A, Major MAJOR_B>() {
    return launch(mma_async_kernel<T, MAJOR_A, MAJOR_B, Form>, launch_shape<Form>(p, Form::kSharedBytes), p.stream,
                  panel_a<T, MAJOR_A>(p), panel_b<T, MAJOR_B>(p), mma_output(p));
  });
}

template <class Form>
int launch_mma_sync(const GemmProblem& p, const DeviceInfo& device) {
  if (device.code_arch < 80) return launch_mma_sync_k8(p, device);
  if (!by_16_bytes(p)) return launch_staged<Unaligned, 2>(p);
  // Two stages of 48 KB where three do not fit. These devices multiply more slowly, too: a tile takes them longer than
  // a load takes.
  if constexpr (Form::kSharedBytes > 99 * 1024) {
    if (shared_bytes_a_block(device.capability) < Form::kSharedBytes) {
      return launch_async<typename Form::template WithStages<2>>(p);
    }
  }
  return launch_async<Form>(p);
}

// Pieces of a thread, of 8 elements by one load each, or of 2 by one or two.
template <class Form>
int64_t reads_mma_sync(const GemmProblem& p) {
  if (by_16_bytes(p)) return ceil_div(p.k, Form::BK) * Form::kStageElements / (8 * Form::kThreads);
  const bool a_by_row = major_of(p.a, p.m, p.k) == Major::kRow, b_by_row = major_of(p.b, p.k, p.n) == Major::kRow;
  const auto reads = [&](bool by_pairs, int outer) {
    return ceil_div(p.k, Unaligned::BK) * outer * Unaligned::BK / (Unaligned::kThreads * (by_pairs ? 2 : 1));
  };
  return reads(reads_by_pairs(p.a, a_by_row, p.a.row_stride, p.a.col_stride), Unaligned::BM) +
         reads(reads_by_pairs(p.b, !b_by_row, p.b.col_stride, p.b.row_stride), Unaligned::BN);
}

}  // namespace

extern const KernelEntry mma_sync_entry = {.global_reads = reads_mma_sync<Default>, .launch = launch_mma_sync<Default>};
extern const KernelEntry mma_sync_64x64_entry = {.global_reads = reads_mma_sync<Wide>, .launch = launch_mma_sync<Wide>};
extern const KernelEntry mma_sync_small_entry = {.global_reads = reads_mma_sync<Small>,
                                                 .launch = launch_mma_sync<Small>};
extern const KernelEntry mma_sync_k8_entry = {.global_reads = reads_mma_sync<Turing>, .launch = launch_mma_sync_k8};

}  // namespace tcgemm
