// FP32 FMA on a 128x128 block tile with 64 accumulators a thread and float4 accesses (the seed's matmulRegTile2dVec4).
//
// Changed: this is the bar that tensor cores are measured against. Every shared float is read by float4 and used for 8
//          FMAs; the next step's operands wait in registers while this one is multiplied, so a step has one barrier.
// Costs:   64 FMAs take 16 shared floats; a thread's 8x8 accumulators leave room for two blocks an SM.
// Needs:   nothing: FP32, FP16 or BF16 operands (products and sums in FP32), any stride, edges zero-filled.
//          It also serves BF16 where tensor cores have none (compute capability 7.5): right, and slow.
// Next:    wmma_global gives the arithmetic to the tensor cores.
#include "../device/launch.cuh"
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

enum class Read { kVecAlongK, kVecAcross, kElementAlongK, kElementAcross };

// An operand seen from its product: `across` runs over m for A and over n for B.
template <class T>
struct Panel {
  Global<const T> data;
  int64_t across, k, across_stride, k_stride;
  Read read;
};

template <class T>
Panel<T> panel(const Operand& x, DType dtype, int64_t rows, int64_t cols, bool k_is_col) {
  const int64_t k_stride = k_is_col ? x.col_stride : x.row_stride;
  const int64_t across_stride = k_is_col ? x.row_stride : x.col_stride;
  const int64_t k = k_is_col ? cols : rows, across = k_is_col ? rows : cols;
  const bool along_k = major_of(x, rows, cols) == (k_is_col ? Major::kRow : Major::kCol);
  const bool by_vec = reads_by_16_bytes(x, dtype, rows, cols);
  return {global_operand<const T>(x, rows, cols), across, k, across_stride, k_stride,
          along_k ? (by_vec ? Read::kVecAlongK : Read::kElementAlongK)
                  : (by_vec ? Read::kVecAcross : Read::kElementAcross)};
}

// One thread's 4 of the 128 x 8 elements of a step: in registers from load to store.
template <class T>
struct Share {
  Vec<T, kVec> x;

  // Element e of this thread: (across, k) inside the tile.
  __device__ __forceinline__ static int across(Read read, int thread, int e) {
    switch (read) {
      case Read::kVecAlongK: return thread / (BK / kVec);
      case Read::kVecAcross: return thread % (BM / kVec) * kVec + e;
      case Read::kElementAlongK: return (thread + e * kThreads) / BK;
      default: return (thread + e * kThreads) % BM;
    }
  }
  __device__ __forceinline__ static int along_k(Read read, int thread, int e) {
    switch (read) {
      case Read::kVecAlongK: return thread % (BK / kVec) * kVec + e;
      case Read::kVecAcross: return thread / (BM / kVec);
      case Read::kElementAlongK: return (thread + e * kThreads) % BK;
      default: return (thread + e * kThreads) / BM;
    }
  }

  __device__ __forceinline__ void load(const Panel<T>& p, int64_t across0, int64_t k0, int thread) {
    if (p.read == Read::kVecAlongK || p.read == Read::kVecAcross) {
      const int64_t row = across0 + across(p.read, thread, 0), kk = k0 + along_k(p.read, thread, 0);
      const int64_t left = p.read == Read::kVecAlongK ? (row < p.across ? p.k - kk : 0) : (kk < p.k ? p.across - row : 0);
      const int valid = static_cast<int>(left < 0 ? 0 : left < kVec ? left : kVec);
      x = load_vec_or_zero<kVec>(p.data, row * p.across_stride + kk * p.k_stride, valid);
      return;
    }
#pragma unroll
    for (int e = 0; e < kVec; ++e) {
      const int64_t row = across0 + across(p.read, thread, e), kk = k0 + along_k(p.read, thread, e);
      x.v[e] = load_or(p.data, row * p.across_stride + kk * p.k_stride, row < p.across && kk < p.k, T(0.0f));
    }
  }

  __device__ __forceinline__ void store(SharedSpan<float> tile, Read read, int thread) const {
    if (read == Read::kVecAcross) {
      const Vec<float, kVec> wide = {float(x.v[0]), float(x.v[1]), float(x.v[2]), float(x.v[3])};
      store_vec(tile, along_k(read, thread, 0) * kLd + across(read, thread, 0), wide);
      return;
    }
#pragma unroll
    for (int e = 0; e < kVec; ++e) {
      tile[along_k(read, thread, e) * kLd + across(read, thread, e)] = float(x.v[e]);
    }
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

template <class T>
// Before sm_80 a cap of 128 registers would spill.
__global__ void __launch_bounds__(kThreads, kHasCpAsync ? 2 : 1)
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

  Share<T> next_a, next_b;
  next_a.load(a, m0, 0, thread);
  next_b.load(b, n0, 0, thread);
  int stage = 0;
  for (int64_t k0 = 0; k0 < a.k; k0 += BK) {
    // Load.
    const SharedSpan<float> tile_a = shared_a.from(stage * BK * kLd), tile_b = shared_b.from(stage * BK * kLd);
    next_a.store(tile_a, a.read, thread);
    next_b.store(tile_b, b.read, thread);
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

template <class T>
int launch_for_type(const GemmProblem& p) {
  const bool by_16_bytes = p.c.col_stride == 1 && reads_by_16_bytes(p.c, DType::kFloat32, p.m, p.n);
  const Matrix<float> c = {global_operand<float>(p.c, p.m, p.n), p.m, p.n, p.c.row_stride, p.c.col_stride, by_16_bytes};
  return launch(simt_regtile_vec4_kernel<T>,
                {.blocks = ceil_div(p.m, BM) * ceil_div(p.n, BN), .threads = kThreads}, p.stream,
                panel<T>(p.a, p.dtype, p.m, p.k, true), panel<T>(p.b, p.dtype, p.k, p.n, false), c);
}

int launch_simt_regtile_vec4(const GemmProblem& p, const DeviceInfo&) {
  switch (p.dtype) {
    case DType::kFloat16: return launch_for_type<__half>(p);
    case DType::kBFloat16: return launch_for_type<__nv_bfloat16>(p);
    default: return launch_for_type<float>(p);
  }
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
