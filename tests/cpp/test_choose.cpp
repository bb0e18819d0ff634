// choose() on devices that need not exist.
#include <string>

#include "check.h"
#include "cost_model.h"
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
  p.bias = reinterpret_cast<const float*>(256);
  CHECK(choose(p, kHopper, "wmma_staged").kernel == nullptr, "bias was ignored");
}

// On devices without wgmma, so that the pins hold whether or not that rung is built.
void the_number_of_sms_decides_between_tiles() {
  const auto pin = [](int sms, int64_t m, int64_t n, int64_t k, const char* algo) {
    const std::string got = chosen(packed(DType::kFloat16, m, n, k), {80, 80, sms});
    CHECK(got == algo, "%lldx%lldx%lld on %d SMs: %s, not %s", static_cast<long long>(m), static_cast<long long>(n),
          static_cast<long long>(k), sms, got.c_str(), algo);
  };
  for (const int sms : {132, 114, 60}) {
    pin(sms, 4096, 4096, 4096, "mma_sync_64x64");
    pin(sms, 8192, 8192, 8192, "mma_sync_64x64");
    pin(sms, 512, 512, 4096, "mma_sync_small");  // 8 large tiles would leave most SMs idle
    pin(sms, 16, 256, 7168, "mma_sync_small");
    pin(sms, 1024, 1024, 1024, "mma_sync_small");
  }
  pin(132, 2048, 2048, 2048, "mma_sync_64x64");  // 128 tiles: one round
  pin(114, 2048, 2048, 2048, "mma_sync_small");  // two, of which the second is all but empty
  pin(60, 2048, 2048, 2048, "mma_sync_64x64");   // three, well filled
}

void wgmma_comes_first_where_it_is() {
  if (find_kernel("wgmma") == nullptr) return;
  for (const int sms : {132, 114, 60}) {
    for (const int64_t size : {1024, 2048, 3072, 4096, 8192}) {
      const std::string got = chosen(packed(DType::kBFloat16, size, size, size), {90, 90, sms});
      CHECK(got == "wgmma", "%lld^3 on %d SMs: %s", static_cast<long long>(size), sms, got.c_str());
    }
    GemmProblem odd = packed(DType::kFloat16, 4096, 4096, 4096);
    odd.a.row_stride = 4097;
    CHECK(chosen(odd, {90, 90, sms}) == "wmma_pipelined", "%s", chosen(odd, {90, 90, sms}).c_str());
  }
}

void operands_that_are_not_aligned_take_another_path() {
  for (const DeviceInfo& device : {kAmpere, kHopper}) {
    GemmProblem p = packed(DType::kFloat16, 4096, 4096, 4096);
    p.a.row_stride = 4097;  // B's loads stay 16 bytes wide
    CHECK(chosen(p, device) == "wmma_pipelined", "%s", chosen(p, device).c_str());
    p.b.col_stride = 4097;
    CHECK(chosen(p, device) == "mma_sync", "%s", chosen(p, device).c_str());
  }
}

// A row's bits must not change with m, its place or its alignment: all the forms that are left add up alike.
void batch_invariance_keeps_to_forms_of_one_order() {
  for (const DeviceInfo& device : {kTuring, kAmpere, kHopper, kTuringCodeOnHopper}) {
    for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
      const bool tensor_cores = device.code_arch >= (dtype == DType::kBFloat16 ? 80 : 75);
      for (int64_t m = 1; m <= 16384; m *= 2) {
        for (const int pad : {0, 1}) {
          GemmProblem p = packed(dtype, m, 4096, 4096);
          p.a.row_stride += pad;
          p.batch_invariant = true;
          const std::string got = chosen(p, device);
          CHECK(tensor_cores ? got.rfind("mma_sync", 0) == 0 : got == "simt_regtile_vec4", "m = %lld on %d: %s",
                static_cast<long long>(m), device.capability, got.c_str());
        }
      }
    }
  }
}

void more_sms_or_less_work_never_cost_more() {
  CHECK(has(chosen(packed(DType::kFloat16, 64, 64, 64), {90, 90, 0}), "0 SMs"), "a device without SMs is refused");
  for (const Candidate& form : kCandidates) {
    for (const int64_t size : {128, 611, 4096}) {
      const GemmProblem p = packed(DType::kFloat16, size, size, size);
      CHECK(clocks(form, p, 132) <= clocks(form, p, 60), "%s at %lld", form.algo, static_cast<long long>(size));
      CHECK(clocks(form, packed(DType::kFloat16, size, size, size / 2), 132) <= clocks(form, p, 132), "%s", form.algo);
      GemmProblem odd_c = p;
      odd_c.c.data = reinterpret_cast<void*>(260);
      CHECK(clocks(form, odd_c, 132) >= clocks(form, p, 132), "%s: a slower store path cost less", form.algo);
    }
  }
}

void an_exception_holds_in_its_range_alone() {
  const Exception table[] = {{90, Path::kBy16Bytes, {1, 64}, {128, 128}, {0, 9999}, "wmma_staged", "40 us against 50"}};
  const auto found = [&](int64_t m, int64_t n, int capability) {
    return exception_for(packed(DType::kFloat16, m, n, 64), capability, table) != nullptr;
  };
  CHECK(found(1, 128, 90) && found(64, 128, 90), "its ends are part of a range");
  CHECK(!found(65, 128, 90) && !found(64, 136, 90) && !found(64, 128, 80), "it reached further than it should");
  GemmProblem odd = packed(DType::kFloat16, 64, 128, 64);
  odd.a.row_stride = 65;
  CHECK(exception_for(odd, 90, table) == nullptr, "measured by 16 bytes, used by element");
}

