// FP32 FMA on a 128x128 block tile with 64 accumulators a thread and float4 accesses (the seed's matmulRegTile2dVec4).
//
// Changed: this is the bar that tensor cores are measured against. Every shared float is read by float4 and used for 8
//          FMAs; the next step's operands wait in registers while this one is multiplied, so a step has one barrier.
// Costs:   64 FMAs take 16 shared floats, and one block an SM: under a cap of 128 registers the accumulators, the
//          waiting operands and their addresses would spill.
// Needs:   nothing: FP32, FP16 or BF16 operands (products and sums in FP32), any stride, edges zero-filled.
//          It also serves BF16 where tensor cores have none (compute capability 7.5): right, and slow.
// Next:    wmma_global gives the arithmetic to the tensor cores.
#include "../device/launch.cuh"
#include "../device/select.cuh"
#include "../device/tile.cuh"

namespace tcgemm {
namespace {

constexpr int BM = 128, BN = 128, BK = 8, TM = 8, TN = 8;
constexpr int kThreads = BM / TM * (BN / TN);
constexpr int kVec = 4;
// A thread's patch is four pieces of 4x4, half a tile apart, so that a quarter warp's float4 reads are contiguous.
constexpr int kHalfM = BM / 2, kHalfN = BN / 2, kThreadsN = BN / TN;
constexpr int kLd = BM + 4;  // both tiles are stored k by k; the pad keeps transposing stores off each other's banks
static_assert(kThreads == 256 && TM * TN == 64 && BM == BN, "the seed's FP32 bar");

// An operand seen from its product: `across` runs over m for A and over n for B.
template <class T>
struct Panel {
  Global<const T> data;
  int64_t across, k, across_stride, k_stride;
  bool by_vec;
};

template <class T>
Panel<T> panel(const Operand& x, DType dtype, int64_t rows, int64_t cols, bool k_is_col) {
  return {global_operand<const T>(x, rows, cols),
          k_is_col ? rows : cols,
          k_is_col ? cols : rows,
          k_is_col ? x.row_stride : x.col_stride,
          k_is_col ? x.col_stride : x.row_stride,
          reads_by_16_bytes(x, dtype, rows, cols)};
}

// One thread's 4 of a step's 128 x 8 elements, in registers from load to store. ALONG_K: k is the contiguous dimension.
template <class T, bool ALONG_K>
struct Share {
  Vec<T, kVec> x;

  // By vector: four in a row along the contiguous dimension.
  static constexpr int kPerLine = (ALONG_K ? BK : BM) / kVec;
  __device__ __forceinline__ static int vec_across(int t) { return ALONG_K ? t / kPerLine : t % kPerLine * kVec; }
  __device__ __forceinline__ static int vec_k(int t) { return ALONG_K ? t % kPerLine * kVec : t / kPerLine; }
  // By element: neighbouring threads read neighbouring elements, and element e lies this far from element 0.
  static constexpr int kAcrossStep = ALONG_K ? kThreads / BK : 0, kKStep = ALONG_K ? 0 : kThreads / BM;
  __device__ __forceinline__ static int element_across(int t) { return ALONG_K ? t / BK : t % BM; }
  __device__ __forceinline__ static int element_k(int t) { return ALONG_K ? t % BK : t / BM; }

  __device__ __forceinline__ void load(const Panel<T>& p, int64_t across0, int64_t k0, int t) {
    // What lies inside the matrix, seen from the tile's corner.
    const int across_end = static_cast<int>(min(p.across - across0, int64_t{BM}));
    const int k_end = static_cast<int>(min(p.k - k0, int64_t{BK}));
    const int64_t corner = across0 * p.across_stride + k0 * p.k_stride;
    if (p.by_vec) {
      const int across = vec_across(t), k = vec_k(t);
      const bool inside = across < across_end && k < k_end;
      const int valid = inside ? min(ALONG_K ? k_end - k : across_end - across, kVec) : 0;
      x = load_vec_or_zero<kVec>(p.data, corner + across * p.across_stride + k * p.k_stride, valid);
    } else {
      const int across = element_across(t), k = element_k(t);
#pragma unroll
      for (int e = 0; e < kVec; ++e) {
        const int row = across + e * kAcrossStep, kk = k + e * kKStep;
        x.v[e] =
            load_or(p.data, corner + row * p.across_stride + kk * p.k_stride, row < across_end && kk < k_end, T(0.0f));
      }
    }
  }

