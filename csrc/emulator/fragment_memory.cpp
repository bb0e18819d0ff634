// WMMA: fragments of 16x16, loaded and stored by a whole warp.
#include <cstring>

#include "convert.h"
#include "fragments.h"
#include "session.h"

namespace tcgemm::emulator {
namespace {

constexpr int kDim = 16;

struct LoadArgs {
  FragmentData* frag;
  View tile;
  Extent* a;
  int64_t i, ld;
  bool by_row;
  Element element;
  Site site;
};

struct StoreArgs {
  const FragmentData* acc;
  View tile;
  Extent* c;
  int64_t i, ld;
  Site site;
};

// The same index and ld in every lane, and a base and lines that WMMA can address.
template <class Args>
void check_address(Warp& warp, const void* const* all, uint64_t address, int element_bytes) {
  const Args& first = *static_cast<const Args*>(all[0]);
  for (int lane = 1; lane < warp.size; ++lane) {
    const Args& other = *static_cast<const Args*>(all[lane]);
    if (other.i != first.i || other.ld != first.ld) {
      abandon(Fault::kDivergentWarp, first.site,
              "lanes 0 and " + std::to_string(lane) + " give different addresses for one fragment");
    }
  }
  if (address % 32 != 0 || first.ld * element_bytes % 16 != 0) {
    session->report(Fault::kMisaligned, first.site, first.tile.region, first.i, [&] {
      return "a fragment at " + std::to_string(address % 32) + " bytes past a multiple of 32 with lines of " +
             std::to_string(first.ld * element_bytes) + " bytes; WMMA wants 0, and a multiple of 16";
    });
  }
}

void convert_line(const std::byte* from, Element element, float* to) {
  for (int half = 0; half < kDim; half += 8) {
    const std::byte* x = from + half * 2;
    _mm256_storeu_ps(to + half, element == Element::kHalf ? from_half_8(x) : from_bfloat16_8(x));
  }
}

void put_line(FragmentData& frag, int line, bool by_row, const float* x) {
  if (by_row) {
    std::memcpy(frag.v + line * kDim, x, kDim * sizeof(float));
  } else {
    for (int e = 0; e < kDim; ++e) frag.v[e * kDim + line] = x[e];
  }
}

void trace_memory(Warp& warp, Access access, const Site& site, const FragmentData* frag, const std::string& space,
                  int64_t i, int64_t ld, bool by_row) {
  session->trace.add_event(warp.index, access, site,
                           ",\"fragment\":" + fragment_number(warp, frag) + ",\"space\":" + space +
                               ",\"index\":" + std::to_string(i) + ",\"ld\":" + std::to_string(ld) +
                               ",\"by_row\":" + (by_row ? "true" : "false"));
}

void load_shared(Warp& warp, const void* const* all) {
  const LoadArgs& args = *static_cast<const LoadArgs*>(all[0]);
  for (int lane = 1; lane < warp.size; ++lane) {
    check_same_fragment(warp, args.frag, static_cast<const LoadArgs*>(all[lane])->frag, lane, args.site);
  }
  Region& region = *args.tile.region;
  const int64_t first = args.tile.first + args.i * 2;
  check_address<LoadArgs>(warp, all, static_cast<uint64_t>(region.offset + first), 2);
  for (int line = 0; line < kDim; ++line) {
    const int64_t at = first + line * args.ld * 2;
    float x[kDim];
    if (at < args.tile.first || at + 2 * kDim > args.tile.end) {
      session->report(Fault::kSharedOutOfBounds, args.site, &region, (at - args.tile.first) / 2, [&] {
        return "line " + std::to_string(line) + " of a fragment at element " + std::to_string(args.i) +
               " reaches beyond the shared view";
      });
      std::memset(x, 0xff, sizeof(x));
    } else {
      check_read(region, static_cast<int>(at), 2 * kDim, true, args.site);
      convert_line(region.bytes + at, args.element, x);
    }
    put_line(*args.frag, line, args.by_row, x);
  }
  args.frag->set = true;
  count_ldmatrix(warp, args.site, region.space, static_cast<uint64_t>(region.offset + first), args.ld * 2);
  if (warp.block->traced) {
    trace_memory(warp, Access::kFragmentLoad, args.site, args.frag, std::to_string(region.space - kFirstSharedSpace),
                 first / 2, args.ld, args.by_row);
  }
}

void load_global(Warp& warp, const void* const* all) {
  const LoadArgs& args = *static_cast<const LoadArgs*>(all[0]);
  for (int lane = 1; lane < warp.size; ++lane) {
    check_same_fragment(warp, args.frag, static_cast<const LoadArgs*>(all[lane])->frag, lane, args.site);
  }
  Extent& a = *args.a;
  const auto first = static_cast<uint64_t>(reinterpret_cast<intptr_t>(a.base) + args.i * 2);
  check_address<LoadArgs>(warp, all, first, 2);
  for (int line = 0; line < kDim; ++line) {
    const int64_t i = args.i + line * args.ld;
    float x[kDim];
    if (a.contains(i, kDim)) {
      convert_line(a.base + i * 2, args.element, x);
    } else {
      session->report(Fault::kOutOfBounds, args.site, &a, i, [&] {
        return "line " + std::to_string(line) + " of a fragment reads 16 elements from " + a.place(i);
      });
      std::memset(x, 0xff, sizeof(x));
    }
    put_line(*args.frag, line, args.by_row, x);
  }
  args.frag->set = true;
  for (int lane = 0; lane < warp.size; ++lane) warp.lanes[lane]->global_reads += 4;
  count_by_quads(warp, Access::kFragmentLoad, args.site, a.space, first, args.ld * 2, 4, 16);
  if (warp.block->traced) {
    trace_memory(warp, Access::kFragmentLoad, args.site, args.frag, quoted(a.name), args.i, args.ld, args.by_row);
  }
}

void store_shared(Warp& warp, const void* const* all) {
  const StoreArgs& args = *static_cast<const StoreArgs*>(all[0]);
  Region& region = *args.tile.region;
  const int64_t first = args.tile.first + args.i * 4;
  check_address<StoreArgs>(warp, all, static_cast<uint64_t>(region.offset + first), 4);
  check_set(*args.acc, args.site);
  for (int row = 0; row < kDim; ++row) {
    const int64_t at = first + row * args.ld * 4;
    if (at < args.tile.first || at + 4 * kDim > args.tile.end) {
      session->report(Fault::kSharedOutOfBounds, args.site, &region, (at - args.tile.first) / 4, [&] {
        return "row " + std::to_string(row) + " of a fragment stored at element " + std::to_string(args.i) +
               " reaches beyond the shared view";
      });
      continue;
    }
    check_write(region, static_cast<int>(at), 4 * kDim, true, false, args.site);
    std::memcpy(region.bytes + at, args.acc->v + row * kDim, 4 * kDim);
  }
  count_by_quads(warp, Access::kFragmentStore, args.site, region.space, static_cast<uint64_t>(region.offset + first),
                 args.ld * 4, 8, 32);
  if (warp.block->traced) {
    trace_memory(warp, Access::kFragmentStore, args.site, args.acc, std::to_string(region.space - kFirstSharedSpace),
                 first / 4, args.ld, true);
  }
}

void store_global(Warp& warp, const void* const* all) {
  const StoreArgs& args = *static_cast<const StoreArgs*>(all[0]);
  Extent& c = *args.c;
  const auto first = static_cast<uint64_t>(reinterpret_cast<intptr_t>(c.base) + args.i * 4);
  check_address<StoreArgs>(warp, all, first, 4);
  check_set(*args.acc, args.site);
  for (int row = 0; row < kDim; ++row) {
    for (int col = 0; col < kDim; ++col) {
      const int64_t i = args.i + row * args.ld + col;
      if (!c.output || !c.contains(i)) {
        session->report(Fault::kOutOfBounds, args.site, &c, i, [&] { return "a fragment store writes " + c.place(i); });
        continue;
      }
      std::memcpy(c.base + i * 4, args.acc->v + row * kDim + col, 4);
      if (c.count_write(i) == 0) continue;
      session->report(Fault::kWrittenTwice, args.site, &c, i,
                      [&] { return "writes " + c.place(i) + " a second time"; });
    }
  }
  count_by_quads(warp, Access::kFragmentStore, args.site, c.space, first, args.ld * 4, 8, 32);
  if (warp.block->traced) {
    trace_memory(warp, Access::kFragmentStore, args.site, args.acc, quoted(c.name), args.i, args.ld, true);
  }
}

}  // namespace

void fragment_load_shared(FragmentData& frag, const View& tile, int64_t i, int64_t ld, bool by_row, Element element,
                          Site site) {
  const LoadArgs args{&frag, tile, nullptr, i, ld, by_row, element, site};
  warp_operation(&args, load_shared, site);
}

void fragment_load_global(FragmentData& frag, Extent* a, int64_t i, int64_t ld, bool by_row, Element element,
                          Site site) {
  const LoadArgs args{&frag, {}, a, i, ld, by_row, element, site};
  warp_operation(&args, load_global, site);
}

void fragment_store_shared(const View& tile, int64_t i, const FragmentData& acc, int64_t ld, Site site) {
  const StoreArgs args{&acc, tile, nullptr, i, ld, site};
  warp_operation(&args, store_shared, site);
}

void fragment_store_global(Extent* c, int64_t i, const FragmentData& acc, int64_t ld, Site site) {
  const StoreArgs args{&acc, {}, c, i, ld, site};
  warp_operation(&args, store_global, site);
}

}  // namespace tcgemm::emulator
