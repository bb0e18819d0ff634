// The choice among the tile forms of wgmma: the best that was measured on an H200, and sense with other numbers of SMs.
#include <string>

#include "check.h"
#include "device/wgmma_forms.h"

namespace {

using namespace tcgemm;

constexpr WgmmaTask task(int64_t m, int64_t n, int64_t k, int sm_count = 132, bool b_along_k = true,
                         bool may_defer = true) {
  return {m, n, k, sm_count, may_defer, b_along_k};
}

std::string form_of(const WgmmaTask& t) { return kWgmmaForms[wgmma_plan(t).form].name; }

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
                         {256, 128256, 4096, "ping_128x128", "ping_128x128"},
                         {1024, 1024, 1024, "coop_128x64", "coop_128x64"},
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
          CHECK(!form.deferred() || (may_defer && k >= kMinDeferredK && plan.chains == 1), "%s", form.name);
          CHECK(form.bn % 64 == 0 || along_k, "%s", form.name);
          CHECK(plan.tiles_m * form.bm >= size && (plan.tiles_m - 1) * form.bm < size, "%s", form.name);
          CHECK(plan.tiles_n * form.bn >= size + 1 && (plan.tiles_n - 1) * form.bn < size + 1, "%s", form.name);
          CHECK(plan.group >= 1 && plan.group <= plan.tiles_m, "%s: group %d", form.name, plan.group);
        }
      }
    }
  }
}

void chains_are_cut_where_cublas_cuts_them_or_before() {
  CHECK(wgmma_chains(1024, 1024, 8192) == 1, "up to 8192 cuBLAS keeps one");
  CHECK(wgmma_chains(1024, 1024, 8193) == 2 && wgmma_chains(2048, 2048, 14336) == 2, "a small C");
  CHECK(wgmma_chains(4096, 4096, 14336) == 1 && wgmma_chains(2048, 2049, 14336) == 1, "cuBLAS keeps one for a large C");
  for (const int64_t k : {16384, 50000, 65536}) {
    const int64_t chains = wgmma_chains(4096, 4096, k);
    CHECK(chains * 3072 >= k && (chains - 1) * 3072 < k, "k = %lld: %lld chains", static_cast<long long>(k),
          static_cast<long long>(chains));
  }
}

void a_group_keeps_a_wave_square() {
  const WgmmaPlan plan = wgmma_plan(task(16384, 16384, 4096));
  const WgmmaForm& form = kWgmmaForms[plan.form];
  const double high = plan.group * form.bm, wide = 132.0 / plan.group * form.bn;
  CHECK(high / wide < 1.5 && wide / high < 1.5, "%s: a wave of %.0f x %.0f", form.name, high, wide);
}

}  // namespace

int main() {
  the_fastest_that_was_measured_on_132_sms();
  other_numbers_of_sms();
  a_form_gets_only_what_it_can();
  chains_are_cut_where_cublas_cuts_them_or_before();
  a_group_keeps_a_wave_square();
  return test::finish();
}
