// The choice among the tile forms of wgmma: the best that was measured on an H200, and sense with other numbers of SMs.
#include <string>

#include "check.h"
#include "device/divisor.h"
#include "device/wgmma_plan.h"

namespace {

using namespace tcgemm;

constexpr WgmmaTask task(int64_t m, int64_t n, int64_t k, int sm_count = 132, bool b_along_k = true,
                         bool may_defer = true, bool straddles = false) {
  return {m, n, k, sm_count, may_defer, may_defer, b_along_k, straddles, straddles};
}

// The form, and "/2" where k is split in two.
std::string form_of(const WgmmaTask& t) {
  const WgmmaPlan plan = wgmma_plan(t);
  return kWgmmaForms[plan.form].name + (plan.splits > 1 ? "/" + std::to_string(plan.splits) : std::string());
}

struct Pin {
  int64_t m, n, k;
  const char *along_n, *along_k;  // the form for each way that B may lie
};

void check_pins(const Pin& pin, int sm_count) {
  for (const bool b_along_k : {false, true}) {
    const std::string got = form_of(task(pin.m, pin.n, pin.k, sm_count, b_along_k));
    CHECK(got == (b_along_k ? pin.along_k : pin.along_n), "%lldx%lldx%lld on %d SMs: %s", static_cast<long long>(pin.m),
          static_cast<long long>(pin.n), static_cast<long long>(pin.k), sm_count, got.c_str());
  }
}

// docs/log.md has the times.
void the_fastest_that_was_measured_on_132_sms() {
  for (const Pin& pin : {Pin{2048, 2048, 2048, "ping_128x128", "ping_128x128"},
                         {3072, 3072, 3072, "ping_128x192", "ping_128x192"},
                         {4096, 4096, 4096, "defer_128x256", "defer_128x256"},
                         {8192, 8192, 8192, "ping_128x192", "ping_128x192"},
                         {8192, 28672, 8192, "ping_128x192", "ping_128x192"},
                         {4096, 4096, 14336, "defer_128x256", "defer_128x256"},
                         {16384, 4096, 4096, "ping_128x128", "ping_128x128"},
                         {256, 128256, 4096, "defer_128x256", "defer_128x256"},
                         {1024, 1024, 1024, "coop_128x64", "coop_128x64"},
                         {256, 1536, 1536, "ping_64x64", "ping_64x64"},
                         {320, 3072, 10304, "ping_64x128", "ping_64x128"},
                         {32, 128256, 4096, "ping_64x256", "ping_64x256"},
                         {1536, 1536, 1536, "coop_128x192", "coop_128x144"},
                         {512, 4096, 4096, "coop_128x128", "coop_128x128"},
                         {4096, 4096, 512, "ping_128x128", "ping_128x128"}}) {
    check_pins(pin, 132);
  }
}

void other_numbers_of_sms() {
  // 4096^3 fills 4 rounds of 132 SMs with tiles of 128x256; 114 would need 5, as many clocks as 10 of 128x128, not 9.
  check_pins({4096, 4096, 4096, "ping_128x128", "ping_128x128"}, 114);
  check_pins({1024, 1024, 1024, "coop_128x128", "coop_128x128"}, 114);  // 128 tiles of 128x64 would be two rounds
  check_pins({1024, 1024, 1024, "coop_128x192", "coop_128x192"}, 60);   // 48 tiles: one round
  check_pins({8192, 8192, 8192, "ping_128x192", "ping_128x192"}, 60);
}

void a_form_gets_only_what_it_can() {
  CHECK(form_of(task(4096, 4096, 4096, 132, true, false)) == "ping_128x128", "deferred though C forbids it");
  for (const int64_t size : {1, 8, 100, 617, 1536, 4096, 20000}) {
    for (const int64_t k : {1, 64, 1279, 1280, 8192, 8193, 16384, 70000}) {
      for (const bool along_k : {false, true}) {
        for (const bool may_defer : {false, true}) {
          const WgmmaTask t = task(size, size + 1, k, 132, along_k, may_defer);
          const WgmmaPlan plan = wgmma_plan(t);
          const WgmmaForm& form = kWgmmaForms[plan.form];
          CHECK(!form.deferred() || (may_defer && k >= kMinDeferredK), "%s", form.name);
          CHECK(form.splits_k() || (plan.chains == 1 && plan.splits == 1), "%s", form.name);
          CHECK(form.bn % 64 == 0 || along_k, "%s", form.name);
          CHECK(plan.tiles_m * form.rows_per_cluster() >= size && (plan.tiles_m - 1) * form.rows_per_cluster() < size,
                "%s", form.name);
          CHECK(plan.tiles_n * form.bn >= size + 1 && (plan.tiles_n - 1) * form.bn < size + 1, "%s", form.name);
          CHECK(plan.group >= 1 && plan.group <= plan.tiles_m, "%s: group %d", form.name, plan.group);
        }
      }
    }
  }
}

void chains_are_no_longer_than_those_of_cublas() {
  const auto longest = [](int64_t m, int64_t n, int64_t k) { return wgmma_longest_chain(task(m, n, k)); };
  CHECK(longest(16, 256, 2048) == 2048 && longest(16, 256, 7168) == 1024, "16 tiles of 128x128 or fewer");
  CHECK(longest(16, 4096, 4096) == 2048 && longest(1024, 512, 14336) == 2048, "33 tiles or fewer");
  CHECK(longest(1024, 1024, 7168) == 7168 && longest(1024, 1024, 65536) == 7168, "66 tiles or fewer");
  CHECK(longest(1536, 1024, 16383) >= 16383 && longest(1536, 1024, 16384) == 4096, "more");
  int split = 0;
  while (!kWgmmaForms[split].splits_k()) ++split;
  const WgmmaPlan deep = wgmma_plan_form(split, task(4096, 4096, 20000));
  CHECK(deep.chains == 5, "%lld chains", static_cast<long long>(deep.chains));
  CHECK(wgmma_plan_form(split, task(256, 256, 8192), 4).chains == 2, "a piece of 2048 is cut in two");
}

void k_is_split_where_tiles_are_few() {
  for (const Pin& pin : {Pin{256, 256, 11520, "split_128x64/8", "split_128x64/8"},
                         {640, 960, 12160, "split_128x192/4", "split_128x192/4"},
                         {320, 880, 14336, "split_128x128/4", "split_128x128/4"}}) {
    check_pins(pin, 132);
  }
  for (const int sms : {132, 114, 60}) {
    for (const int64_t m : {1, 64, 300, 1000}) {
      for (const int64_t k : {512, 4096, 20000}) {
        const WgmmaPlan plan = wgmma_plan(task(m, 256, k, sms));
        CHECK(plan.splits == 1 || plan.tiles_m * plan.tiles_n * plan.splits <= sms, "%d pieces of %lld tiles",
              plan.splits, static_cast<long long>(plan.tiles_m * plan.tiles_n));
        CHECK(plan.chains * plan.splits * wgmma_longest_chain(task(m, 256, k, sms)) >= k, "a chain is too long");
      }
    }
  }
}

void pairs_share_b_where_lines_straddle() {
  CHECK(form_of(task(12352, 1064, 10040, 132, true, true, true)) == "ping_128x192_pair", "%s",
        form_of(task(12352, 1064, 10040, 132, true, true, true)).c_str());
  CHECK(form_of(task(8736, 1200, 4728, 132, true, true, true)) == "defer_128x256_pair", "%s",
        form_of(task(8736, 1200, 4728, 132, true, true, true)).c_str());
}

void a_task_is_read_from_the_problem() {
  GemmProblem p;
  p.m = 4096, p.n = 4104, p.k = 4096;
  void* const aligned = reinterpret_cast<void*>(1024);
  p.a = {aligned, 4096, 1};
  p.b = {aligned, 4104, 1};  // rows of 8208 bytes
  p.c = {aligned, 4104, 1};
  const WgmmaTask t = wgmma_task(p, 132);
  CHECK(!t.a_straddles && t.b_straddles && !t.b_along_k && t.by_16_bytes && t.may_defer, "row-major");
  p.accumulate = true;
  CHECK(wgmma_task(p, 132).by_16_bytes && !wgmma_task(p, 132).may_defer, "C += a b");
  p.accumulate = false;
  p.c.data = reinterpret_cast<void*>(1032);
  CHECK(!wgmma_task(p, 132).by_16_bytes, "C starts 8 bytes past a multiple of 16");
  p.m = 1, p.a = {aligned, 4097, 1};
  CHECK(!wgmma_task(p, 132).a_straddles, "the stride of a single row is never used");
  p.m = 4096, p.a = {aligned, 4096, 1};
  p.c = {aligned, 1, 4096};
  const WgmmaTask by_col = wgmma_task(with_row_major_result(p), 132);
  CHECK(by_col.m == 4104 && by_col.n == 4096 && by_col.a_straddles && by_col.b_along_k, "C column-major");
}

void a_group_keeps_a_wave_square() {
  const WgmmaPlan plan = wgmma_plan(task(16384, 16384, 4096));
  const WgmmaForm& form = kWgmmaForms[plan.form];
  const double high = plan.group * form.bm, wide = 132.0 / plan.group * form.bn;
  CHECK(high / wide < 1.5 && wide / high < 1.5, "%s: a wave of %.0f x %.0f", form.name, high, wide);
}

void division_is_a_multiplication() {
  constexpr int kMost = 2147483647;
  for (const int d : {1, 2, 3, 5, 7, 12, 641, 1000, 65536, 65537, 1 << 30, (1 << 30) + 1, kMost}) {
    const Divisor divisor = make_divisor(d);
    for (const int x : {0, 1, d - 1, d, 2 * (d / 2) + 1, 12345, 99999999, kMost - 1, kMost}) {
      CHECK(divisor.quotient(x) == x / d, "%d / %d = %d", x, d, divisor.quotient(x));
    }
    for (int64_t x = d; x <= kMost; x += d * int64_t{99991}) {
      const int at = static_cast<int>(x);
      CHECK(divisor.quotient(at) == at / d && divisor.quotient(at - 1) == (at - 1) / d, "%d / %d", at, d);
    }
  }
}

}  // namespace

int main() {
  the_fastest_that_was_measured_on_132_sms();
  other_numbers_of_sms();
  a_form_gets_only_what_it_can();
  chains_are_no_longer_than_those_of_cublas();
  k_is_split_where_tiles_are_few();
  pairs_share_b_where_lines_straddle();
  a_task_is_read_from_the_problem();
  a_group_keeps_a_wave_square();
  division_is_a_multiplication();
  return test::finish();
}
