// Every tile form of wgmma by itself, on a GPU of compute capability 9.0: whole numbers, so that results are compared
// bit for bit. Told of few SMs, the kernel starts few blocks, and each gets several tiles. Also what
// tests/sanitize.py --forms runs: the small problems of the rung itself reach few forms.
//
//   test_wgmma_forms [few] [FORM]     that form alone; few: FP16, A row-major, one reading of each layout, no long k
//   test_wgmma_forms names            the forms, one a line
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <string>
#include <vector>

#include "check.h"
#include "device/wgmma_plan.h"

namespace {

using namespace tcgemm;

struct Case {
  int64_t m, n, k;
  int sm_count;
  bool accumulate, c_by_col;
};

const Case kCases[] = {
    {128, 256, 64, 132, false, false},     // one k-block
    {1, 8, 8, 132, false, false},          // nearly all of the tile is zero fill
    {257, 261, 77, 132, false, false},     // C element by element
    {333, 444, 555, 132, false, true},     // C column-major
    {300, 520, 1280, 4, false, false},     // deferred stores: exactly as many k-blocks as they need
    {520, 1036, 1352, 5, false, false},    // several tiles a block, edges on both sides
    {640, 1290, 1352, 3, false, false},    // the same, C element by element
    {520, 1036, 72, 7, true, false},       // C += a b
    {300, 520, 8264, 3, false, false},     // one chain on 3 SMs, which have more than two tiles each
    {130, 200, 16500, 132, false, false},  // 17 chains, or pieces of k of 3 and more
    {257, 300, 1000, 132, true, false},    // the same with C += a b, in pieces of unequal length
    {130, 72, 2200, 132, false, false},    // three chains, or two in each of two pieces
    {396, 404, 200, 7, true, true},        // C column-major, C += a b, 16 bytes at a time either way
    {130, 72, 0, 132, false, false}        // nothing to multiply: refused
};

bool ok(cudaError_t error, const char* what) {
  CHECK(error == cudaSuccess, "%s: %s", what, cudaGetErrorString(error));
  return error == cudaSuccess;
}

// Row-major on the host, from -4 to 4, and the product.
struct Numbers {
  std::vector<float> a, b, product;

  explicit Numbers(const Case& x) : a(x.m * x.k), b(x.k * x.n), product(x.m * x.n, x.accumulate ? 1.0f : 0.0f) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>((i * 7 + i / 13) % 9) - 4;
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>((i * 5 + i / 11) % 9) - 4;
    for (int64_t i = 0; i < x.m; ++i) {
      for (int64_t l = 0; l < x.k; ++l) {
        for (int64_t j = 0; j < x.n; ++j) product[i * x.n + j] += a[i * x.k + l] * b[l * x.n + j];
      }
    }
  }
};

template <class T>
T to(float x) {
  if constexpr (std::is_same_v<T, __half>) {
    return __float2half(x);
  } else {
    return __float2bfloat16(x);
  }
}

// Device memory with `rows` x `cols` in lines of a multiple of 8 elements; the rest is NaN.
template <class T>
struct Matrix {
  T* data = nullptr;
  Operand operand;

  Matrix(const std::vector<float>& x, int64_t rows, int64_t cols, bool by_col) {
    const int64_t line = ((by_col ? rows : cols) + 7) / 8 * 8, lines = by_col ? cols : rows;
    std::vector<T> host(line * lines, to<T>(__builtin_nanf("")));
    operand = by_col ? Operand{nullptr, 1, line} : Operand{nullptr, line, 1};
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < cols; ++j) {
        host[i * operand.row_stride + j * operand.col_stride] = to<T>(x[i * cols + j]);
      }
    }
    ok(cudaMalloc(&data, host.size() * sizeof(T)), "cudaMalloc");
    ok(cudaMemcpy(data, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice), "copy an operand");
    operand.data = data;
  }
  ~Matrix() { cudaFree(data); }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;
};

// C between two guards.
struct Result {
  static constexpr int64_t kGuard = 256;
  static constexpr float kPoison = 1.0f;  // what an accumulating case adds to
  std::vector<float> host;
  float* memory = nullptr;

  explicit Result(int64_t size) : host(size + 2 * kGuard, kPoison) {
    ok(cudaMalloc(&memory, host.size() * sizeof(float)), "cudaMalloc");
    ok(cudaMemcpy(memory, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice), "fill c");
  }
  ~Result() { cudaFree(memory); }
  Result(const Result&) = delete;
  Result& operator=(const Result&) = delete;

