// A C++ program that loads libtcgemm.so and libtorch_cpu.so, and no Python: the ops are all there.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <cstring>
#include <string>
#include <vector>

#include "check.h"

extern "C" const char* tcgemm_noted_error();

namespace {

using torch::stable::Tensor;
template <class T>
StableIValue slot(const T& x) {
  return torch::stable::detail::from(x);
}

Tensor matrix(int64_t rows, int64_t cols, int32_t dtype, double value, bool by_columns = false) {
  const int64_t sizes[] = {rows, cols}, strides[] = {by_columns ? 1 : cols, by_columns ? rows : 1};
  AtenTensorHandle made = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, sizes, strides, dtype, aoti_torch_device_type_cpu(), -1, &made));
  return torch::stable::fill_(Tensor(made), value);
}

StableIValue algo_slot(const char* algo) {
  if (algo == nullptr) return slot(std::nullopt);
  return slot(std::optional<std::string>(algo));
}

// tcgemm::mm. False: it failed.
bool mm(const Tensor& a, const Tensor& b, const char* algo, Tensor& c) {
  StableIValue stack[] = {slot(a), slot(b), algo_slot(algo), slot(false)};
  if (torch_call_dispatcher("tcgemm::mm", "", stack, TORCH_ABI_VERSION) != AOTI_TORCH_SUCCESS) return false;
  c = torch::stable::detail::to<Tensor>(stack[0]);
  return true;
}

void check_all_equal(const Tensor& x, float wanted) {
  const auto* data = static_cast<const float*>(x.const_data_ptr());
  for (int64_t i = 0; i < x.numel(); ++i) CHECK(data[i] == wanted, "element %ld is %g", long(i), double(data[i]));
}

}  // namespace

int main() {
  const Tensor a = matrix(5, 7, aoti_torch_dtype_float16(), 1.5), b = matrix(7, 3, aoti_torch_dtype_float16(), 2);
  CHECK(aoti_torch_grad_mode_is_enabled(), "grad mode is on by default, so these calls take the longer way");
  for (const char* algo : {static_cast<const char*>(nullptr), "wmma_staged"}) {
    Tensor c;
    CHECK(mm(a, b, algo, c), "%s", tcgemm_noted_error());
    CHECK(c.size(0) == 5 && c.size(1) == 3, "%ld x %ld", long(c.size(0)), long(c.size(1)));
    CHECK(c.scalar_type() == torch::headeronly::ScalarType::Float, "the result is FP32");
    check_all_equal(c, 21);
  }

  const Tensor out = matrix(5, 3, aoti_torch_dtype_float32(), -1, true);
  StableIValue stack[] = {slot(a), slot(b), slot(out), algo_slot(nullptr)};
  CHECK(torch_call_dispatcher("tcgemm::mm_out", "", stack, TORCH_ABI_VERSION) == AOTI_TORCH_SUCCESS, "%s",
        tcgemm_noted_error());
  check_all_equal(out, 21);

  Tensor none;
  CHECK(!mm(a, a, nullptr, none), "5x7 by 5x7 has no product");
  CHECK(std::strstr(tcgemm_noted_error(), "tcgemm::mm: ") && std::strstr(tcgemm_noted_error(), "(5x7 and 5x7)"), "%s",
        tcgemm_noted_error());
  CHECK(!mm(a, b, "no_such", none), "no kernel has that name");
  CHECK(std::strstr(tcgemm_noted_error(), "no_such"), "%s", tcgemm_noted_error());
  return test::finish();
}
