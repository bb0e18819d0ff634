// The CPU kernels. They serve machines without a GPU, tests, export and C++ programs: right first, in a fixed order
// of summation, so that a row's bits depend on that row, b and k alone. Any known algo is accepted and means these.
#include <algorithm>
#include <cstring>
#include <vector>

#include "../reference/half_bits.h"
#include "../reference/kahan.h"
#include "tensor.h"

namespace tcgemm {
namespace {

constexpr int64_t kRows = 4;  // of the block of c that stays in registers
constexpr int64_t kCols = 16;

float element(const Operand& x, DType dtype, int64_t row, int64_t col) {
  const int64_t at = row * x.row_stride + col * x.col_stride;
  if (dtype == DType::kFloat32) return static_cast<const float*>(x.data)[at];
  const uint16_t bits = static_cast<const uint16_t*>(x.data)[at];
  return dtype == DType::kFloat16 ? float_of_float16(bits) : float_of_bfloat16(bits);
}

// `lines` rows of a (or columns of b) side by side for every k, as floats; zeros past the last.
std::vector<float> pack(const Matrix2d& x, DType dtype, bool by_rows, int64_t lines) {
  const int64_t count = by_rows ? x.rows : x.cols, k = by_rows ? x.cols : x.rows;
  const int64_t panels = (count + lines - 1) / lines;
  std::vector<float> packed(panels * k * lines);
  torch::stable::parallel_for(0, panels, 1, [&](int64_t first, int64_t last) {
    for (int64_t panel = first; panel < last; ++panel) {
      for (int64_t line = 0; line < lines && panel * lines + line < count; ++line) {
        const int64_t at = panel * lines + line;
        float* to = packed.data() + panel * k * lines + line;
        for (int64_t kk = 0; kk < k; ++kk) {
          to[kk * lines] = by_rows ? element(x.operand, dtype, at, kk) : element(x.operand, dtype, kk, at);
        }
      }
    }
  });
  return packed;
}

constexpr int64_t kLine = 8;  // floats in an AVX register
typedef float Line __attribute__((vector_size(kLine * sizeof(float))));

// acc = a b for one block. The clones differ in vector length alone: nothing is contracted (CMakeLists.txt).
__attribute__((target_clones("avx2", "default"))) void multiply_block(const float* a, const float* b, int64_t k,
                                                                      float* acc) {
  Line sums[kRows][kCols / kLine] = {};
  for (int64_t kk = 0; kk < k; ++kk) {
    for (int64_t j = 0; j < kCols / kLine; ++j) {
      Line line;
      std::memcpy(&line, b + kk * kCols + j * kLine, sizeof line);  // packed lines start anywhere
      for (int64_t i = 0; i < kRows; ++i) sums[i][j] += a[kk * kRows + i] * line;
    }
  }
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t j = 0; j < kCols / kLine; ++j) {
      const Line line = sums[i][j];
      std::memcpy(acc + i * kCols + j * kLine, &line, sizeof line);
    }
  }
}

// c = a b. The operands are copied first, so c may overlap them.
void multiply(AtenTensorHandle tensor_a, AtenTensorHandle tensor_b, AtenTensorHandle tensor_c) {
  const DType dtype = dtype_of_operand(tensor_a);
  const Matrix2d a = matrix_of(tensor_a), b = matrix_of(tensor_b), c = matrix_of(tensor_c, true);
  const std::vector<float> packed_a = pack(a, dtype, true, kRows), packed_b = pack(b, dtype, false, kCols);
  float* result = static_cast<float*>(const_cast<void*>(c.operand.data));
  const int64_t k = a.cols, panels = (c.cols + kCols - 1) / kCols;
  torch::stable::parallel_for(0, (c.rows + kRows - 1) / kRows, 1, [&](int64_t first, int64_t last) {
    float acc[kRows * kCols];
    for (int64_t row = first * kRows; row < std::min(last * kRows, c.rows); row += kRows) {
      for (int64_t panel = 0; panel < panels; ++panel) {
        multiply_block(packed_a.data() + row * k, packed_b.data() + panel * k * kCols, k, acc);
        for (int64_t i = row; i < std::min(row + kRows, c.rows); ++i) {
          for (int64_t j = panel * kCols; j < std::min((panel + 1) * kCols, c.cols); ++j) {
            result[i * c.operand.row_stride + j * c.operand.col_stride] = acc[(i - row) * kCols + j - panel * kCols];
          }
        }
      }
    }
  });
}

template <const OpFacts& FACTS>
void product(StableIValue* stack, uint64_t, uint64_t) {
  Call call(FACTS, stack);
  call.check();
  const int64_t rows = matrix_of(call.a).rows, cols = matrix_of(call.b).cols;
  const torch::stable::Tensor c = new_matrix(call.a, rows, cols, aoti_torch_dtype_float32());
  multiply(call.a, call.b, c.get());
  give_back(stack, c);
}

template <const OpFacts& FACTS>
void product_out(StableIValue* stack, uint64_t, uint64_t) {
  Call call(FACTS, stack);
  call.check();
  multiply(call.a, call.b, call.out);
  bump_version(call.out);
}

void reference_mm(StableIValue* stack, uint64_t, uint64_t) {
  Call call(kReferenceMm, stack);
  call.check();
  const Matrix2d a = matrix_of(call.a), b = matrix_of(call.b);
  const torch::stable::Tensor c = new_matrix(call.a, a.rows, b.cols, aoti_torch_dtype_float64());
  const ReferenceProblem problem{dtype_of_operand(call.a),
                                 a.rows,
                                 b.cols,
                                 a.cols,
                                 a.operand,
                                 b.operand,
                                 static_cast<double*>(c.mutable_data_ptr())};
  torch::stable::parallel_for(0, a.rows, 1,
                              [&](int64_t first, int64_t last) { reference_rows_on_host(problem, first, last); });
  give_back(stack, c);
}

template <const OpFacts& FACTS>
void cuda_only(StableIValue* stack, uint64_t, uint64_t) {
  Call call(FACTS, stack);
  call.check();
  fail(std::string(FACTS.name) + ": cuBLAS multiplies CUDA tensors, got cpu; use tcgemm::mm, or move them");
}

}  // namespace
}  // namespace tcgemm

STABLE_TORCH_LIBRARY_IMPL(tcgemm, CPU, m) {
  using namespace tcgemm;
  implement(m, "mm", product<kMm>, product<kMmTwin>);
  implement(m, "mm_out", product_out<kMmOut>, product_out<kMmOutTwin>);
  implement(m, "sgemm", product<kSgemm>, product<kSgemmTwin>);
  implement(m, "sgemm_out", product_out<kSgemmOut>, product_out<kSgemmOutTwin>);
  implement(m, "reference_mm", reference_mm, reference_mm);
  implement(m, "cublas_mm", cuda_only<kCublasMm>, cuda_only<kCublasMm>);
  implement(m, "cublaslt_mm", cuda_only<kCublasltMm>, cuda_only<kCublasltMm>);
  m.impl("cublaslt_heuristics", cuda_only<kCublasltHeuristics>);
}
