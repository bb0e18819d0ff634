// Tiles for ldmatrix: pieces of an operand in shared memory without padding, their 16-byte chunks swapped about so
// that neither filling nor reading a tile meets a bank conflict.
//
// A and B look alike here. Both are panels: `outer` (m of A, n of B) times k, and both are read as 16x16 blocks.
#pragma once
#include "cp_async.cuh"
#include "ldmatrix.cuh"
#include "memory.cuh"

namespace tcgemm {

// A kernel's view of A or B.
template <class T>
struct Panel {
  Global<const T> data;
  int64_t outer, k;  // its extent
  int64_t outer_stride, k_stride;
  bool by_pairs;  // 4-byte accesses are aligned along the contiguous dimension
};

// Whether 2-byte elements can be read in pairs.
inline bool reads_by_pairs(const Operand& x, bool k_contiguous, int64_t outer_stride, int64_t k_stride) {
  const int64_t inner = k_contiguous ? k_stride : outer_stride, line = k_contiguous ? outer_stride : k_stride;
  return inner == 1 && line % 2 == 0 && reinterpret_cast<uintptr_t>(x.data) % 4 == 0;
}

template <class T, Major MAJOR>
Panel<T> panel_a(const GemmProblem& p) {
  return {global_operand<const T>(p.a, p.m, p.k),
          p.m,
          p.k,
          p.a.row_stride,
          p.a.col_stride,
          reads_by_pairs(p.a, MAJOR == Major::kRow, p.a.row_stride, p.a.col_stride)};
}

template <class T, Major MAJOR>
Panel<T> panel_b(const GemmProblem& p) {
  return {global_operand<const T>(p.b, p.k, p.n),
          p.n,
          p.k,
          p.b.col_stride,
          p.b.row_stride,
          reads_by_pairs(p.b, MAJOR == Major::kCol, p.b.col_stride, p.b.row_stride)};
}

// OUTER x BK elements in lines along k (K_CONTIGUOUS) or along outer, stored the way the operand is.
//
// Shared memory serves 128 bytes at a time: 8 chunks. The 8 rows of a matrix that ldmatrix reads at once are the
// same chunk of 8 neighbouring lines, so chunk c of line l goes to place c ^ f(l), where f is such that the 8 places
// differ modulo 128 bytes. Lines of 128 bytes and more: f(l) = l % 8. Shorter ones share 128 bytes, `kLinesPer128` of
// them, and lie in different chunks anyway: f counts groups of such lines.
template <int OUTER, int BK, bool K_CONTIGUOUS>
struct SwizzledTile {
  static constexpr bool kAlongK = K_CONTIGUOUS;
  static constexpr int kChunk = 8;  // elements in 16 bytes
  static constexpr int kLines = K_CONTIGUOUS ? OUTER : BK;
  static constexpr int kLength = K_CONTIGUOUS ? BK : OUTER;  // elements in a line
  static constexpr int kElements = OUTER * BK;
  static constexpr int kPerLine = kLength / kChunk;  // chunks
  static constexpr int kLinesPer128 = kPerLine < 8 ? 8 / kPerLine : 1;
  static constexpr int kSwizzleMask = (kPerLine < 8 ? kPerLine : 8) - 1;
  static constexpr int kDepth = BK;
  static_assert(kPerLine < 8 ? 8 % kPerLine == 0 : kPerLine % 8 == 0, "a swapped chunk must stay in its line");
  static_assert(OUTER % 16 == 0 && BK % 16 == 0, "read as 16x16 blocks");

  __host__ __device__ static constexpr int swizzle(int line) { return line / kLinesPer128 & kSwizzleMask; }
  // Where element `along` of a line is.
  __host__ __device__ static constexpr int at(int line, int along) {
    return line * kLength + ((along / kChunk ^ swizzle(line)) * kChunk) + along % kChunk;
  }
};

// Whether the 8 rows of every 8x8 matrix, chunk c of lines l to l + 7, lie at different addresses modulo 128 bytes, and
// no two chunks at the same place.
template <class Tile>
constexpr bool reads_without_conflicts() {
  for (int along = 0; along < Tile::kLength; along += Tile::kChunk) {
    for (int first = 0; first < Tile::kLines; first += 8) {
      unsigned banks = 0;
      for (int line = first; line < first + 8; ++line) {
        const int at = Tile::at(line, along);
        if (at / Tile::kLength != line) return false;  // it left its line, so it is in another chunk's place
        banks |= 1u << at / Tile::kChunk % 8;
      }
      if (banks != 0xff) return false;
    }
  }
  return true;
}

// Where one lane reads for ldmatrix of 16x16 blocks (outer x k). Of the four 8x8 matrices, 0 and 1 lie next to each
// other along outer in A and along k in B: so a block is an operand a of m16n8k16, or its registers 0, 1 and 2, 3 are
// the operands b of two neighbours, each in neighbouring registers, as the instruction wants them.
//
// The place of the block at (outer, k) from the lane's first: chunks are swapped by XOR, lines keep their order, and 16
// lines further the swap is the same. So it costs one XOR, which blocks in a row share, and a constant. The XOR comes
// after the stage has been added: before it, each step's would wait in a register of its own all through the loop.
template <class Tile, bool IS_B>
struct BlockReader {
  static_assert((Tile::kLength & (Tile::kLength - 1)) == 0, "an XOR must stay inside its line");
  int first;

  // outer0: a multiple of the warp tile's extent, which is a power of two.
  __device__ __forceinline__ BlockReader(int outer0, int lane) {
    const int row = lane % 8, second = lane / 8 % 2 * 8, third = lane / 16 * 8;  // the matrix's place in the block
    const int outer = outer0 + (IS_B ? third : second), k = IS_B ? second : third;
    first = Tile::kAlongK ? Tile::at(outer + row, k) : Tile::at(k + row, outer);  // else ldmatrix transposes
  }

