// mma.sync fed by ldmatrix: the instructions that WMMA hides (the seed's stretch path).
//
// Changed: tiles are swizzled instead of padded, so that cp.async fills and ldmatrix reads them without conflicts;
//          `kStages` tiles are under way; a warp loads its next fragments while it multiplies; blocks that run at the
//          same time share rows of A and columns of B in L2. One barrier a K step.
// Costs:   (BM + BN) * BK * 2 bytes of shared memory a stage, and registers for two sets of fragments.
// Needs:   nothing. Operands that cp.async cannot read by 16 bytes, and devices without it (sm_75), go through
//          registers instead: the next tiles' loads are under way while the warps multiply (mma_staged_kernel).
// Next:    wgmma reads operands from shared memory by itself, and twice as fast.
//
// An m16n8k16 adds 16 products to an accumulator in an order of the hardware's. Every form below feeds it the same
// k in the same order, so a result's bits depend neither on the form, nor on m, n or the place in C, nor on layout
// and alignment.
#include "../device/launch.cuh"
#include "../device/mma_store.cuh"
#include "../device/select.cuh"
#include "../device/swizzle.cuh"

namespace tcgemm {
namespace {

template <int BLOCK_M, int BLOCK_N, int BLOCK_K, int WARP_M, int WARP_N, int STAGES, int MMA_K = 16>
struct MmaForm {
  static constexpr int BM = BLOCK_M, BN = BLOCK_N, BK = BLOCK_K, WM = WARP_M, WN = WARP_N;
  static constexpr int kStages = STAGES, kMmaK = MMA_K;
  static constexpr int kWarpsN = BN / WN, kWarps = BM / WM * kWarpsN, kThreads = 32 * kWarps;
  static constexpr int kBlocksM = WM / 16, kBlocksN = WN / 16;  // 16x16 blocks of a warp tile
  static constexpr int kSteps = BK / 16;
  static constexpr int kStageElements = (BM + BN) * BK;
  static constexpr int kSharedBytes = kStages * kStageElements * 2;
  // Registers: the accumulators, one or two sets of fragments, and about 40 for addresses.
  static constexpr int kAccumulators = WM * WN / 32, kFragmentRegisters = (WM + WN) / 4;
  static constexpr int kRegisters = kAccumulators <= 64 ? 128 : kAccumulators <= 96 ? 168 : 256;
  static constexpr int kFragmentSets = kAccumulators + 2 * kFragmentRegisters + 40 <= kRegisters ? 2 : 1;
  static constexpr int kBlocksPerSm = 65536 / (kThreads * kRegisters);
  template <Major MAJOR>
  using TileA = SwizzledTile<BM, BK, MAJOR == Major::kRow>;
  template <Major MAJOR>
  using TileB = SwizzledTile<BN, BK, MAJOR == Major::kCol>;
  static_assert(BM % WM == 0 && BN % WN == 0, "warp tiles must cover the block tile");
  static_assert(reads_without_conflicts<TileA<Major::kRow>>() && reads_without_conflicts<TileA<Major::kCol>>() &&
                    reads_without_conflicts<TileB<Major::kRow>>() && reads_without_conflicts<TileB<Major::kCol>>(),
                "ldmatrix would serve rows one after another");
  static_assert(kSteps >= 2, "the last step of a tile loads the next tile's first fragments");
};

constexpr int kGroup = 8;  // rows of tiles that are walked together

// One warp's part of C, in registers.
template <class T, class Form, class TileA, class TileB>
struct WarpProduct {
  Reg<float, 4> acc[Form::kBlocksM][Form::kBlocksN * 2];
  BlockReader<TileA> read_a;
  BlockReader<TileB> read_b;

  struct Fragments {
    Reg<unsigned, 4> a[Form::kBlocksM], b[Form::kBlocksN];
  };

  __device__ __forceinline__ WarpProduct(int warp_m, int warp_n, int lane)
      : read_a(warp_m, lane), read_b(warp_n, lane) {
#pragma unroll
    for (int i = 0; i < Form::kBlocksM; ++i) {
#pragma unroll
      for (int j = 0; j < Form::kBlocksN * 2; ++j) {
#pragma unroll
        for (int e = 0; e < 4; ++e) acc[i][j][e] = 0.0f;
      }
    }
  }

