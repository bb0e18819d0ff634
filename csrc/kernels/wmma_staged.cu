// WMMA with both operand tiles staged in padded shared memory (the seed's matmulWmmaStaged).
//
// Changed: a 128x16 tile of A and a 16x128 tile of B go to shared memory once per K step, and each warp takes its
//          fragments from there: 64 flop per staged byte, and A fragments serve 4 products, B fragments 2.
// Costs:   two barriers a K step; nothing overlaps the loads.
// Needs:   nothing: edges are zero-filled, and operands that cannot be read by 16 bytes are read by element.
// Next:    wmma_pipelined loads the next tiles while it multiplies.
#include "../device/launch.cuh"
#include "../device/select.cuh"
#include "../device/tile.cuh"
#include "../device/wmma_store.cuh"

namespace tcgemm {
namespace {

// PAD in elements. A tile's line must be an odd multiple of 16 bytes long, or the rows that one fragment load
// touches share banks: with BK = 16, 8 halves give 4 wavefronts a load, none 8, and 16 give 16 (measured, H200).
template <int WARP_M, int WARP_N, int PAD = 8>
struct StagedTile {
  static constexpr int BM = 128, BN = 128, BK = kWmmaDim;
  static constexpr int WM = WARP_M, WN = WARP_N;
  static constexpr int kWarpsM = BM / WM, kWarpsN = BN / WN;
  static constexpr int kWarps = kWarpsM * kWarpsN, kThreads = 32 * kWarps;
  static constexpr int kBlocksPerSm = kThreads <= 256 ? 2 : 1;  // what its accumulators leave registers for
  static constexpr int kFragsM = WM / kWmmaDim, kFragsN = WN / kWmmaDim;
  template <Major MAJOR>
  using TileA = TileShape<BM, BK, MAJOR, PAD>;
  template <Major MAJOR>
  using TileB = TileShape<BK, BN, MAJOR, PAD>;
  static_assert(BM % WM == 0 && BN % WN == 0, "warp tiles must cover the block tile");
  static_assert((BK + PAD) % 8 == 0, "WMMA reads 16-byte pieces: a line must be a multiple of 8 halves");
};
using Default = StagedTile<32, 64>;
static_assert(Default::kWarpsM == 4 && Default::kWarpsN == 2 && Default::kThreads == 256, "the seed's 4x2 warps");
static_assert(Default::kFragsM * Default::kFragsN * 8 == 64, "64 accumulators a lane");
static_assert(StagedTile<32, 32>::kWarps == 16 && StagedTile<64, 64>::kFragsM * StagedTile<64, 64>::kFragsN == 16,
              "the seed's other two shapes");

template <class T, Major MAJOR_A, Major MAJOR_B, class Tile>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocksPerSm)
    wmma_staged_kernel(const Matrix<const T> a, const Matrix<const T> b, const OutputMatrix c) {
  using TileA = typename Tile::template TileA<MAJOR_A>;
  using TileB = typename Tile::template TileB<MAJOR_B>;
  __shared__ SharedArray<T, TileA::kElements> shared_a;
  __shared__ SharedArray<T, TileB::kElements> shared_b;
  __shared__ SharedArray<float, Tile::kWarps * kFragmentElements> scratch;
  const SharedSpan<T> tile_a = shared_a, tile_b = shared_b;

  // Place: the block's corner in C, and the warp's inside the block.
  const int64_t tiles_n = ceil_div(c.cols, Tile::BN);
  const int64_t m0 = blockIdx.x / tiles_n * Tile::BM, n0 = blockIdx.x % tiles_n * Tile::BN;
  const int thread = threadIdx.x, warp = thread / 32;
  const int warp_m = warp / Tile::kWarpsN * Tile::WM, warp_n = warp % Tile::kWarpsN * Tile::WN;

  FragmentC acc[Tile::kFragsM][Tile::kFragsN];
#pragma unroll
  for (int i = 0; i < Tile::kFragsM; ++i) {
#pragma unroll
    for (int j = 0; j < Tile::kFragsN; ++j) fill_fragment(acc[i][j], 0.0f);
  }

  TileLoader<TileA, Side::kA, Tile::kThreads, T> load_a(a, m0, thread);
  TileLoader<TileB, Side::kB, Tile::kThreads, T> load_b(b, n0, thread);
  for (int64_t k0 = 0; k0 < a.cols; k0 += Tile::BK) {
    // Load.
    const int k = static_cast<int>(min(a.cols - k0, int64_t{Tile::BK}));
    if (a.by_16_bytes) {
      load_a.fill(tile_a, k);
    } else {
      fill_by_element<TileA, Tile::kThreads>(tile_a, a, m0, k0, thread);
    }
    if (b.by_16_bytes) {
      load_b.fill(tile_b, k);
    } else {
      fill_by_element<TileB, Tile::kThreads>(tile_b, b, k0, n0, thread);
    }
    load_a.advance();
    load_b.advance();
    __syncthreads();  // both tiles are full
    // Multiply.
    FragmentA<T, MAJOR_A> frag_a[Tile::kFragsM];
    FragmentB<T, MAJOR_B> frag_b[Tile::kFragsN];
#pragma unroll
    for (int i = 0; i < Tile::kFragsM; ++i) {
      load_fragment(frag_a[i], tile_a, TileA::at(warp_m + i * kWmmaDim, 0), TileA::kLd);
    }
#pragma unroll
    for (int j = 0; j < Tile::kFragsN; ++j) {
      load_fragment(frag_b[j], tile_b, TileB::at(0, warp_n + j * kWmmaDim), TileB::kLd);
    }
#pragma unroll
    for (int i = 0; i < Tile::kFragsM; ++i) {
#pragma unroll
      for (int j = 0; j < Tile::kFragsN; ++j) multiply<T, MAJOR_A, MAJOR_B>(acc[i][j], frag_a[i], frag_b[j]);
    }
    __syncthreads();  // all reads done; the next pass may overwrite
  }

  // Store.
  store_accumulators(c, m0 + warp_m, n0 + warp_n, acc, scratch.from(warp * kFragmentElements), thread % 32);
}

template <class Tile>
int launch_wmma_staged(const GemmProblem& p, const DeviceInfo&) {
  return for_type_and_layout(p, [&]<class T, Major MAJOR_A, Major MAJOR_B>() {
    return launch(wmma_staged_kernel<T, MAJOR_A, MAJOR_B, Tile>,
                  {.blocks = ceil_div(p.m, Tile::BM) * ceil_div(p.n, Tile::BN), .threads = Tile::kThreads}, p.stream,
                  input_matrix<T>(p.a, p.dtype, p.m, p.k), input_matrix<T>(p.b, p.dtype, p.k, p.n), output_matrix(p));
  });
}

template <class Tile>
int64_t reads_wmma_staged(const GemmProblem& p) {
  using TileA = typename Tile::template TileA<Major::kRow>;  // the count is the same for both majors
  using TileB = typename Tile::template TileB<Major::kRow>;
  const int64_t steps = ceil_div(p.k, Tile::BK);
  return tile_reads<TileA, Tile::kThreads, __half>(p.a, p.dtype, p.m, p.k, steps) +
         tile_reads<TileB, Tile::kThreads, __half>(p.b, p.dtype, p.k, p.n, steps);
}

}  // namespace

extern const KernelEntry wmma_staged_entry = {.global_reads = reads_wmma_staged<Default>,
                                              .launch = launch_wmma_staged<Default>};
extern const KernelEntry wmma_staged_32x32_entry = {.global_reads = reads_wmma_staged<StagedTile<32, 32>>,
                                                    .launch = launch_wmma_staged<StagedTile<32, 32>>};
extern const KernelEntry wmma_staged_64x64_entry = {.global_reads = reads_wmma_staged<StagedTile<64, 64>>,
                                                    .launch = launch_wmma_staged<StagedTile<64, 64>>};

}  // namespace tcgemm
