// WMMA fed by a pipeline: the next tiles load while this one multiplies.
//
// Changed: the K step is 64, and from sm_80 on cp.async fills a ring of stages, so that kStages - 1 steps are under way
//          while one is multiplied: one barrier a step. Older code, which has no cp.async, holds the next step's chunks
//          in registers while it multiplies (two stages). Blocks run in groups that share operands in the L2 cache.
// Costs:   108 KB of shared memory. Where a block may not have that much (7.5, 8.6, 8.9, 12.x) the K step is 32: 60 KB,
//          40 before sm_80. The same 6 fragment loads for 8 products as wmma_staged.
// Needs:   nothing: edges are zero-filled. An operand that cannot be read by 16 bytes is read by element, without
//          cp.async, into the same ring.
// Next:    mma_sync names the fragments' lanes itself, which lets it swizzle in place of padding.
#include "../device/launch.cuh"
#include "../device/select.cuh"
#include "../device/tile.cuh"
#include "../device/wmma_store.cuh"

namespace tcgemm {
namespace {

constexpr int BM = 128, BN = 128, WM = 32, WN = 64;
constexpr int kPad = 8;  // halves: lines of 40, 72 and 136 are odd multiples of 16 bytes, so rows share no banks
constexpr int kWarpsN = BN / WN, kWarps = BM / WM * kWarpsN, kThreads = 32 * kWarps;
constexpr int kFragsM = WM / kWmmaDim, kFragsN = WN / kWmmaDim;
constexpr int kGroup = 8;  // rows of tiles in a group of blocks
__host__ __device__ constexpr int stages(bool has_cp_async) { return has_cp_async ? 3 : 2; }

template <class T, Major MAJOR_A, Major MAJOR_B, int BK>
struct Stage {
  using TileA = TileShape<BM, BK, MAJOR_A, kPad>;
  using TileB = TileShape<BK, BN, MAJOR_B, kPad>;
  static_assert(TileA::kLd / 8 % 2 == 1 && TileB::kLd / 8 % 2 == 1, "even 16-byte stride: rows would share banks");
  static constexpr int kElements = TileA::kElements + TileB::kElements;
  static constexpr int kBytes = kElements * static_cast<int>(sizeof(T));
  static_assert(kBytes % 32 == 0, "WMMA wants 32-byte aligned tiles");