  bool fetch() {
    return ok(cudaMemcpy(host.data(), memory, host.size() * sizeof(float), cudaMemcpyDeviceToHost), "run");
  }
  bool guards_hold() const {
    for (int64_t i = 0; i < kGuard; ++i) {
      if (host[i] != kPoison || host[host.size() - 1 - i] != kPoison) return false;
    }
    return true;
  }
};

// Whether the form took the problem.
template <class T>
bool run(int form, int splits, const Case& x, const Numbers& numbers, bool a_by_col, bool b_by_col, bool other_way) {
  const Matrix<T> a(numbers.a, x.m, x.k, a_by_col), b(numbers.b, x.k, x.n, b_by_col);
  Result c(x.m * x.n);
  GemmProblem p;
  p.dtype = std::is_same_v<T, __half> ? DType::kFloat16 : DType::kBFloat16;
  p.m = x.m, p.n = x.n, p.k = x.k;
  p.a = a.operand;
  p.b = b.operand;
  p.c = x.c_by_col ? Operand{c.memory + Result::kGuard, 1, x.m} : Operand{c.memory + Result::kGuard, x.n, 1};
  p.accumulate = x.accumulate;
  if (other_way) p = transposed(p);
  const int error = launch_wgmma_form(p, {90, 90, x.sm_count}, form, splits);
  const bool can = x.k > 0 && wgmma_form_can(kWgmmaForms[form], wgmma_task(p, x.sm_count));
  CHECK(can || error == cudaErrorInvalidValue, "%s was to refuse", kWgmmaForms[form].name);
  if (!can) return false;  // chains, few k-blocks or none
  if (!ok(static_cast<cudaError_t>(error), kWgmmaForms[form].name) || !c.fetch()) return false;
  int64_t wrong = 0;
  for (int64_t i = 0; i < x.m; ++i) {
    for (int64_t j = 0; j < x.n; ++j) {
      const float got = c.host[Result::kGuard + (x.c_by_col ? j * x.m + i : i * x.n + j)];
      wrong += got != numbers.product[i * x.n + j];
    }
  }
  CHECK(wrong == 0 && c.guards_hold(), "%s in %d%s %s %s %c%c %lldx%lldx%lld: %lld wrong, guards %s",
        kWgmmaForms[form].name, splits, other_way ? ", transposed," : "", x.accumulate ? "+=" : "=",
        p.dtype == DType::kFloat16 ? "fp16" : "bf16", a_by_col ? 'T' : 'N', b_by_col ? 'T' : 'N',
        static_cast<long long>(x.m), static_cast<long long>(x.n), static_cast<long long>(x.k),
        static_cast<long long>(wrong), c.guards_hold() ? "hold" : "overwritten");
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  bool few = false;
  std::string only;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "few") {
      few = true;
    } else {
      only = argv[i];
    }
  }
  if (only == "names") {
    for (const WgmmaForm& form : kWgmmaForms) std::printf("%s\n", form.name);
    return 0;
  }
  const auto asked = [&](const WgmmaForm& form) { return only.empty() || only == form.name; };
  if (std::none_of(std::begin(kWgmmaForms), std::end(kWgmmaForms), asked)) {
    std::printf("usage: test_wgmma_forms [few] [FORM | names], and %s is no form\n", only.c_str());
    return 2;
  }
  int count = 0, capability = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess && count > 0) {
    cudaDeviceGetAttribute(&capability, cudaDevAttrComputeCapabilityMajor, 0);
  }
  if (capability != 9) {
    std::printf("skipped: no GPU of compute capability 9.0\n");
    return 77;
  }
  std::vector<int> ran(kWgmmaFormCount);
  for (const Case& x : kCases) {
    if (few && x.k > 4000) continue;
    const Numbers numbers(x);
    for (int form = 0; form < kWgmmaFormCount; ++form) {
      for (const int splits : {1, 2, 3, 4, 8}) {
        if (!asked(kWgmmaForms[form]) || !kWgmmaForms[form].splits_into(splits)) continue;
        if (few && splits == 4) continue;
        for (const bool a_by_col : {false, true}) {
          if (few && a_by_col) continue;
          for (const bool b_by_col : {false, true}) {
            for (const bool other_way : {false, true}) {
              if (few && other_way != b_by_col) continue;
              ran[form] += run<__half>(form, splits, x, numbers, a_by_col, b_by_col, other_way);
            }
            if (!few) ran[form] += run<__nv_bfloat16>(form, splits, x, numbers, a_by_col, b_by_col, b_by_col);
          }
        }
      }
    }
  }
  for (int form = 0; form < kWgmmaFormCount; ++form) {
    CHECK(!asked(kWgmmaForms[form]) || ran[form] >= (few ? 2 : 16), "%s ran %d times", kWgmmaForms[form].name,
          ran[form]);
  }
  return test::finish();
}
