// ldmatrix and mma.sync, with the lane layouts of the PTX documentation (device/ldmatrix.cuh and device/mma.cuh
// state them).
#include <cmath>
#include <cstring>

#include "convert.h"
#include "fragments.h"
#include "session.h"
#include "traffic.h"

namespace tcgemm::emulator {
namespace {

struct MatrixArgs {
  unsigned* registers;
  View tile;
  int64_t at;
  bool transposed;
  Site site;
};

struct ProductArgs {
  float* acc;
  const unsigned *a, *b;
  int k;
  Element element;
  Site site;
};

// The same variable in every lane: the same place of their stacks.
template <class T>
void check_same_registers(Warp& warp, const T* first, const T* other, int lane, const Site& site) {
  const auto depth = [&](const T* x, int of) {
    return static_cast<const char*>(warp.lanes[of]->stack_top) - reinterpret_cast<const char*>(x);
  };
  if (depth(first, 0) == depth(other, lane)) return;
  abandon(Fault::kDivergentWarp, site, "lanes 0 and " + std::to_string(lane) + " name different registers");
}

// The 8 elements of one matrix row, or NaN after a report.
void read_row(const MatrixArgs& args, int lane, uint16_t* row) {
  Region& region = *args.tile.region;
  const int64_t first = args.tile.first + args.at * 2;
  if (first < args.tile.first || first + 16 > args.tile.end) {
    session->report(Fault::kSharedOutOfBounds, args.site, &region, args.at, [&] {
      return "ldmatrix: lane " + std::to_string(lane) + "'s row at element " + std::to_string(args.at) +
             " reaches beyond the shared view";
    });
    std::memset(row, 0xff, 16);
    return;
  }
  if ((region.offset + first) % 16 != 0) {
    session->report(Fault::kMisaligned, args.site, &region, args.at, [&] {
      return "ldmatrix: lane " + std::to_string(lane) + "'s row is " + std::to_string((region.offset + first) % 16) +
             " bytes past a multiple of 16";
    });
  }
  // Any lane gets elements of any row, so the whole warp reads.
  if (!check_read(region, static_cast<int>(first), 16, true, args.site)) {
    std::memset(row, 0xff, 16);
  } else {
    std::memcpy(row, region.bytes + first, 16);
  }
}

void count_rows(Warp& warp, const void* const* all) {
  const MatrixArgs& args = *static_cast<const MatrixArgs*>(all[0]);
  const Region& region = *args.tile.region;
  uint64_t addresses[kWarpSize];
  int lanes[kWarpSize];
  std::string index;
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const MatrixArgs& each = *static_cast<const MatrixArgs*>(all[lane]);
    addresses[lane] = static_cast<uint64_t>(region.offset + each.tile.first + each.at * 2);
    lanes[lane] = lane;
    index += (lane == 0 ? "" : ",") + std::to_string(each.tile.first / 2 + each.at);
  }
  if (session->options().counts) {
    const uint64_t key = Record::make(Access::kLoadMatrix, args.site, 0, 16, 0, true, 0).key;
    warp.block->counts.add_access(warp.index, warp.interval, key, region.space, addresses, lanes, kWarpSize, 16);
  }
  if (!warp.block->traced) return;
  const int array = session->trace.number(args.registers, warp.lanes[0]->stack_top);
  const int wavefronts = count_wavefronts(addresses, lanes, kWarpSize, 16, false);
  session->trace.add_event(warp.index, Access::kLoadMatrix, args.site,
                           ",\"array\":" + std::to_string(array) +
                               ",\"space\":" + std::to_string(region.space - kFirstSharedSpace) + ",\"index\":[" +
                               index + "],\"transposed\":" + (args.transposed ? "true" : "false") +
                               ",\"wavefronts\":" + std::to_string(wavefronts));
}

void load_all(Warp& warp, const void* const* all) {
  const MatrixArgs& args = *static_cast<const MatrixArgs*>(all[0]);
  uint16_t rows[kWarpSize][8];  // lane 8g + r gives row r of matrix g
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const MatrixArgs& each = *static_cast<const MatrixArgs*>(all[lane]);
    check_same_registers(warp, args.registers, each.registers, lane, args.site);
    read_row(each, lane, rows[lane]);
  }
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const MatrixArgs& each = *static_cast<const MatrixArgs*>(all[lane]);
    const int major = lane / 4, minor = lane % 4 * 2;
    for (int g = 0; g < 4; ++g) {
      const unsigned low = args.transposed ? rows[8 * g + minor][major] : rows[8 * g + major][minor];
      const unsigned high = args.transposed ? rows[8 * g + minor + 1][major] : rows[8 * g + major][minor + 1];
      each.registers[g] = low | high << 16;
    }
  }
  count_rows(warp, all);
}