  SharedSpan<T> tile_a, tile_b;
  __device__ __forceinline__ explicit Stage(int index)
      : tile_a(dynamic_shared<T>(index * kBytes, TileA::kElements)),
        tile_b(dynamic_shared<T>(index * kBytes + TileA::kElements * static_cast<int>(sizeof(T)), TileB::kElements)) {}
};

// acc += tile_a * tile_b for the warp's 32x64 part.
template <class T, Major MAJOR_A, Major MAJOR_B, int BK>
__device__ __forceinline__ void multiply_stage(FragmentC (&acc)[kFragsM][kFragsN],
                                               const Stage<T, MAJOR_A, MAJOR_B, BK>& stage, int warp_m, int warp_n) {
  using TileA = typename Stage<T, MAJOR_A, MAJOR_B, BK>::TileA;
  using TileB = typename Stage<T, MAJOR_A, MAJOR_B, BK>::TileB;
#pragma unroll 1  // unrolled, the fragments of two steps would spill
  for (int kk = 0; kk < BK; kk += kWmmaDim) {
    FragmentA<T, MAJOR_A> frag_a[kFragsM];
    FragmentB<T, MAJOR_B> frag_b[kFragsN];
#pragma unroll
    for (int i = 0; i < kFragsM; ++i) {
      load_fragment(frag_a[i], stage.tile_a, TileA::at(warp_m + i * kWmmaDim, kk), TileA::kLd);
    }
#pragma unroll
    for (int j = 0; j < kFragsN; ++j) {
      load_fragment(frag_b[j], stage.tile_b, TileB::at(kk, warp_n + j * kWmmaDim), TileB::kLd);
    }
#pragma unroll
    for (int i = 0; i < kFragsM; ++i) {
#pragma unroll
      for (int j = 0; j < kFragsN; ++j) multiply<T, MAJOR_A, MAJOR_B>(acc[i][j], frag_a[i], frag_b[j]);
    }
  }
}

// BY_16_BYTES: both operands can be read so, and the kernel holds no other loads.
template <class T, Major MAJOR_A, Major MAJOR_B, int BK, bool BY_16_BYTES>
__global__ void __launch_bounds__(kThreads, kHasCpAsync ? 2 : 1)
    wmma_pipelined_kernel(const Matrix<const T> a, const Matrix<const T> b, const OutputMatrix c) {
  using Ring = Stage<T, MAJOR_A, MAJOR_B, BK>;
  using TileA = typename Ring::TileA;
  using TileB = typename Ring::TileB;
  constexpr int kStages = stages(kHasCpAsync);

  // Place.
  const TilePlace place = place_block<kGroup>(blockIdx.x, ceil_div(c.rows, BM), ceil_div(c.cols, BN));
  const int64_t m0 = int64_t{place.m} * BM, n0 = int64_t{place.n} * BN;
  const int thread = threadIdx.x, warp = thread / 32;
  const int warp_m = warp / kWarpsN * WM, warp_n = warp % kWarpsN * WN;
  const int steps = static_cast<int>(ceil_div(a.cols, BK));

  FragmentC acc[kFragsM][kFragsN];
#pragma unroll
  for (int i = 0; i < kFragsM; ++i) {
#pragma unroll
    for (int j = 0; j < kFragsN; ++j) fill_fragment(acc[i][j], 0.0f);
  }

  TileLoader<TileA, Side::kA, kThreads, T> load_a(a, m0, thread);
  TileLoader<TileB, Side::kB, kThreads, T> load_b(b, n0, thread);
  const int last_k = static_cast<int>(a.cols - int64_t{steps - 1} * BK);
  const auto valid_k = [&](int step) { return step == steps - 1 ? last_k : BK; };
  const bool vec_a = BY_16_BYTES || a.by_16_bytes, vec_b = BY_16_BYTES || b.by_16_bytes;
  // The operands that cannot be read by 16 bytes, straight into their stage.
  const auto fill_others = [&](const Ring& stage, int step) {
    if (!vec_a) fill_by_element<TileA, kThreads>(stage.tile_a, a, m0, int64_t{step} * BK, thread);
    if (!vec_b) fill_by_element<TileB, kThreads>(stage.tile_b, b, int64_t{step} * BK, n0, thread);
  };

  if constexpr (kHasCpAsync) {
    // A group a step, also an empty one past the end, so that the wait below always covers the step it needs.
    const auto load_step = [&](int step, int index) {
      if (step < steps) {
        const Ring stage(index);
        if (vec_a) load_a.fill_async(stage.tile_a, valid_k(step));
        if (vec_b) load_b.fill_async(stage.tile_b, valid_k(step));
        fill_others(stage, step);
        load_a.advance();
        load_b.advance();
      }
      cp_async_commit();
    };
    for (int step = 0; step < kStages - 1; ++step) load_step(step, step);
    int index = 0, next = kStages - 1;  // the stages of `step` and of the one that is loaded meanwhile
    for (int step = 0; step < steps; ++step) {
      cp_async_wait<kStages - 2>();  // this thread's part of `step` has landed
      __syncthreads();               // so have the others', and all are done with the stage that is filled next
      multiply_stage(acc, Ring(index), warp_m, warp_n);
      load_step(step + kStages - 1, next);
      next = index;
      index = index == kStages - 1 ? 0 : index + 1;
    }
    cp_async_wait<0>();
  } else {
    typename decltype(load_a)::Cache next_a;
    typename decltype(load_b)::Cache next_b;
    const auto load_step = [&](int step) {
      if (vec_a) load_a.load(next_a, valid_k(step));
      if (vec_b) load_b.load(next_b, valid_k(step));
      load_a.advance();
      load_b.advance();
    };
    if (steps > 0) load_step(0);
    for (int step = 0; step < steps; ++step) {
      const Ring stage(step % kStages);
      if (vec_a) load_a.store(stage.tile_a, next_a);
      if (vec_b) load_b.store(stage.tile_b, next_b);
      fill_others(stage, step);
      __syncthreads();  // the stage is full, and all are done with the other one, which is filled next
      if (step + 1 < steps) load_step(step + 1);
      multiply_stage(acc, stage, warp_m, warp_n);
    }
  }

  // Store. The ring has been read to the end: its first bytes serve as scratch.
  __syncthreads();
  const SharedSpan<float> scratch = dynamic_shared<float>(0, kWarps * kFragmentElements);
  store_accumulators(c, m0 + warp_m, n0 + warp_n, acc, scratch.from(warp * kFragmentElements), thread % 32);
}

// The larger K step, where the device has the shared memory for it.
template <class T, Major MAJOR_A, Major MAJOR_B, int BK = 64>
int launch_step(const GemmProblem& p, const DeviceInfo& device) {
  const bool has_cp_async = device.code_arch >= 80;
  const int shared_bytes = stages(has_cp_async) * Stage<T, MAJOR_A, MAJOR_B, BK>::kBytes;
  if constexpr (BK > 32) {
    if (!has_cp_async || shared_bytes > shared_bytes_a_block(device.capability)) {
      return launch_step<T, MAJOR_A, MAJOR_B, BK / 2>(p, device);
    }
  }
  const bool by_16_bytes = reads_by_16_bytes(p.a, p.dtype, p.m, p.k) && reads_by_16_bytes(p.b, p.dtype, p.k, p.n);
  return launch(by_16_bytes ? wmma_pipelined_kernel<T, MAJOR_A, MAJOR_B, BK, true>
                            : wmma_pipelined_kernel<T, MAJOR_A, MAJOR_B, BK, false>,
                {.blocks = ceil_div(p.m, BM) * ceil_div(p.n, BN), .threads = kThreads, .shared_bytes = shared_bytes},
                p.stream, input_matrix<T>(p.a, p.dtype, p.m, p.k), input_matrix<T>(p.b, p.dtype, p.k, p.n),
                output_matrix(p));
}

int launch_wmma_pipelined(const GemmProblem& p, const DeviceInfo& device) {
  return for_type_and_layout(
      p, [&]<class T, Major MAJOR_A, Major MAJOR_B>() { return launch_step<T, MAJOR_A, MAJOR_B>(p, device); });
}

int64_t reads_wmma_pipelined(const GemmProblem& p) {
  // The count is the same for every type and layout, and but for the last step for both K steps.
  using Tiles = Stage<__half, Major::kRow, Major::kRow, 64>;
  const int64_t steps = ceil_div(p.k, 64);
  return tile_reads<Tiles::TileA, kThreads, __half>(p.a, p.dtype, p.m, p.k, steps) +
         tile_reads<Tiles::TileB, kThreads, __half>(p.b, p.dtype, p.k, p.n, steps);
}

}  // namespace

extern const KernelEntry wmma_pipelined_entry = {.global_reads = reads_wmma_pipelined, .launch = launch_wmma_pipelined};

}  // namespace tcgemm
