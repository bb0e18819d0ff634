// Tiles: a block's piece of an operand, on its way from global to shared memory and back.
#pragma once
#include "cp_async.cuh"
#include "memory.cuh"

namespace tcgemm {

// A kernel's view of an operand.
template <class T>
struct Matrix {
  Global<T> data;
  int64_t rows, cols, row_stride, col_stride;
  bool by_16_bytes;  // aligned for 16-byte accesses along the contiguous dimension
};

// The stride of a dimension of size 1 may be anything, and no element depends on it: 0 keeps addresses aligned.
template <class T>
Matrix<const T> input_matrix(const Operand& x, DType dtype, int64_t rows, int64_t cols) {
  return {
      global_operand<const T>(x, rows, cols), rows, cols, rows == 1 ? 0 : x.row_stride, cols == 1 ? 0 : x.col_stride,
      reads_by_16_bytes(x, dtype, rows, cols)};
}

// Which index of the operand is contiguous. An operand with no unit stride counts as row-major.
inline Major major_of(const Operand& x, int64_t rows, int64_t cols) {
  const bool row_major = x.col_stride == 1 || cols == 1;
  const bool col_major = x.row_stride == 1 || rows == 1;
  return !row_major && col_major ? Major::kCol : Major::kRow;
}

// ROWS x COLS elements in shared memory, stored the way the operand is: MAJOR says along which index.
// PAD elements behind each line put neighbouring lines on different banks.
template <int ROWS, int COLS, Major MAJOR, int PAD>
struct TileShape {
  static constexpr int kRows = ROWS, kCols = COLS;
  static constexpr Major kMajor = MAJOR;
  static constexpr int kLines = MAJOR == Major::kRow ? ROWS : COLS;   // how many contiguous lines
  static constexpr int kLength = MAJOR == Major::kRow ? COLS : ROWS;  // elements in a line
  static constexpr int kLd = kLength + PAD;
  static constexpr int kElements = kLines * kLd;

  __host__ __device__ static constexpr int at(int row, int col) {
    return MAJOR == Major::kRow ? row * kLd + col : col * kLd + row;
  }
};

enum class Side { kA, kB };  // k is the column index of A and the row index of B

// One thread's share of the tiles of an operand, which follow each other along k. `across` is the other dimension: m
// for A, n for B. The tile is dealt out in 16-byte chunks, chunk i of a thread kLinesApart lines below its chunk i - 1,
// so that one offset and one count, kept from tile to tile, say all that a load needs.
template <class Shape, Side SIDE, int THREADS, class T>
struct TileLoader {
  static constexpr int kChunk = kVecLength<T>;
  static constexpr int kPerLine = Shape::kLength / kChunk;
  static constexpr int kLinesApart = THREADS / kPerLine;
  static constexpr int kChunks = (Shape::kLines + kLinesApart - 1) / kLinesApart;
  static constexpr bool kKAlong = (SIDE == Side::kA) == (Shape::kMajor == Major::kRow);  // k runs along the lines
  static constexpr bool kEven = kChunks * kLinesApart == Shape::kLines;  // every thread has kChunks chunks
  static constexpr int kBK = kKAlong ? Shape::kLength : Shape::kLines;
  static_assert(Shape::kLength % kChunk == 0 && THREADS % kPerLine == 0, "a thread's chunks must stay in one column");

  const Matrix<const T>& x;
  int thread;
  int64_t offset;  // of chunk 0 in the operand
  int across;      // valid elements from chunk 0 on: lines, or halves of a chunk, by kKAlong
  bool interior;   // the whole tile lies inside across the other dimension; the same for all threads

  __device__ __forceinline__ TileLoader(const Matrix<const T>& operand, int64_t across0, int thread_in_block)
      : x(operand), thread(thread_in_block) {
    const int64_t first = across0 + (kKAlong ? line() : along());
    offset = kKAlong ? first * line_stride() + along() : line() * line_stride() + first;
    const int64_t left = (SIDE == Side::kA ? x.rows : x.cols) - first;
    interior = (SIDE == Side::kA ? x.rows : x.cols) - across0 >= (kKAlong ? Shape::kLines : Shape::kLength);
    across = static_cast<int>(max(int64_t{0}, min(left, int64_t{kKAlong ? Shape::kLines : kChunk})));
  }

