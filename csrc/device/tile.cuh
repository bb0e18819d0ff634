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

template <class T>
Matrix<const T> input_matrix(const Operand& x, DType dtype, int64_t rows, int64_t cols) {
  return {global_operand<const T>(x, rows, cols), rows, cols, x.row_stride, x.col_stride,
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

// One thread's share of the loads of a tile in 16-byte chunks: chunk number `chunk` of the tile whose first
// element is x(row0, col0).
template <class Shape, class T>
struct Chunk {
  static constexpr int kLength = kVecLength<T>;
  static constexpr int kPerLine = Shape::kLength / kLength;
  static constexpr int kCount = Shape::kLines * kPerLine;

  int at;          // in the tile
  int64_t offset;  // in the operand
  int valid;       // elements inside the matrix, the others are zero

  __device__ __forceinline__ Chunk(const Matrix<const T>& x, int64_t row0, int64_t col0, int chunk) {
    const int line = chunk / kPerLine, along = chunk % kPerLine * kLength;
    at = line * Shape::kLd + along;
    constexpr bool kByRow = Shape::kMajor == Major::kRow;
    const int64_t row = row0 + (kByRow ? line : along), col = col0 + (kByRow ? along : line);
    offset = row * x.row_stride + col * x.col_stride;
    const int64_t left = kByRow ? x.cols - col : x.rows - row;
    const bool inside = kByRow ? row < x.rows : col < x.cols;
    valid = !inside || left <= 0 ? 0 : left < kLength ? static_cast<int>(left) : kLength;
  }
};

// Element by element, for operands that cannot be read 16 bytes at a time: neighbouring lanes read neighbouring
// elements of a line. Zero outside the matrix: a zero adds nothing to a dot product.
template <class Shape, int THREADS, class T>
__device__ __forceinline__ void fill_by_element(SharedSpan<T> tile, const Matrix<const T>& x, int64_t row0,
                                                int64_t col0, int thread) {
  constexpr int kCount = Shape::kLines * Shape::kLength;
#pragma unroll 8
  for (int e = thread; e < kCount; e += THREADS) {
    const int line = e / Shape::kLength, along = e % Shape::kLength;
    const int64_t row = row0 + (Shape::kMajor == Major::kRow ? line : along);
    const int64_t col = col0 + (Shape::kMajor == Major::kRow ? along : line);
    tile[line * Shape::kLd + along] =
        load_or(x.data, row * x.row_stride + col * x.col_stride, row < x.rows && col < x.cols, T(0.0f));
  }
}

// Fills a tile with x(row0.., col0..), zero outside the matrix. The caller closes with a barrier.
template <class Shape, int THREADS, class T>
__device__ __forceinline__ void fill_tile(SharedSpan<T> tile, const Matrix<const T>& x, int64_t row0, int64_t col0,
                                          int thread) {
  if (!x.by_16_bytes) return fill_by_element<Shape, THREADS>(tile, x, row0, col0, thread);
  using Piece = Chunk<Shape, T>;
#pragma unroll
  for (int chunk = thread; chunk < Piece::kCount; chunk += THREADS) {
    const Piece piece(x, row0, col0, chunk);
    store_vec(tile, piece.at, load_vec_or_zero<Piece::kLength>(x.data, piece.offset, piece.valid));
  }
}

// The same by cp.async: the tile is full after the group's wait and a barrier.
template <class Shape, int THREADS, class T>
__device__ __forceinline__ void fill_tile_async(SharedSpan<T> tile, const Matrix<const T>& x, int64_t row0,
                                                int64_t col0, int thread) {
  if (!x.by_16_bytes) return fill_by_element<Shape, THREADS>(tile, x, row0, col0, thread);
  using Piece = Chunk<Shape, T>;
#pragma unroll
  for (int chunk = thread; chunk < Piece::kCount; chunk += THREADS) {
    const Piece piece(x, row0, col0, chunk);
    cp_async_16(tile, piece.at, x.data, piece.offset, piece.valid);
  }
}

// Global loads that the busiest of THREADS threads issues for the tiles of one operand along k.
template <class Shape, int THREADS, class T>
int64_t tile_reads(const Operand& x, DType dtype, int64_t rows, int64_t cols, int64_t tiles) {
  const int per_load = reads_by_16_bytes(x, dtype, rows, cols) ? kVecLength<T> : 1;
  return tiles * ceil_div(Shape::kLines * Shape::kLength, int64_t{per_load} * THREADS);
}

}  // namespace tcgemm