  // From the tile that begins at element `tile` of `ring`.
  template <class T>
  __device__ __forceinline__ void load(Reg<unsigned, 4>& frag, SharedSpan<T> ring, int tile, int outer, int k) const {
    if constexpr (Tile::kAlongK) {
      ldmatrix_x4(frag, ring, ((tile + first) ^ k) + outer * Tile::kLength);
    } else {
      ldmatrix_x4_trans(frag, ring, ((tile + first) ^ outer) + k * Tile::kLength);
    }
  }
};

// What is left of k from the tile at k0 on; a tile's depth stands for more.
template <class Form>
__device__ __forceinline__ int k_left_at(int64_t k, int64_t k0) {
  return static_cast<int>(k - k0 < 0 ? 0 : k - k0 < Form::BK ? k - k0 : Form::BK);
}

// One thread's share of filling a tile, V neighbouring elements at a time, and its way along k, tile after tile.
// Zero outside the operand: a zero adds nothing to a dot product.
template <class Tile, int THREADS, int V, class T>
struct TileFiller {
  static constexpr int kPieces = Tile::kElements / (THREADS * V);  // a thread's
  static constexpr int kPerLine = Tile::kLength / V;
  static constexpr int kLineStep = THREADS / kPerLine;  // lines between a thread's pieces
  static_assert(Tile::kElements % (THREADS * V) == 0, "every thread must have the same number of pieces");
  static_assert(THREADS % kPerLine == 0, "a thread's pieces must lie below each other");

  static_assert(kPieces <= 32, "one bit a piece in `inside`");

  Panel<T> x;
  int line, along;  // of this thread's first piece in the tile
  int64_t offset;   // of that piece in the operand, for the next tile
  int inside;       // along outer, which does not change: a bit for each piece's line, or a number of elements

  __device__ __forceinline__ TileFiller(const Panel<T>& panel, int64_t outer0, int thread) : x(panel) {
    line = thread / kPerLine;
    along = thread % kPerLine * V;
    const int64_t outer = outer0 + (Tile::kAlongK ? line : along), left = x.outer - outer;
    offset = outer * x.outer_stride + (Tile::kAlongK ? along : line) * x.k_stride;
    if constexpr (Tile::kAlongK) {
      inside = 0;
#pragma unroll
      for (int i = 0; i < kPieces; ++i) inside |= (left > i * kLineStep) << i;
    } else {
      inside = static_cast<int>(left < 0 ? 0 : left < V ? left : V);
    }
  }

  __device__ __forceinline__ int64_t piece_offset(int i) const {
    return offset + i * (kLineStep * (Tile::kAlongK ? x.outer_stride : x.k_stride));
  }
  // How many elements of piece i lie inside the operand, which goes on for k_left from the tile's start.
  __device__ __forceinline__ int valid(int i, int k_left) const {
    if constexpr (Tile::kAlongK) {
      const int left = k_left - along;
      return (inside >> i & 1) == 0 || left <= 0 ? 0 : left < V ? left : V;
    } else {
      return i * kLineStep < k_left - line ? inside : 0;
    }
  }
  __device__ __forceinline__ int at(int i) const {
    if constexpr (kLineStep % 8 == 0) return Tile::at(line, along) + i * kLineStep * Tile::kLength;  // the same swap
    return Tile::at(line + i * kLineStep, along);
  }

  // Leaves out `tiles` tiles.
  __device__ __forceinline__ void skip(int tiles) { offset += int64_t{tiles} * Tile::kDepth * x.k_stride; }

  // By cp.async: the tile is full after the wait for its group and a barrier. INSIDE: all of it lies in the operand.
  template <bool INSIDE>
  __device__ __forceinline__ void fill_async(SharedSpan<T> tile, int k_left) {
    // At the edges two at a time: side by side, all the pieces' addresses and bounds do not fit in the registers.
#pragma unroll(INSIDE ? kPieces : 2)
    for (int i = 0; i < kPieces; ++i) {
      if constexpr (INSIDE) {
        cp_async_16(tile, at(i), x.data, piece_offset(i));
      } else {
        cp_async_16(tile, at(i), x.data, piece_offset(i), valid(i, k_left));
      }
    }
    offset += Tile::kDepth * x.k_stride;
  }

  // Through registers, so that the loads are under way while the warp multiplies.
  using Piece = Vec<T, V>;
  __device__ __forceinline__ void load(Piece (&pieces)[kPieces], int k_left) {
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      if constexpr (V == kVecLength<T>) {
        pieces[i] = load_vec_or_zero<V>(x.data, piece_offset(i), valid(i, k_left));
      } else if (x.by_pairs) {
        pieces[i] = load_vec_or_zero<V>(x.data, piece_offset(i), valid(i, k_left));
      } else {
        const int64_t inner = Tile::kAlongK ? x.k_stride : x.outer_stride;
#pragma unroll
        for (int e = 0; e < V; ++e) {
          pieces[i].v[e] = load_or(x.data, piece_offset(i) + e * inner, e < valid(i, k_left), T(0.0f));
        }
      }
    }
    offset += Tile::kDepth * x.k_stride;
  }
  __device__ __forceinline__ void store(SharedSpan<T> tile, const Piece (&pieces)[kPieces]) const {
#pragma unroll
    for (int i = 0; i < kPieces; ++i) store_vec(tile, at(i), pieces[i]);
  }
};

}  // namespace tcgemm
