// WMMA with every fragment read from global memory (the seed's matmulWmmaGlobal).
//
// Changed: against the FP32 rung, tensor cores do the arithmetic. One warp owns one 16x16 tile of C.
// Costs:   each warp reads its fragments of A and B itself, though its neighbours read the same ones: 16x16 products
//          use 1,024 bytes, 8 flop a byte.
// Needs:   WMMA wants 32-byte aligned fragments in lines a multiple of 8 apart. Fragments that lie wholly inside an
//          aligned operand come straight from it; all others go through a zero-filled scratch tile of the warp.
// Next:    wmma_staged lets eight warps share what they read.
#include "../device/launch.cuh"
#include "../device/select.cuh"
#include "../device/tile.cuh"
#include "../device/wmma_store.cuh"

namespace tcgemm {
namespace {

constexpr int kWarpsM = 4, kWarpsN = 2, kThreads = 32 * kWarpsM * kWarpsN;
constexpr int BM = kWarpsM * kWmmaDim, BN = kWarpsN * kWmmaDim;

// x(row0.., col0..) as a fragment. `direct`: the operand's base and lines suit load_fragment.
template <Major MAJOR, class Fragment, class T>
__device__ __forceinline__ void load_from_global(Fragment& frag, const Matrix<const T>& x, bool direct, int64_t row0,
                                                 int64_t col0, SharedSpan<T> scratch, int lane) {
  using Tile = TileShape<kWmmaDim, kWmmaDim, MAJOR, 0>;
  if (direct && row0 + kWmmaDim <= x.rows && col0 + kWmmaDim <= x.cols) {
    const int64_t ld = MAJOR == Major::kRow ? x.row_stride : x.col_stride;
    load_fragment(frag, x.data, row0 * x.row_stride + col0 * x.col_stride, ld);
    return;
  }
  fill_by_element<Tile, 32>(scratch, x, row0, col0, lane);
  __syncwarp();  // the scratch tile is full
  load_fragment(frag, scratch, 0, Tile::kLd);
  __syncwarp();  // all reads done; the next fragment may overwrite
}

template <class T, Major MAJOR_A, Major MAJOR_B>
__global__ void __launch_bounds__(kThreads) wmma_global_kernel(const Matrix<const T> a, const Matrix<const T> b,
                                                               const OutputMatrix c, bool direct_a, bool direct_b) {
  __shared__ SharedArray<T, kWarpsM * kWarpsN * kFragmentElements> scratch;
  __shared__ SharedArray<float, kWarpsM * kWarpsN * kFragmentElements> scratch_c;

  // Place.
  const int64_t tiles_n = ceil_div(c.cols, BN);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int64_t row0 = blockIdx.x / tiles_n * BM + warp / kWarpsN * kWmmaDim;
  const int64_t col0 = blockIdx.x % tiles_n * BN + warp % kWarpsN * kWmmaDim;
  const SharedSpan<T> scratch_ab = scratch.from(warp * kFragmentElements);

  FragmentC acc;
  fill_fragment(acc, 0.0f);
  for (int64_t k0 = 0; k0 < a.cols; k0 += kWmmaDim) {
    // Load.
    FragmentA<T, MAJOR_A> frag_a;
    FragmentB<T, MAJOR_B> frag_b;
    load_from_global<MAJOR_A>(frag_a, a, direct_a, row0, k0, scratch_ab, lane);
    load_from_global<MAJOR_B>(frag_b, b, direct_b, k0, col0, scratch_ab, lane);
    // Multiply.
    multiply<T, MAJOR_A, MAJOR_B>(acc, frag_a, frag_b);
  }

  // Store.
  store_accumulator(c, row0, col0, acc, scratch_c.from(warp * kFragmentElements), lane);
}

// load_fragment's terms: a fragment's first element at a multiple of 32 bytes and lines a multiple of 8 halves apart.
// Fragments start at multiples of 16 lines and of 16 elements, so an aligned base gives the first.
bool direct(const Operand& x, int64_t rows, int64_t cols) {
  const bool by_row = major_of(x, rows, cols) == Major::kRow;
  const int64_t along = by_row ? x.col_stride : x.row_stride, ld = by_row ? x.row_stride : x.col_stride;
  return along == 1 && ld % 8 == 0 && ld > 0 && ld < (int64_t{1} << 31) &&
         reinterpret_cast<uintptr_t>(x.data) % 32 == 0;
}

int launch_wmma_global(const GemmProblem& p, const DeviceInfo&) {
  return for_type_and_layout(p, [&]<class T, Major MAJOR_A, Major MAJOR_B>() {
    return launch(wmma_global_kernel<T, MAJOR_A, MAJOR_B>,
                  {.blocks = ceil_div(p.m, BM) * ceil_div(p.n, BN), .threads = kThreads}, p.stream,
                  input_matrix<T>(p.a, p.dtype, p.m, p.k), input_matrix<T>(p.b, p.dtype, p.k, p.n), output_matrix(p),
                  direct(p.a, p.m, p.k), direct(p.b, p.k, p.n));
  });
}

int64_t reads_wmma_global(const GemmProblem& p) {
  constexpr int64_t kByElement = kFragmentElements / 32;
  constexpr int64_t kDirect = 4;  // 8 halves a lane in 4-byte loads (SASS, sm_80 and newer)
  const auto reads = [&](const Operand& x, int64_t rows, int64_t cols) {
    return direct(x, rows, cols) ? kDirect : kByElement;
  };
  return ceil_div(p.k, kWmmaDim) * (reads(p.a, p.m, p.k) + reads(p.b, p.k, p.n));
}

}  // namespace

extern const KernelEntry wmma_global_entry = {.global_reads = reads_wmma_global, .launch = launch_wmma_global};

}  // namespace tcgemm
