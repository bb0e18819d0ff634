// The tile forms of the wgmma kernel. Plain C++; wgmma_plan.h says which one a problem gets.
#pragma once
#include <cstdint>

namespace tcgemm {

// When a tile of C is stored, and what a consuming warpgroup has of it.
enum class Store {
  kAtOnce,    // its share of the rows; the tensor cores idle meanwhile
  kDeferred,  // its share of the rows; most of it waits in registers for the next tile's main loop (wgmma_store.cuh)
  kPingPong,  // all of it; the other warpgroup multiplies its own tile meanwhile
  kSplitK,    // its share of the rows, of a piece of k: up to 8 blocks have a tile, and each adds up a slice of columns
};

// What the blocks of a cluster share; where k is split, those that have the same piece of it.
enum class Cluster {
  kNone,
  kPair,    // two blocks, one below the other: each asks for half of their tile of B, and both get it
  kQuad,    // the same among four, by quarters
  kSquare,  // two by two blocks: those beside each other share their tile of A as well
};

// Of shared memory, that a warpgroup stores from: 64 rows x 32 columns of C at a time.
inline constexpr int kStagedBytes = 64 * 32 * 4;

// A row of the table of forms. The kernel's template argument is the index of its row.
struct WgmmaForm {
  const char* name;
  int bm, bn;     // the tile of C
  int consumers;  // warpgroups that multiply
  Store store;
  Cluster cluster;
  int stages;                                  // k-blocks of 64 in shared memory
  int producer_registers, consumer_registers;  // 128 x (producer + consumers x consumer) <= 65536, multiples of 8