  // The warp's fragments at k of a stage's tiles.
  __device__ __forceinline__ void load(Fragments& frag, SharedSpan<T> stage, int k) const {
#pragma unroll
    for (int i = 0; i < Form::kBlocksM; ++i) read_a.load(frag.a[i], stage, i * 16, k);
#pragma unroll
    for (int j = 0; j < Form::kBlocksN; ++j) read_b.load(frag.b[j], stage.from(TileA::kElements), j * 16, k);
  }

  __device__ __forceinline__ void multiply(const Fragments& frag) {
#pragma unroll
    for (int i = 0; i < Form::kBlocksM; ++i) {
#pragma unroll
      for (int j = 0; j < Form::kBlocksN * 2; ++j) {
        const Reg<unsigned, 4>&a = frag.a[i], &b = frag.b[j / 2];
        if constexpr (Form::kMmaK == 16) {
          mma_m16n8k16<T>(acc[i][j], a, b[j % 2], b[j % 2 + 2]);
        } else {
          mma_m16n8k8<T>(acc[i][j], a[0], a[1], b[j % 2]);
          mma_m16n8k8<T>(acc[i][j], a[2], a[3], b[j % 2 + 2]);
        }
      }
    }
  }
};

// Where a block and its warps work.
template <class Form>
struct Place {
  int64_t m0, n0;
  int warp_m, warp_n, lane;

