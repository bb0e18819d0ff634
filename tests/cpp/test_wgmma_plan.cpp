// The choice among the tile forms of wgmma: the best that was measured on an H200, and sense with other numbers of SMs.
#include <string>

#include "check.h"
#include "device/divisor.h"
#include "device/wgmma_plan.h"

namespace {

using namespace tcgemm;

// `aligned`: bytes, of which the lines of both operands start at multiples.
constexpr WgmmaTask task(int64_t m, int64_t n, int64_t k, int sm_count = 132, bool b_along_k = true,
                         bool may_defer = true, int aligned = 128) {
  return {m, n, k, sm_count, {true, aligned}, {b_along_k, aligned}, false, may_defer, may_defer};
}

// The form, "/2" where k is split in two, and "^T" where the transposed problem gets it.
std::string form_of(const WgmmaTask& t) {
  const WgmmaPlan plan = wgmma_plan(t);
  return kWgmmaForms[plan.form].name + (plan.splits > 1 ? "/" + std::to_string(plan.splits) : std::string()) +
         (plan.transposed ? "^T" : "");
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

// The fastest that was measured, or within 3 % of it (docs/log.md).
void the_fastest_on_132_sms() {
  for (const Pin& pin : {Pin{2048, 2048, 2048, "ping_128x128", "ping_128x128"},
                         {3072, 3072, 3072, "ping_128x192", "ping_128x192"},
                         {4096, 4096, 4096, "defer_128x256", "defer_128x256"},
                         {8192, 8192, 8192, "ping_128x192", "ping_128x192"},
                         {8192, 28672, 8192, "ping_128x192", "ping_128x192"},
                         {4096, 4096, 14336, "defer_128x256", "defer_128x256"},
                         {16384, 4096, 4096, "ping_128x160^T", "ping_128x160^T"},
                         {256, 128256, 4096, "defer_128x256", "defer_128x256"},
                         {1024, 1024, 1024, "ping_64x128", "ping_64x128"},
                         {256, 1536, 1536, "ping_64x64^T", "ping_64x64^T"},
                         {320, 3072, 10304, "ping_64x128", "ping_64x128"},
                         {32, 128256, 4096, "ping_64x256", "ping_64x256"},
                         {1536, 1536, 1536, "coop_128x144^T", "coop_128x144"},
                         {512, 4096, 4096, "coop_128x128", "coop_128x128"},
                         {4096, 4096, 512, "ping_128x128", "ping_128x128"},
                         {12160, 352, 2984, "coop_192x192", "coop_192x192"}}) {
    check_pins(pin, 132);
  }
}

void other_numbers_of_sms() {
  // 4096^3 fills 4 rounds of 132 SMs with tiles of 128x256; 114 would need 5, as many clocks as 10 of 128x128, not 9.
  check_pins({4096, 4096, 4096, "ping_128x128", "ping_128x128"}, 114);
  check_pins({1024, 1024, 1024, "coop_128x80^T", "coop_128x80"}, 114);  // 128 tiles of 128x64 would be two rounds
  check_pins({1024, 1024, 1024, "coop_128x160", "coop_128x160"}, 60);   // 56 tiles: one round
  check_pins({8192, 8192, 8192, "ping_128x192", "ping_128x144"}, 60);
}

void a_form_gets_only_what_it_can() {
  CHECK(form_of(task(4096, 4096, 4096, 132, true, false)) == "ping_128x128", "deferred though C forbids it");
  for (const int64_t size : {1, 8, 100, 617, 1536, 4096, 20000}) {
    for (const int64_t k : {1, 64, 1279, 1280, 2049, 8192, 8193, 16384, 70000}) {
      for (const bool along_k : {false, true}) {
        for (const int sms : {132, 60, 4, 1}) {
          const bool may_defer = size % 8 != 0;
          const WgmmaPlan plan = wgmma_plan(task(size, size + 1, k, sms, along_k, may_defer));
          const WgmmaForm& form = kWgmmaForms[plan.form];
          CHECK(!form.deferred() || (may_defer && k >= kMinDeferredK && !plan.transposed), "%s", form.name);
          CHECK(form.splits_k() || (plan.chains == 1 && plan.splits == 1), "%s", form.name);
          CHECK(form.sharers() <= sms, "%s on %d SMs", form.name, sms);
          const int64_t m = plan.transposed ? size + 1 : size, n = plan.transposed ? size : size + 1;
          CHECK(plan.tiles_m * form.rows_per_cluster() >= m && (plan.tiles_m - 1) * form.rows_per_cluster() < m, "%s",
                form.name);
          CHECK(plan.tiles_n * form.cols_per_cluster() >= n && (plan.tiles_n - 1) * form.cols_per_cluster() < n, "%s",
                form.name);
          CHECK(plan.group >= 1 && plan.group <= plan.tiles_m, "%s: group %d", form.name, plan.group);
        }
      }
    }
  }
}

void chains_are_no_longer_than_those_of_cublas() {
  const auto longest = [](int64_t m, int64_t n, int64_t k) { return wgmma_longest_chain(task(m, n, k)); };
  // What cuBLAS's error on [0, 1] data gives away: sums of 4096 in pieces of 1450 with 1 to 8 tiles of 128x128, of 1990
  // with 16, whole with 24 and more, ... (docs/log.md).
  CHECK(longest(16, 256, 2048) == 2048 && longest(384, 512, 3072) == 1344, "14 tiles or fewer");
  CHECK(longest(512, 512, 3072) == 3072 && longest(512, 512, 4096) == 1984, "22 tiles or fewer");
  CHECK(longest(16, 4096, 6144) == 6144 && longest(1024, 512, 14336) == 3264, "33 tiles or fewer");
  CHECK(longest(768, 768, 8192) == 8192 && longest(768, 768, 8200) == 3712, "44 tiles or fewer");
  CHECK(longest(1024, 1024, 9216) == 9216 && longest(1024, 1024, 65536) == 3392, "66 tiles or fewer");
  CHECK(longest(1536, 1024, 14336) == 14336 && longest(1536, 1024, 16384) == 4096, "99 tiles or fewer");
  CHECK(longest(1280, 1280, 16384) == 16384 && longest(1280, 1280, 16385) == 4096, "more");
  int split = 0;
  while (!kWgmmaForms[split].splits_k()) ++split;
  const WgmmaPlan deep = wgmma_plan_form(split, task(4096, 4096, 20000));
  CHECK(deep.chains == 5, "%lld chains", static_cast<long long>(deep.chains));
  CHECK(wgmma_plan_form(split, task(256, 256, 8192), 4).chains == 2, "a piece of 2048 is cut in two");
}

void k_is_split_where_tiles_are_few() {
  for (const Pin& pin : {Pin{256, 256, 11520, "split_64x128/8", "split_64x128/8"},
                         {640, 960, 12160, "split_128x160/4", "split_128x160/4"},
                         {320, 880, 14336, "split_64x128/3", "split_64x128/3"}}) {
    check_pins(pin, 132);
  }
  const auto straddling = [](int64_t m, int64_t n, int64_t k, int aligned) {
    return form_of(task(m, n, k, 132, true, true, aligned));
  };
  // 0.97 of cublasGemmEx, and 1.03; without sharing 0.80 and 0.97.
  CHECK(straddling(448, 1744, 15824, 32) == "split_128x128_square/2", "%s", straddling(448, 1744, 15824, 32).c_str());
  CHECK(straddling(256, 2288, 7816, 16) == "split_128x192_pair/4", "%s", straddling(256, 2288, 7816, 16).c_str());
  for (const int sms : {132, 114, 60}) {
    for (const int64_t m : {1, 64, 300, 1000}) {
      for (const int64_t k : {512, 4096, 20000}) {
        const WgmmaPlan plan = wgmma_plan(task(m, 256, k, sms));
        const int64_t blocks = plan.tiles_m * plan.tiles_n * kWgmmaForms[plan.form].blocks_per_cluster(plan.splits);
        CHECK(plan.splits == 1 || blocks <= sms, "%lld blocks on %d SMs", static_cast<long long>(blocks), sms);
        CHECK(plan.chains * plan.splits * wgmma_longest_chain(task(m, 256, k, sms)) >= k, "a chain is too long");
      }
    }
  }
}

void blocks_share_tiles_where_lines_straddle() {
  const std::string square = form_of(task(12352, 1064, 10040, 132, true, true, 16));
  CHECK(square == "ping_128x192_square", "%s", square.c_str());
  const std::string quad = form_of(task(12696, 2912, 464, 132, true, true, 32));
  CHECK(quad == "ping_128x192_quad", "%s", quad.c_str());
}

void a_task_is_read_from_the_problem() {
  GemmProblem p;
  p.m = 4096, p.n = 4104, p.k = 4096;
  void* const aligned = reinterpret_cast<void*>(1024);
  p.a = {aligned, 4096, 1};
  p.b = {aligned, 4104, 1};  // rows of 8208 bytes
  p.c = {aligned, 4104, 1};
  const WgmmaTask t = wgmma_task(p, 132);
  CHECK(t.a.along_k && t.a.aligned == 128, "A in rows of 8192 bytes");
  CHECK(!t.b.along_k && t.b.aligned == 16, "B in rows of 8208");
  CHECK(t.c_by_16_bytes && !t.c_across && t.may_defer, "C in rows of 16416");
  CHECK(wgmma_task(transposed(p), 132) == transposed(t), "the transposed problem is the transposed task");
  CHECK(transposed(t).c_across && transposed(t).m == 4104 && !transposed(t).a.along_k, "and has B's lines for A's");
  p.b.row_stride = 4128;
  CHECK(wgmma_task(p, 132).b.aligned == 64, "8256 is 64 x 129");
  p.a.data = reinterpret_cast<void*>(1056);
  CHECK(wgmma_task(p, 132).a.aligned == 32, "A starts 32 bytes past a multiple of 128");
  p.a.data = aligned;
  p.accumulate = true;
  CHECK(wgmma_task(p, 132).c_by_16_bytes && !wgmma_task(p, 132).may_defer, "C += a b");
  p.accumulate = false;
  p.c.data = reinterpret_cast<void*>(1032);
  CHECK(!wgmma_task(p, 132).c_by_16_bytes, "C starts 8 bytes past a multiple of 16");
  p.m = 1, p.a = {aligned, 4097, 1};
  CHECK(wgmma_task(p, 132).a.aligned == 128, "the stride of a single row is never used");
  p.m = 4096, p.a = {aligned, 4096, 1};
  p.c = {aligned, 1, 4096};
  CHECK(wgmma_task(p, 132).c_across && wgmma_task(p, 132).c_by_16_bytes, "C column-major");
  p.c = {aligned, 8208, 2};
  CHECK(!wgmma_task(p, 132).c_by_16_bytes, "every other column of a C");
}

// What 16 blocks read together decides, so that few columns of tiles are walked row by row.
void a_group_is_for_the_blocks_of_a_gpc() {
  const auto group = [](const char* name, int64_t m, int64_t n, int splits = 1) {
    int form = 0;
    while (form + 1 < kWgmmaFormCount && name != std::string(kWgmmaForms[form].name)) ++form;
    CHECK(name == std::string(kWgmmaForms[form].name), "%s is no form", name);
    return wgmma_plan_form(form, task(m, n, 4096), splits).group;
  };
  CHECK(group("coop_128x144", 5120, 432) == 1, "3 columns of 144, 40 rows: %d", group("coop_128x144", 5120, 432));
  CHECK(group("ping_128x128", 512, 16384) == 4, "4 rows in all: %d", group("ping_128x128", 512, 16384));
  CHECK(group("ping_128x128", 2048, 2048) == 4, "two rounds: %d", group("ping_128x128", 2048, 2048));
  CHECK(group("ping_128x192", 8192, 8192) == 8, "many rounds: %d", group("ping_128x192", 8192, 8192));
  CHECK(group("ping_128x192_pair", 8192, 8192) == 4, "rows of pairs: %d", group("ping_128x192_pair", 8192, 8192));
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
  the_fastest_on_132_sms();
  other_numbers_of_sms();
  a_form_gets_only_what_it_can();
  chains_are_no_longer_than_those_of_cublas();
  k_is_split_where_tiles_are_few();
  blocks_share_tiles_where_lines_straddle();
  a_task_is_read_from_the_problem();
  a_group_is_for_the_blocks_of_a_gpc();
  division_is_a_multiplication();
  return test::finish();
}
