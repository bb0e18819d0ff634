// The tile forms of the wgmma kernel. Plain C++; wgmma_plan.h says which one a problem gets.
#pragma once
#include <cstdint>

namespace tcgemm {

// When a tile of C is stored, and what a consuming warpgroup has of it.
enum class Store {
  kAtOnce,    // half its rows; the tensor cores idle meanwhile
  kDeferred,  // half its rows; most of it waits in registers for the next tile's main loop (wgmma_store.cuh)
  kPingPong,  // all of it; the other warpgroup multiplies its own tile meanwhile
};

// What the blocks of a cluster do for each other.
enum class Cluster {
  kNone,
  kShareB,  // two blocks, one below the other: each asks for half of their tile of B, and both get it
  kSplitK,  // up to 8 blocks on one tile: each multiplies a piece of k, then each adds up a slice of the columns
};

// A row of the table of forms. The kernel's template argument is the index of its row.
struct WgmmaForm {
  const char* name;
  int bm, bn;  // the tile of C
  Store store;
  Cluster cluster;
  int stages;                                  // k-blocks of 64 in shared memory
  int producer_registers, consumer_registers;  // 128 x (producer + 2 x consumer) <= 65536, multiples of 8

  constexpr bool ping_pong() const { return store == Store::kPingPong; }
  constexpr bool deferred() const { return store == Store::kDeferred; }
  constexpr bool shares_b() const { return cluster == Cluster::kShareB; }
  constexpr bool splits_k() const { return cluster == Cluster::kSplitK; }
  constexpr int rows_per_group() const { return ping_pong() ? bm : bm / 2; }
  constexpr int rows_per_cluster() const { return shares_b() ? 2 * bm : bm; }
  // Bytes of a k-block of 64 in shared memory; of B there are whole blocks of 64 columns.
  constexpr int a_bytes() const { return bm * 128; }
  constexpr int b_bytes() const { return (bn + 63) / 64 * 64 * 128; }
  // Whether so many blocks can share k: the sums that go out, all of them, and those that come in, a slice of 16
  // columns or a few from each of the others, take the place of the ring.
  constexpr bool splits_into(int splits) const {
    const int slices = bn / 16, slice_bytes = bm * 16 * 4;
    const int come_in = (splits - 1) * ((slices + splits - 1) / splits);
    return splits == 1 || (splits_k() && (slices + come_in) * slice_bytes <= stages * (a_bytes() + b_bytes()));
  }
};

inline constexpr WgmmaForm kWgmmaForms[] = {
    // name             bm   bn  store             cluster           stages registers
    {"defer_128x256", 128, 256, Store::kDeferred, Cluster::kNone, 4, 24, 240},
    {"ping_128x192", 128, 192, Store::kPingPong, Cluster::kNone, 5, 24, 240},
    {"ping_128x128", 128, 128, Store::kPingPong, Cluster::kNone, 6, 40, 232},
    {"coop_128x192", 128, 192, Store::kAtOnce, Cluster::kNone, 5, 40, 232},
    {"coop_128x144", 128, 144, Store::kAtOnce, Cluster::kNone, 5, 40, 232},
    {"coop_128x128", 128, 128, Store::kAtOnce, Cluster::kNone, 7, 40, 232},
    {"coop_128x64", 128, 64, Store::kAtOnce, Cluster::kNone, 9, 40, 232},
    {"ping_64x256", 64, 256, Store::kPingPong, Cluster::kNone, 5, 40, 232},
    {"ping_64x128", 64, 128, Store::kPingPong, Cluster::kNone, 9, 40, 232},
    {"ping_64x64", 64, 64, Store::kPingPong, Cluster::kNone, 13, 40, 232},
    {"defer_128x256_pair", 128, 256, Store::kDeferred, Cluster::kShareB, 4, 24, 240},
    {"ping_128x192_pair", 128, 192, Store::kPingPong, Cluster::kShareB, 5, 24, 240},
    {"ping_128x128_pair", 128, 128, Store::kPingPong, Cluster::kShareB, 6, 40, 232},
    {"coop_128x128_pair", 128, 128, Store::kAtOnce, Cluster::kShareB, 7, 40, 232},
    {"split_128x192", 128, 192, Store::kAtOnce, Cluster::kSplitK, 5, 40, 232},
    {"split_128x128", 128, 128, Store::kAtOnce, Cluster::kSplitK, 7, 40, 232},
    {"split_128x64", 128, 64, Store::kAtOnce, Cluster::kSplitK, 9, 40, 232},
};
inline constexpr int kWgmmaFormCount = sizeof(kWgmmaForms) / sizeof(kWgmmaForms[0]);

}  // namespace tcgemm