  __device__ __forceinline__ Place(int64_t m, int64_t n) {
    const TilePlace tile = place_block<kGroup>(blockIdx.x, ceil_div(m, Form::BM), ceil_div(n, Form::BN));
    m0 = int64_t{tile.m} * Form::BM;
    n0 = int64_t{tile.n} * Form::BN;
    const int warp = threadIdx.x / 32;
    warp_m = warp / Form::kWarpsN * Form::WM;
    warp_n = warp % Form::kWarpsN * Form::WN;
    lane = threadIdx.x % 32;
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
    const SharedSpan<T> stages = dynamic_shared<T>(0, Form::kStages * Form::kStageElements);
    const Place<Form> place(c.rows, c.cols);
    TileFiller<TileA, Form::kThreads, kVecLength<T>, T> fill_a(a, place.m0, threadIdx.x);
    TileFiller<TileB, Form::kThreads, kVecLength<T>, T> fill_b(b, place.n0, threadIdx.x);
    const auto fill_stage = [&](int stage, int64_t k0) {
      const int k_left = k_left_at<Form>(a.k, k0);
      fill_a.fill_async(stages.from(stage * Form::kStageElements), k_left);
      fill_b.fill_async(stages.from(stage * Form::kStageElements + TileA::kElements), k_left);
      cp_async_commit();
    };
    WarpProduct<T, Form, TileA, TileB> product(place.warp_m, place.warp_n, place.lane);
    typename WarpProduct<T, Form, TileA, TileB>::Fragments frag[Form::kFragmentSets];

    // One group of copies a tile, past the end of k as well (zeros): so there are always kStages - 1 groups after the
    // one that is being multiplied, and "the next tile has landed" is always a wait for all but kStages - 2.
#pragma unroll
    for (int stage = 0; stage < Form::kStages - 1; ++stage) fill_stage(stage, stage * Form::BK);
    cp_async_wait<Form::kStages - 2>();
    __syncthreads();  // the first tiles are full
    product.load(frag[0], stages, 0);

    int reading = 0, filling = Form::kStages - 1;
    for (int64_t k0 = 0; k0 < a.k; k0 += Form::BK) {
#pragma unroll
      for (int step = 0; step < Form::kSteps; ++step) {
        if (step == Form::kSteps - 1) {
          reading = reading + 1 == Form::kStages ? 0 : reading + 1;
          cp_async_wait<Form::kStages - 2>();
          __syncthreads();  // the next tiles are full, and all reads of the current ones are done
        }
        const auto load_next = [&] {
          product.load(frag[(step + 1) % Form::kFragmentSets], stages.from(reading * Form::kStageElements),
                       (step + 1) % Form::kSteps * 16);
        };
        if constexpr (Form::kFragmentSets == 2) load_next();
        if (step == 0) {
          fill_stage(filling, k0 + (Form::kStages - 1) * Form::BK);
          filling = filling + 1 == Form::kStages ? 0 : filling + 1;
        }
        product.multiply(frag[step % Form::kFragmentSets]);
        if constexpr (Form::kFragmentSets == 1) load_next();
      }
    }
    cp_async_wait<0>();  // no copy outlives its block
    store_accumulators(c, place.m0 + place.warp_m, place.n0 + place.warp_n, product.acc, place.lane);
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
    const SharedSpan<T> stages = dynamic_shared<T>(0, 2 * Form::kStageElements);
    const Place<Form> place(c.rows, c.cols);
    FillA fill_a(a, place.m0, threadIdx.x);
    FillB fill_b(b, place.n0, threadIdx.x);
    Vec<T, V> pieces_a[FillA::kPieces], pieces_b[FillB::kPieces];
    WarpProduct<T, Form, TileA, TileB> product(place.warp_m, place.warp_n, place.lane);
    typename WarpProduct<T, Form, TileA, TileB>::Fragments frag;

    fill_a.load(pieces_a, k_left_at<Form>(a.k, 0));
    fill_b.load(pieces_b, k_left_at<Form>(a.k, 0));
    SharedSpan<T> reading = stages, filling = stages.from(Form::kStageElements);
    fill_a.store(reading, pieces_a);
    fill_b.store(reading.from(TileA::kElements), pieces_b);
    __syncthreads();  // the first tiles are full

    for (int64_t k0 = 0; k0 < a.k; k0 += Form::BK) {
      const int k_left = k_left_at<Form>(a.k, k0 + Form::BK);  // none: zeros, and nothing is read
      fill_a.load(pieces_a, k_left);
      fill_b.load(pieces_b, k_left);
#pragma unroll
      for (int step = 0; step < Form::kSteps; ++step) {
        product.load(frag, reading, step * 16);
        product.multiply(frag);
      }
      fill_a.store(filling, pieces_a);
      fill_b.store(filling.from(TileA::kElements), pieces_b);
      __syncthreads();  // the next tiles are full, and all reads of the current ones are done
      const SharedSpan<T> read = reading;
      reading = filling;
      filling = read;
    }
    store_accumulators(c, place.m0 + place.warp_m, place.n0 + place.warp_n, product.acc, place.lane);
  }
}

// The forms, by row of kernels.def.      BM   BN  BK  WM  WN  stages
using Default = /* mma_sync          */ MmaForm<256, 128, 32, 64, 32, 4>;
using Wide = /*    mma_sync_64x64    */ MmaForm<128, 256, 32, 64, 64, 4>;
using Small = /*   mma_sync_small    */ MmaForm<64, 64, 64, 32, 32, 4>;
// Through registers: before sm_80 with m16n8k8, later for operands that are not aligned to 16 bytes.
using Turing = MmaForm<128, 128, 32, 64, 32, 2, 8>;
using Unaligned = MmaForm<128, 128, 32, 64, 32, 2>;

bool by_16_bytes(const GemmProblem& p) {
  return reads_by_16_bytes(p.a, p.dtype, p.m, p.k) && reads_by_16_bytes(p.b, p.dtype, p.k, p.n);
}

template <class Form>
LaunchShape launch_shape(const GemmProblem& p, int shared_bytes) {
  return {.blocks = ceil_div(p.m, Form::BM) * ceil_div(p.n, Form::BN), .threads = Form::kThreads,
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
int launch_mma_sync(const GemmProblem& p, const DeviceInfo& device) {
  if (device.code_arch < 80) return launch_mma_sync_k8(p, device);
  if (!by_16_bytes(p)) return launch_staged<Unaligned, 2>(p);
  return for_type_and_layout(p, [&]<class T, Major MAJOR_A, Major MAJOR_B>() {
    return launch(mma_async_kernel<T, MAJOR_A, MAJOR_B, Form>, launch_shape<Form>(p, Form::kSharedBytes), p.stream,
                  panel_a<T, MAJOR_A>(p), panel_b<T, MAJOR_B>(p), mma_output(p));
  });
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

extern const KernelEntry mma_sync_entry = {.global_reads = reads_mma_sync<Default>,
                                           .launch = launch_mma_sync<Default>};
extern const KernelEntry mma_sync_64x64_entry = {.global_reads = reads_mma_sync<Wide>,
                                                 .launch = launch_mma_sync<Wide>};
extern const KernelEntry mma_sync_small_entry = {.global_reads = reads_mma_sync<Small>,
                                                 .launch = launch_mma_sync<Small>};
extern const KernelEntry mma_sync_k8_entry = {.global_reads = reads_mma_sync<Turing>,
                                              .launch = launch_mma_sync_k8};

}  // namespace tcgemm
