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
  return {global_operand<const T>(x, rows, cols), rows, cols, rows == 1 ? 0 : x.row_stride,
          cols == 1 ? 0 : x.col_stride, reads_by_16_bytes(x, dtype, rows, cols)};
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

// The part of an operand that fills one tile: what is the same for all threads.
template <class Shape, class T>
struct Window {
  int64_t offset;  // of the tile's first element in the operand
  int64_t line_stride, along_stride;
  int lines, along;  // of the tile's kLines and kLength, how many lie inside the matrix; at most 0 outside

  __device__ __forceinline__ Window(const Matrix<const T>& x, int64_t row0, int64_t col0) {
    constexpr bool kByRow = Shape::kMajor == Major::kRow;
    offset = row0 * x.row_stride + col0 * x.col_stride;
    line_stride = kByRow ? x.row_stride : x.col_stride;
    along_stride = kByRow ? x.col_stride : x.row_stride;
    const int64_t rows = x.rows - row0, cols = x.cols - col0;
    lines = static_cast<int>(kByRow ? (rows < Shape::kRows ? rows : Shape::kRows)
                                    : (cols < Shape::kCols ? cols : Shape::kCols));
    along = static_cast<int>(kByRow ? (cols < Shape::kCols ? cols : Shape::kCols)
                                    : (rows < Shape::kRows ? rows : Shape::kRows));
  }
};

// A tile as 16-byte chunks, dealt out to THREADS threads. Chunk i of a thread lies kLinesApart lines below chunk i - 1.
template <class Shape, int THREADS, class T>
struct Chunks {
  static constexpr int kLength = kVecLength<T>;
  static constexpr int kPerLine = Shape::kLength / kLength;
  static constexpr int kLinesApart = THREADS / kPerLine;
  static constexpr int kPerThread = (Shape::kLines + kLinesApart - 1) / kLinesApart;
  static_assert(Shape::kLength % kLength == 0 && THREADS % kPerLine == 0, "a thread's chunks must stay in one column");

  __device__ __forceinline__ static int line(int thread, int i) { return thread / kPerLine + i * kLinesApart; }
  __device__ __forceinline__ static int along(int thread) { return thread % kPerLine * kLength; }
  __device__ __forceinline__ static int at(int thread, int i) {
    return line(thread, i) * Shape::kLd + along(thread);
  }
  // Whether the tile has a chunk i for this thread: always, unless there are more threads than chunks.
  __device__ __forceinline__ static bool exists(int thread, int i) {
    return kPerThread * kLinesApart == Shape::kLines || line(thread, i) < Shape::kLines;
  }
  // Elements of the chunk inside the matrix; the others are zero.
  __device__ __forceinline__ static int valid(const Window<Shape, T>& window, int thread, int i) {
    const int left = window.along - along(thread);
    return line(thread, i) < window.lines ? min(max(left, 0), kLength) : 0;
  }
  __device__ __forceinline__ static int64_t offset(const Window<Shape, T>& window, int thread, int i) {
    return window.offset + line(thread, 0) * window.line_stride + along(thread) + i * kLinesApart * window.line_stride;
  }
};

// Element by element, for operands that cannot be read 16 bytes at a time: neighbouring lanes read neighbouring
// elements of a line. Zero outside the matrix: a zero adds nothing to a dot product.
template <class Shape, int THREADS, class T>
__device__ __forceinline__ void fill_by_element(SharedSpan<T> tile, const Matrix<const T>& x, int64_t row0,
                                                int64_t col0, int thread) {
  const Window<Shape, T> window(x, row0, col0);
#pragma unroll 2
  for (int e = thread; e < Shape::kLines * Shape::kLength; e += THREADS) {
    const int line = e / Shape::kLength, along = e % Shape::kLength;
    tile[line * Shape::kLd + along] =
        load_or(x.data, window.offset + line * window.line_stride + along * window.along_stride,
                line < window.lines && along < window.along, T(0.0f));
  }
}

// Fills a tile with x(row0.., col0..), zero outside the matrix. The caller closes with a barrier.
template <class Shape, int THREADS, class T>
__device__ __forceinline__ void fill_tile(SharedSpan<T> tile, const Matrix<const T>& x, int64_t row0, int64_t col0,
                                          int thread) {
  using Share = Chunks<Shape, THREADS, T>;
  if (!x.by_16_bytes) return fill_by_element<Shape, THREADS>(tile, x, row0, col0, thread);
  const Window<Shape, T> window(x, row0, col0);
#pragma unroll
  for (int i = 0; i < Share::kPerThread; ++i) {
    if (!Share::exists(thread, i)) break;
    store_vec(tile, Share::at(thread, i),
              load_vec_or_zero<Share::kLength>(x.data, Share::offset(window, thread, i),
                                               Share::valid(window, thread, i)));
  }
}

// The same by cp.async: the tile is full after the group's wait and a barrier.
template <class Shape, int THREADS, class T>
__device__ __forceinline__ void fill_tile_async(SharedSpan<T> tile, const Matrix<const T>& x, int64_t row0,
                                                int64_t col0, int thread) {
  using Share = Chunks<Shape, THREADS, T>;
  if (!x.by_16_bytes) return fill_by_element<Shape, THREADS>(tile, x, row0, col0, thread);
  const Window<Shape, T> window(x, row0, col0);
#pragma unroll
  for (int i = 0; i < Share::kPerThread; ++i) {
    if (!Share::exists(thread, i)) break;
    cp_async_16(tile, Share::at(thread, i), x.data, Share::offset(window, thread, i),
                Share::valid(window, thread, i));
  }
}

// One thread's share of a tile, held in registers between its load and its store, so that the loads of the next tile
// run while this one is multiplied.
template <class Shape, int THREADS, class T>
struct TileCache {
  using Share = Chunks<Shape, THREADS, T>;
  static_assert(Share::kPerThread * Share::kLinesApart == Shape::kLines, "every thread holds the same number of chunks");
  Vec<T, Share::kLength> chunks[Share::kPerThread];

  __device__ __forceinline__ void load(const Matrix<const T>& x, int64_t row0, int64_t col0, int thread) {
    const Window<Shape, T> window(x, row0, col0);
#pragma unroll
    for (int i = 0; i < Share::kPerThread; ++i) {
      const int valid = Share::valid(window, thread, i);
      if (x.by_16_bytes) {
        chunks[i] = load_vec_or_zero<Share::kLength>(x.data, Share::offset(window, thread, i), valid);
      } else {
        const int64_t offset = window.offset + Share::line(thread, i) * window.line_stride +
                               Share::along(thread) * window.along_stride;
#pragma unroll
        for (int e = 0; e < Share::kLength; ++e) {
          chunks[i].v[e] = load_or(x.data, offset + e * window.along_stride, e < valid, T(0.0f));
        }
      }
    }
  }

  __device__ __forceinline__ void store(SharedSpan<T> tile, int thread) const {
#pragma unroll
    for (int i = 0; i < Share::kPerThread; ++i) store_vec(tile, Share::at(thread, i), chunks[i]);
  }
};

// Global loads that the busiest of THREADS threads issues for the tiles of one operand along k.
template <class Shape, int THREADS, class T>
int64_t tile_reads(const Operand& x, DType dtype, int64_t rows, int64_t cols, int64_t tiles) {
  const int per_load = reads_by_16_bytes(x, dtype, rows, cols) ? kVecLength<T> : 1;
  return tiles * ceil_div(Shape::kLines * Shape::kLength, int64_t{per_load} * THREADS);
}

}  // namespace tcgemm