void unpack(unsigned pair, Element element, float* to) {
  const auto low = static_cast<uint16_t>(pair & 0xffff), high = static_cast<uint16_t>(pair >> 16);
  to[0] = element == Element::kHalf ? from_half(low) : from_bfloat16(low);
  to[1] = element == Element::kHalf ? from_half(high) : from_bfloat16(high);
}

void multiply_all(Warp& warp, const void* const* all) {
  const ProductArgs& args = *static_cast<const ProductArgs*>(all[0]);
  float a[16][16], b[16][8], c[16][8];
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const ProductArgs& each = *static_cast<const ProductArgs*>(all[lane]);
    check_same_registers(warp, args.acc, each.acc, lane, args.site);
    const int r = lane / 4, q = lane % 4 * 2;
    for (int part = 0; part < args.k / 8; ++part) {
      unpack(each.a[2 * part], args.element, &a[r][q + 8 * part]);
      unpack(each.a[2 * part + 1], args.element, &a[r + 8][q + 8 * part]);
      float pair[2];
      unpack(each.b[part], args.element, pair);
      b[q + 8 * part][r] = pair[0];
      b[q + 8 * part + 1][r] = pair[1];
    }
    std::memcpy(&c[r][q], each.acc, 8);
    std::memcpy(&c[r + 8][q], each.acc + 2, 8);
  }
  for (int row = 0; row < 16; ++row) {
    __m256 sum = _mm256_loadu_ps(c[row]);
    for (int k = 0; k < args.k; ++k) sum = _mm256_fmadd_ps(_mm256_set1_ps(a[row][k]), _mm256_loadu_ps(b[k]), sum);
    _mm256_storeu_ps(c[row], sum);
  }
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const ProductArgs& each = *static_cast<const ProductArgs*>(all[lane]);
    const int r = lane / 4, q = lane % 4 * 2;
    std::memcpy(each.acc, &c[r][q], 8);
    std::memcpy(each.acc + 2, &c[r + 8][q], 8);
  }
  ++(args.k == 8 ? warp.block->counts.mma_k8 : warp.block->counts.mma_k16);
  if (!warp.block->traced) return;
  const int acc = session->trace.number(args.acc, warp.lanes[0]->stack_top);
  session->trace.add_event(warp.index, Access::kMma, args.site,
                           ",\"acc\":" + std::to_string(acc) + ",\"k\":" + std::to_string(args.k));
}

}  // namespace

void load_matrices(unsigned* registers, const View& tile, int64_t at, bool transposed, Site site) {
  const MatrixArgs args{registers, tile, at, transposed, site};
  warp_operation(&args, load_all, site);
}

void multiply_registers(float* acc, const unsigned* a, const unsigned* b, int k, Element element, Site site) {
  const ProductArgs args{acc, a, b, k, element, site};
  warp_operation(&args, multiply_all, site);
}

void no_such_instruction(Site site) {
  abandon(Fault::kLaunch, site, "this kernel uses an instruction that the architecture lacks");
}

}  // namespace tcgemm::emulator
