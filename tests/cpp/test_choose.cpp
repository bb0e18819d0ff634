// choose() on devices that need not exist.
#include <string>

#include "check.h"
#include "gemm.h"

namespace {

using namespace tcgemm;

constexpr DeviceInfo kTuring{75, 75, 40}, kAmpere{80, 80, 108}, kHopper{90, 90, 132}, kTuringCodeOnHopper{90, 75, 132};

GemmProblem packed(DType dtype, int64_t m, int64_t n, int64_t k) {
  GemmProblem p;
  p.dtype = dtype;
  p.m = m, p.n = n, p.k = k;
  p.a = {reinterpret_cast<void*>(256), k, 1};
  p.b = {reinterpret_cast<void*>(256), 1, k};
  p.c = {reinterpret_cast<void*>(256), n, 1};
  return p;
}

std::string chosen(const GemmProblem& p, const DeviceInfo& device, const char* algo = nullptr) {
  const Choice choice = choose(p, device, algo);
  return choice.kernel == nullptr ? "none: " + choice.reason : choice.kernel->name;
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

void auto_takes_any_size_on_any_device() {
  for (const DeviceInfo& device : {kTuring, kAmpere, kHopper, kTuringCodeOnHopper}) {
    for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
      for (const int64_t size : {1, 7, 16, 617, 4096}) {
        const Choice choice = choose(packed(dtype, size, size + 1, size + 2), device);
        CHECK(choice.kernel != nullptr, "size %lld: %s", static_cast<long long>(size), choice.reason.c_str());
      }
    }
  }
}

void a_name_is_obeyed() {
  const GemmProblem p = packed(DType::kFloat16, 611, 613, 617);
  for (const char* algo : {"simt_regtile_vec4", "wmma_global", "wmma_staged", "wmma_staged_32x32", "wmma_staged_64x64",
                           "wmma_pipelined"}) {
    CHECK(chosen(p, kHopper, algo) == algo, "%s gave %s", algo, chosen(p, kHopper, algo).c_str());
  }
}

void an_unknown_name_lists_the_known() {
  const std::string reason = chosen(packed(DType::kFloat16, 16, 16, 16), kHopper, "no_such_rung");
  CHECK(has(reason, "no_such_rung") && has(reason, "wmma_staged") && has(reason, "simt_regtile_vec4"), "%s",
        reason.c_str());
}

void turing_code_has_no_bf16_tensor_cores() {
  const GemmProblem p = packed(DType::kBFloat16, 64, 64, 64);
  for (const DeviceInfo& device : {kTuring, kTuringCodeOnHopper}) {
    CHECK(chosen(p, device) == "simt_regtile_vec4", "%s", chosen(p, device).c_str());
    CHECK(has(chosen(p, device, "wmma_staged"), "8.0"), "%s", chosen(p, device, "wmma_staged").c_str());
  }
  CHECK(chosen(p, kAmpere) != "simt_regtile_vec4", "%s", chosen(p, kAmpere).c_str());
}

void float32_stays_off_the_tensor_cores() {
  const GemmProblem p = packed(DType::kFloat32, 256, 256, 256);
  CHECK(chosen(p, kHopper) == "simt_regtile_vec4", "%s", chosen(p, kHopper).c_str());
  CHECK(has(chosen(p, kHopper, "wmma_staged"), "none: "), "%s", chosen(p, kHopper, "wmma_staged").c_str());
}

void a_field_that_no_kernel_honours_is_refused() {
  GemmProblem p = packed(DType::kFloat16, 64, 64, 64);
  p.precision = Precision::kFloat32;
  CHECK(choose(p, kHopper, "wmma_staged").kernel == nullptr, "precision was ignored");
  p = packed(DType::kFloat16, 64, 64, 64);
  const float bias = 1.0f;
  p.bias = &bias;
  CHECK(choose(p, kHopper, "wmma_staged").kernel == nullptr, "bias was ignored");
}

void the_same_question_has_the_same_answer() {
  const GemmProblem p = packed(DType::kFloat16, 1000, 999, 998);
  CHECK(choose(p, kHopper).kernel == choose(p, kHopper).kernel, "choose depends on more than its arguments");
}

void every_row_states_its_reads_and_tile() {
  int count = 0;
  const Kernel* table = kernels(&count);
  CHECK(count >= 6, "%d rows", count);
  for (int i = 0; i < count; ++i) {
    const DType dtype = (table[i].dtypes & 1u) != 0 ? DType::kFloat16 : DType::kFloat32;
    CHECK(table[i].tile > 0, "%s", table[i].name);
    CHECK(table[i].entry->launch != nullptr && table[i].entry->global_reads != nullptr, "%s", table[i].name);
    CHECK(table[i].entry->global_reads(packed(dtype, 4096, 4096, 4096)) > 0, "%s", table[i].name);
    CHECK(find_kernel(table[i].name) == &table[i], "%s", table[i].name);
  }
}

void reads_of_the_staged_tile_at_4096() {
  // 128x16 and 16x128 halves by 256 threads, 16 bytes a load: one of A and one of B in each of 256 steps.
  const Kernel* staged = find_kernel("wmma_staged");
  CHECK(staged->entry->global_reads(packed(DType::kFloat16, 4096, 4096, 4096)) == 512, "%lld",
        static_cast<long long>(staged->entry->global_reads(packed(DType::kFloat16, 4096, 4096, 4096))));
  CHECK(2 * 4096 / staged->tile + 16 == 528, "T = %d", staged->tile);
}

}  // namespace

int main() {
  auto_takes_any_size_on_any_device();
  a_name_is_obeyed();
  an_unknown_name_lists_the_known();
  turing_code_has_no_bf16_tensor_cores();
  float32_stays_off_the_tensor_cores();
  a_field_that_no_kernel_honours_is_refused();
  the_same_question_has_the_same_answer();
  every_row_states_its_reads_and_tile();
  reads_of_the_staged_tile_at_4096();
  return test::finish();
}