  constexpr bool ping_pong() const { return store == Store::kPingPong; }
  constexpr bool deferred() const { return store == Store::kDeferred; }
  // Blocks that have a tile of A in common, beside each other, and a tile of B, one below the other.
  constexpr int sharers_a() const { return cluster == Cluster::kSquare ? 2 : 1; }
  constexpr int sharers_b() const {
    return cluster == Cluster::kQuad ? 4 : cluster == Cluster::kPair || cluster == Cluster::kSquare ? 2 : 1;
  }
  constexpr int sharers() const { return sharers_a() * sharers_b(); }
  constexpr bool splits_k() const { return store == Store::kSplitK; }
  constexpr int blocks_per_cluster(int splits) const { return splits * sharers(); }
  // Tiles of few columns are stored through shared memory, since they gain more from little code than they lose by it.
  constexpr bool stores_narrow() const { return bn <= 96 && !splits_k(); }
  constexpr int rows_per_group() const { return ping_pong() ? bm : bm / consumers; }
  constexpr int rows_per_cluster() const { return sharers_b() * bm; }
  constexpr int cols_per_cluster() const { return sharers_a() * bn; }
  // Bytes of a k-block of 64 in shared memory; of B there are whole blocks of 64 columns.
  constexpr int a_bytes() const { return bm * 128; }
  constexpr int b_columns() const { return (bn + 63) / 64 * 64; }
  constexpr int b_bytes() const { return b_columns() * 128; }
  constexpr int ring_bytes() const { return stages * (a_bytes() + b_bytes()); }
  // Where so many blocks share k, the sums that go out, all of them, and those that come in, a slice of 16 columns or a
  // few from each of the others, take the place of the ring.
  constexpr int pieces_bytes(int splits) const {
    const int slices = bn / 16, come_in = (splits - 1) * ((slices + splits - 1) / splits);
    return (slices + come_in) * bm * 16 * 4;
  }
  // Whether they can: behind the pieces there is room to store from (wgmma_staged_store.cuh).
  constexpr bool splits_into(int splits) const {
    return splits == 1 || (splits_k() && blocks_per_cluster(splits) <= 8 &&
                           pieces_bytes(splits) + consumers * kStagedBytes <= ring_bytes());
  }
};

inline constexpr WgmmaForm kWgmmaForms[] = {
    // name             bm   bn  consumers, store         cluster           stages, registers
    {"defer_128x256", 128, 256, 2, Store::kDeferred, Cluster::kNone, 4, 24, 240},
    {"ping_128x192", 128, 192, 2, Store::kPingPong, Cluster::kNone, 5, 24, 240},
    {"ping_128x160", 128, 160, 2, Store::kPingPong, Cluster::kNone, 5, 24, 240},
    {"ping_128x144", 128, 144, 2, Store::kPingPong, Cluster::kNone, 5, 24, 240},
    {"ping_128x128", 128, 128, 2, Store::kPingPong, Cluster::kNone, 6, 40, 232},
    {"ping_128x112", 128, 112, 2, Store::kPingPong, Cluster::kNone, 6, 40, 232},
    {"ping_64x256", 64, 256, 2, Store::kPingPong, Cluster::kNone, 5, 40, 232},
    {"ping_64x192", 64, 192, 2, Store::kPingPong, Cluster::kNone, 6, 40, 232},
    {"ping_64x128", 64, 128, 2, Store::kPingPong, Cluster::kNone, 8, 40, 232},
    {"ping_64x96", 64, 96, 2, Store::kPingPong, Cluster::kNone, 8, 40, 232},
    {"ping_64x64", 64, 64, 2, Store::kPingPong, Cluster::kNone, 13, 40, 232},
    {"ping_64x32", 64, 32, 2, Store::kPingPong, Cluster::kNone, 13, 40, 232},
    {"coop_256x160", 256, 160, 2, Store::kAtOnce, Cluster::kNone, 4, 24, 240},
    {"coop_192x192", 192, 192, 3, Store::kAtOnce, Cluster::kNone, 4, 32, 160},
    {"coop_192x160", 192, 160, 3, Store::kAtOnce, Cluster::kNone, 4, 32, 160},
    {"coop_128x224", 128, 224, 2, Store::kAtOnce, Cluster::kNone, 4, 40, 232},
    {"coop_128x192", 128, 192, 2, Store::kAtOnce, Cluster::kNone, 5, 40, 232},
    {"coop_128x176", 128, 176, 2, Store::kAtOnce, Cluster::kNone, 5, 40, 232},
    {"coop_128x160", 128, 160, 2, Store::kAtOnce, Cluster::kNone, 5, 40, 232},
    {"coop_128x144", 128, 144, 2, Store::kAtOnce, Cluster::kNone, 5, 40, 232},
    {"coop_128x128", 128, 128, 2, Store::kAtOnce, Cluster::kNone, 7, 40, 232},
    {"coop_128x112", 128, 112, 2, Store::kAtOnce, Cluster::kNone, 7, 40, 232},
    {"coop_128x96", 128, 96, 2, Store::kAtOnce, Cluster::kNone, 7, 40, 232},
    {"coop_128x80", 128, 80, 2, Store::kAtOnce, Cluster::kNone, 7, 40, 232},
    {"coop_128x64", 128, 64, 2, Store::kAtOnce, Cluster::kNone, 9, 40, 232},
    {"defer_128x256_pair", 128, 256, 2, Store::kDeferred, Cluster::kPair, 4, 24, 240},
    {"ping_128x192_pair", 128, 192, 2, Store::kPingPong, Cluster::kPair, 5, 24, 240},
    {"ping_128x128_pair", 128, 128, 2, Store::kPingPong, Cluster::kPair, 6, 40, 232},
    {"coop_128x224_pair", 128, 224, 2, Store::kAtOnce, Cluster::kPair, 4, 40, 232},
    {"ping_128x192_quad", 128, 192, 2, Store::kPingPong, Cluster::kQuad, 5, 24, 240},
    {"coop_128x128_quad", 128, 128, 2, Store::kAtOnce, Cluster::kQuad, 7, 40, 232},
    {"ping_128x192_square", 128, 192, 2, Store::kPingPong, Cluster::kSquare, 5, 24, 240},
    {"coop_128x160_square", 128, 160, 2, Store::kAtOnce, Cluster::kSquare, 5, 40, 232},
    {"split_128x192", 128, 192, 2, Store::kSplitK, Cluster::kNone, 5, 40, 232},
    {"split_128x160", 128, 160, 2, Store::kSplitK, Cluster::kNone, 5, 40, 232},
    {"split_128x128", 128, 128, 2, Store::kSplitK, Cluster::kNone, 7, 40, 232},
    {"split_128x96", 128, 96, 2, Store::kSplitK, Cluster::kNone, 7, 40, 232},
    {"split_128x64", 128, 64, 2, Store::kSplitK, Cluster::kNone, 9, 40, 232},
    {"split_64x128", 64, 128, 1, Store::kSplitK, Cluster::kNone, 9, 40, 232},
    {"split_64x64", 64, 64, 1, Store::kSplitK, Cluster::kNone, 13, 40, 232},
    {"split_128x192_pair", 128, 192, 2, Store::kSplitK, Cluster::kPair, 5, 40, 232},
    {"split_128x128_pair", 128, 128, 2, Store::kSplitK, Cluster::kPair, 7, 40, 232},
    {"split_128x128_quad", 128, 128, 2, Store::kSplitK, Cluster::kQuad, 7, 40, 232},
    {"split_128x128_square", 128, 128, 2, Store::kSplitK, Cluster::kSquare, 7, 40, 232},
};
inline constexpr int kWgmmaFormCount = sizeof(kWgmmaForms) / sizeof(kWgmmaForms[0]);

}  // namespace tcgemm
