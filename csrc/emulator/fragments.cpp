// WMMA: filled and multiplied by a whole warp, and the checks that all fragment operations share.
#include <immintrin.h>

#include "fragments.h"
#include "session.h"

namespace tcgemm::emulator {

void check_same_fragment(Warp& warp, const FragmentData* first, const FragmentData* other, int lane, const Site& site) {
  const auto depth = [&](const FragmentData* frag, int of) {
    return static_cast<const char*>(warp.lanes[of]->stack_top) - reinterpret_cast<const char*>(frag);
  };
  if (depth(first, 0) == depth(other, lane)) return;
  abandon(Fault::kDivergentWarp, site, "lanes 0 and " + std::to_string(lane) + " name different fragments");
}

void check_set(const FragmentData& frag, const Site& site) {
  if (frag.set) return;
  session->report(Fault::kUninitialisedFragment, site, nullptr, -1,
                  [] { return "uses a fragment that was neither filled nor loaded"; });
}

std::string fragment_number(Warp& warp, const FragmentData* frag) {
  return std::to_string(session->trace.number(frag, warp.lanes[0]->stack_top));
}

namespace {

constexpr int kDim = 16;

struct MultiplyArgs {
  FragmentData* acc;
  const FragmentData *a, *b;
  Site site;
};

struct FillArgs {
  FragmentData* acc;
  float x;
  Site site;
};

void multiply_all(Warp& warp, const void* const* all) {
  const MultiplyArgs& args = *static_cast<const MultiplyArgs*>(all[0]);
  for (int lane = 1; lane < warp.size; ++lane) {
    const MultiplyArgs& other = *static_cast<const MultiplyArgs*>(all[lane]);
    check_same_fragment(warp, args.acc, other.acc, lane, args.site);
    check_same_fragment(warp, args.a, other.a, lane, args.site);
    check_same_fragment(warp, args.b, other.b, lane, args.site);
  }
  check_set(*args.acc, args.site);
  check_set(*args.a, args.site);
  check_set(*args.b, args.site);
  for (int row = 0; row < kDim; ++row) {
    __m256 low = _mm256_load_ps(args.acc->v + row * kDim), high = _mm256_load_ps(args.acc->v + row * kDim + 8);
    for (int k = 0; k < kDim; ++k) {
      const __m256 a = _mm256_set1_ps(args.a->v[row * kDim + k]);
      low = _mm256_fmadd_ps(a, _mm256_load_ps(args.b->v + k * kDim), low);
      high = _mm256_fmadd_ps(a, _mm256_load_ps(args.b->v + k * kDim + 8), high);
    }
    _mm256_store_ps(args.acc->v + row * kDim, low);
    _mm256_store_ps(args.acc->v + row * kDim + 8, high);
  }
  ++warp.block->counts.multiplications;
  if (warp.block->traced) {
    session->trace.add_event(warp.index, Access::kMultiply, args.site,
                             ",\"acc\":" + fragment_number(warp, args.acc) + ",\"a\":" + fragment_number(warp, args.a) +
                                 ",\"b\":" + fragment_number(warp, args.b));
  }
}

void fill_all(Warp& warp, const void* const* all) {
  const FillArgs& args = *static_cast<const FillArgs*>(all[0]);
  for (int lane = 1; lane < warp.size; ++lane) {
    check_same_fragment(warp, args.acc, static_cast<const FillArgs*>(all[lane])->acc, lane, args.site);
  }
  for (float& v : args.acc->v) v = args.x;
  args.acc->set = true;
  if (warp.block->traced) {
    session->trace.add_event(warp.index, Access::kFragmentFill, args.site,
                             ",\"fragment\":" + fragment_number(warp, args.acc));
  }
}

}  // namespace

void fragment_fill(FragmentData& frag, float x, Site site) {
  const FillArgs args{&frag, x, site};
  warp_operation(&args, fill_all, site);
}

void fragment_multiply(FragmentData& acc, const FragmentData& a, const FragmentData& b, Site site) {
  const MultiplyArgs args{&acc, &a, &b, site};
  warp_operation(&args, multiply_all, site);
}

}  // namespace tcgemm::emulator