void the_reason_in_full_names_what_was_weighed() {
  const Choice choice = choose(packed(DType::kFloat16, 4096, 4096, 4096), kAmpere, nullptr, Reasons::kInFull);
  for (const char* part : {"108 SMs", "mma_sync_64x64 256x128: ", "wmma_pipelined 128x128: "}) {
    CHECK(has(choice.reason, part), "no '%s' in: %s", part, choice.reason.c_str());
  }
  CHECK(choice.kernel == choose(packed(DType::kFloat16, 4096, 4096, 4096), kAmpere).kernel, "telling changed it");
}

void the_same_question_has_the_same_answer() {
  const GemmProblem p = packed(DType::kFloat16, 1000, 999, 998);
  CHECK(choose(p, kHopper).kernel == choose(p, kHopper).kernel, "choose depends on more than its arguments");
}

void every_row_states_its_reads_and_tile() {
  int count = 0;
  const Kernel* table = kernels(&count);
  int built_rows = 0;
  for (int i = 0; i < count; ++i) {
    const DType dtype = (table[i].dtypes & 1u) != 0 ? DType::kFloat16 : DType::kFloat32;
    CHECK(table[i].tile > 0, "%s", table[i].name);
    CHECK(table[i].entry->launch != nullptr && table[i].entry->global_reads != nullptr, "%s", table[i].name);
    const GemmProblem p = packed(dtype, 4096, 4096, 4096);
    const bool built = why_not(table[i], p, {table[i].min_arch, table[i].min_arch, 132}).empty();
    built_rows += built;
    CHECK(!built || table[i].entry->global_reads(p) > 0, "%s", table[i].name);
    CHECK(find_kernel(table[i].name) == &table[i], "%s", table[i].name);
  }
  CHECK(built_rows >= 6, "%d rows that a device can run", built_rows);
}

void reads_of_the_staged_tile_at_4096() {
  // 128x16 and 16x128 halves by 256 threads, 16 bytes a load: one of A and one of B in each of 256 steps.
  const Kernel* staged = find_kernel("wmma_staged");
  CHECK(staged->entry->global_reads(packed(DType::kFloat16, 4096, 4096, 4096)) == 512, "%lld",
        static_cast<long long>(staged->entry->global_reads(packed(DType::kFloat16, 4096, 4096, 4096))));
  CHECK(2 * 4096 / staged->tile + 16 == 528, "T = %d", staged->tile);
}

// Where code for 9.0a was not built, the row says that instead.
void wgmma_takes_what_tma_can_address() {
  const auto refuses = [](GemmProblem p, const char* why) {
    const std::string got = chosen(p, kHopper, "wgmma");
    CHECK(has(got, TCGEMM_HAS_WGMMA ? why : "9.0a") && has(got, "; use algo=None"), "%s", got.c_str());
  };
  GemmProblem p = packed(DType::kBFloat16, 136, 24, 72);
  CHECK(!TCGEMM_HAS_WGMMA || chosen(p, kHopper, "wgmma") == "wgmma", "%s", chosen(p, kHopper, "wgmma").c_str());
  p.a.data = reinterpret_cast<void*>(258);
  refuses(p, "a (136x72, strides 72, 1) starts 2 bytes past a multiple of 16");
  p = packed(DType::kBFloat16, 136, 24, 72);
  p.b = {p.b.data, 1, 73};
  refuses(p, "b (72x24, strides 1, 73) has lines 146 bytes apart");
  p.b = {p.b.data, 2, 144};
  refuses(p, "b (72x24, strides 2, 144) has no contiguous dimension");
  p.b = {p.b.data, 1, 8};
  refuses(p, "has lines of 72 elements that overlap");
  p = packed(DType::kFloat16, 136, 24, 72);
  p.batch_invariant = true;
  CHECK(has(chosen(p, kHopper, "wgmma"), "none: "), "its chains depend on m and n: it is not batch-invariant");
  p.batch_invariant = false;
  CHECK(has(chosen(p, {100, 100, 148}, "wgmma"), "9.0") && has(chosen(p, kAmpere, "wgmma"), "8.0"), "not Hopper");
}

}  // namespace

int main() {
  auto_takes_any_size_on_any_device();
  a_name_is_obeyed();
  an_unknown_name_lists_the_known();
  turing_code_has_no_bf16_tensor_cores();
  float32_stays_off_the_tensor_cores();
  a_field_that_no_kernel_honours_is_refused();
  the_number_of_sms_decides_between_tiles();
  wgmma_comes_first_where_it_is();
  operands_that_are_not_aligned_take_another_path();
  batch_invariance_keeps_to_forms_of_one_order();
  more_sms_or_less_work_never_cost_more();
  an_exception_holds_in_its_range_alone();
  the_reason_in_full_names_what_was_weighed();
  the_same_question_has_the_same_answer();
  every_row_states_its_reads_and_tile();
  wgmma_takes_what_tma_can_address();
  reads_of_the_staged_tile_at_4096();
  return test::finish();
}