  // Chunk 0 of this thread in the tile, and elements from one line to the next in the operand.
  __device__ __forceinline__ int line() const { return thread / kPerLine; }
  __device__ __forceinline__ int along() const { return thread % kPerLine * kChunk; }
  __device__ __forceinline__ int64_t line_stride() const {
    return Shape::kMajor == Major::kRow ? x.row_stride : x.col_stride;
  }
  // Elements of chunk i inside the matrix when the tile holds k valid steps; the others are zero.
  __device__ __forceinline__ int valid(int i, int k) const {
    if constexpr (kKAlong) return i * kLinesApart < across ? min(max(k - along(), 0), kChunk) : 0;
    return line() + i * kLinesApart < k ? across : 0;
  }
  __device__ __forceinline__ bool exists(int i) const { return kEven || line() + i * kLinesApart < Shape::kLines; }
  __device__ __forceinline__ int64_t from(int i) const { return offset + i * kLinesApart * line_stride(); }
  __device__ __forceinline__ int at(int i) const { return (line() + i * kLinesApart) * Shape::kLd + along(); }

  // On to the next tile along k.
  __device__ __forceinline__ void advance() { offset += kKAlong ? Shape::kLength : Shape::kLines * line_stride(); }

  // Fills `tile`, zero outside the matrix; the tile holds `k` valid steps. The caller closes with a barrier.
  __device__ __forceinline__ void fill(SharedSpan<T> tile, int k) const {
#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
      if (exists(i)) store_vec(tile, at(i), load_vec_or_zero<kChunk>(x.data, from(i), valid(i, k)));
    }
  }
  // The same by cp.async: the tile is full after the group's wait and a barrier.
  __device__ __forceinline__ void fill_async(SharedSpan<T> tile, int k) const {
    if (interior && k == kBK) {
#pragma unroll
      for (int i = 0; i < kChunks; ++i) {
        if (exists(i)) cp_async_16(tile, at(i), x.data, from(i));
      }
    } else {
#pragma unroll
      for (int i = 0; i < kChunks; ++i) {
        if (exists(i)) cp_async_16(tile, at(i), x.data, from(i), valid(i, k));
      }
    }
  }
  // The same by way of registers, so that the loads run while another tile is multiplied.
  struct Cache {
    Vec<T, kChunk> chunks[kChunks];
  };
  __device__ __forceinline__ void load(Cache& cache, int k) const {
#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
      if (exists(i)) cache.chunks[i] = load_vec_or_zero<kChunk>(x.data, from(i), valid(i, k));
    }
  }
  __device__ __forceinline__ void store(SharedSpan<T> tile, const Cache& cache) const {
#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
      if (exists(i)) store_vec(tile, at(i), cache.chunks[i]);
    }
  }
};

// A tile element by element, for operands that cannot be read 16 bytes at a time: neighbouring lanes read neighbouring
// elements of a line. Zero outside the matrix: a zero adds nothing to a dot product.
template <class Shape, int THREADS, class T>
__device__ __forceinline__ void fill_by_element(SharedSpan<T> tile, const Matrix<const T>& x, int64_t row0,
                                                int64_t col0, int thread) {
  const int64_t corner = row0 * x.row_stride + col0 * x.col_stride;
  const int rows = static_cast<int>(min(x.rows - row0, int64_t{Shape::kRows}));
  const int cols = static_cast<int>(min(x.cols - col0, int64_t{Shape::kCols}));
#pragma unroll 2
  for (int e = thread; e < Shape::kLines * Shape::kLength; e += THREADS) {
    const int line = e / Shape::kLength, along = e % Shape::kLength;
    const int row = Shape::kMajor == Major::kRow ? line : along, col = Shape::kMajor == Major::kRow ? along : line;
    tile[line * Shape::kLd + along] =
        load_or(x.data, corner + row * x.row_stride + col * x.col_stride, row < rows && col < cols, T(0.0f));
  }
}

// Global loads that the busiest of THREADS threads issues for the tiles of one operand along k, away from the matrix's
// edges: a chunk that an edge cuts is read by element, and counts as one here.
template <class Shape, int THREADS, class T>
int64_t tile_reads(const Operand& x, DType dtype, int64_t rows, int64_t cols, int64_t tiles) {
  const int per_load = reads_by_16_bytes(x, dtype, rows, cols) ? kVecLength<T> : 1;
  return tiles * ceil_div(Shape::kLines * Shape::kLength, int64_t{per_load} * THREADS);
}

}  // namespace tcgemm