  __device__ __forceinline__ void store(SharedSpan<float> tile, bool by_vec, int t) const {
    const Vec<float, kVec> wide = {float(x.v[0]), float(x.v[1]), float(x.v[2]), float(x.v[3])};
    if (by_vec && !ALONG_K) {
      store_vec(tile, vec_k(t) * kLd + vec_across(t), wide);
      return;
    }
    const int at = by_vec ? vec_k(t) * kLd + vec_across(t) : element_k(t) * kLd + element_across(t);
    const int step = by_vec ? kLd : kKStep * kLd + kAcrossStep;
#pragma unroll
    for (int e = 0; e < kVec; ++e) tile[at + e * step] = wide.v[e];
  }
};

// Eight floats of line kk: four from `first` on, and four half a tile later.
__device__ __forceinline__ void load_frag(Reg<float, 8>& frag, SharedSpan<float> tile, int kk, int first, int half) {
  const Vec<float, kVec> low = load_vec<kVec>(tile, kk * kLd + first);
  const Vec<float, kVec> high = load_vec<kVec>(tile, kk * kLd + first + half);
#pragma unroll
  for (int i = 0; i < kVec; ++i) {
    frag[i] = low.v[i];
    frag[i + kVec] = high.v[i];
  }
}

template <class T, Major MAJOR_A, Major MAJOR_B>
__global__ void __launch_bounds__(kThreads, 1)
    simt_regtile_vec4_kernel(const Panel<T> a, const Panel<T> b, const Matrix<float> c) {
  __shared__ SharedArray<float, 2 * BK * kLd> shared_a;
  __shared__ SharedArray<float, 2 * BK * kLd> shared_b;

  // Place.
  const int64_t tiles_n = ceil_div(c.cols, BN);
  const int64_t m0 = blockIdx.x / tiles_n * BM, n0 = blockIdx.x % tiles_n * BN;
  const int thread = threadIdx.x;
  const int thread_m = thread / kThreadsN * kVec, thread_n = thread % kThreadsN * kVec;

  Reg<float, TM * TN> acc;
#pragma unroll
  for (int i = 0; i < TM * TN; ++i) acc[i] = 0.0f;

  Share<T, MAJOR_A == Major::kRow> next_a;
  Share<T, MAJOR_B == Major::kCol> next_b;
  next_a.load(a, m0, 0, thread);
  next_b.load(b, n0, 0, thread);
  int stage = 0;
  for (int64_t k0 = 0; k0 < a.k; k0 += BK) {
    // Load.
    const SharedSpan<float> tile_a = shared_a.from(stage * BK * kLd), tile_b = shared_b.from(stage * BK * kLd);
    next_a.store(tile_a, a.by_vec, thread);
    next_b.store(tile_b, b.by_vec, thread);
    __syncthreads();  // the stage is full, and all are done with the other one, which is filled next
    if (k0 + BK < a.k) {
      next_a.load(a, m0, k0 + BK, thread);
      next_b.load(b, n0, k0 + BK, thread);
    }
    // Multiply.
#pragma unroll
    for (int kk = 0; kk < BK; ++kk) {
      Reg<float, TM> frag_a;
      Reg<float, TN> frag_b;
      load_frag(frag_a, tile_a, kk, thread_m, kHalfM);
      load_frag(frag_b, tile_b, kk, thread_n, kHalfN);
#pragma unroll
      for (int i = 0; i < TM; ++i) {
#pragma unroll
        for (int j = 0; j < TN; ++j) acc[i * TN + j] = fmaf(frag_a[i], frag_b[j], acc[i * TN + j]);
      }
    }
    stage ^= 1;
  }

  // Store.
#pragma unroll
  for (int i = 0; i < TM; ++i) {
    const int64_t row = m0 + thread_m + i % kVec + i / kVec * kHalfM;
#pragma unroll
    for (int j = 0; j < TN; j += kVec) {
      const int64_t col = n0 + thread_n + j / kVec * kHalfN;
      const int64_t offset = row * c.row_stride + col * c.col_stride;
      if (c.by_16_bytes && row < c.rows && col + kVec <= c.cols) {
        const Vec<float, kVec> x = {acc[i * TN + j], acc[i * TN + j + 1], acc[i * TN + j + 2], acc[i * TN + j + 3]};
        store_vec(c.data, offset, x);
      } else {
#pragma unroll
        for (int e = 0; e < kVec; ++e) {
          store_if(c.data, offset + e * c.col_stride, row < c.rows && col + e < c.cols, acc[i * TN + j + e]);
        }
      }
    }
  }
}

int launch_simt_regtile_vec4(const GemmProblem& p, const DeviceInfo&) {
  return for_any_type_and_layout(p, [&]<class T, Major MAJOR_A, Major MAJOR_B>() {
    const bool by_16_bytes = p.c.col_stride == 1 && reads_by_16_bytes(p.c, DType::kFloat32, p.m, p.n);
    const Matrix<float> c = {
        global_operand<float>(p.c, p.m, p.n), p.m, p.n, p.c.row_stride, p.c.col_stride, by_16_bytes};
    return launch(simt_regtile_vec4_kernel<T, MAJOR_A, MAJOR_B>,
                  {.blocks = ceil_div(p.m, BM) * ceil_div(p.n, BN), .threads = kThreads}, p.stream,
                  panel<T>(p.a, p.dtype, p.m, p.k, true), panel<T>(p.b, p.dtype, p.k, p.n, false), c);
  });
}

int64_t reads_simt_regtile_vec4(const GemmProblem& p) {
  const int a = reads_by_16_bytes(p.a, p.dtype, p.m, p.k) ? 1 : kVec;
  const int b = reads_by_16_bytes(p.b, p.dtype, p.k, p.n) ? 1 : kVec;
  return ceil_div(p.k, BK) * (a + b);
}

}  // namespace

extern const KernelEntry simt_regtile_vec4_entry = {.global_reads = reads_simt_regtile_vec4,
                                                    .launch = launch_simt_regtile_vec4};

}  // namespace tcgemm
