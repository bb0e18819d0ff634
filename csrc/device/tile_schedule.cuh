// What the blocks of a persistent kernel work on, and in which order: tiles of C, and ranges of k where chains are cut.
#pragma once
#include <cstdint>

namespace tcgemm {

struct Tiling {
  int tiles_m, tiles_n;
  int group;  // rows of tiles that are walked together, column by column
  int k_blocks, chains, k_blocks_per_chain;
};

// A piece of work: a tile and a range of k-blocks. Without k-blocks there is nothing to do, but it counts as a turn.
struct Unit {
  int row0, col0, k_block0, k_blocks;
  bool first;  // of its tile: later ones add to C
};

// The units of a block. With TURNS = 2 they alternate between two warpgroups, and all the chains of a tile fall to one
// of them, so that each element of C is added up by one thread.
template <int BM, int BN, int TURNS>
struct Schedule {
  Tiling tiling;

  // Whether there is a unit u. Not a number of units: it would live in a register through every main loop.
  __device__ __forceinline__ bool has(int u) const { return exists(u / (TURNS * tiling.chains) * TURNS); }

  // The same, worked out again and not kept in registers since unit(u).
  __device__ __forceinline__ Unit unit_anew(int u) const {
    asm volatile("" : "+r"(u));
    return unit(u);
  }

  __device__ __forceinline__ Unit unit(int u) const {
    const int round = u / (TURNS * tiling.chains), turn = u - round * TURNS * tiling.chains;
    const int index = round * TURNS + turn % TURNS, chain = turn / TURNS;
    const int tile = tile_of(index);
    const int per_group = tiling.group * tiling.tiles_n;
    const int group = tile / per_group, in_group = tile - group * per_group;
    const int rows = min(tiling.group, tiling.tiles_m - group * tiling.group);
    const int k_block0 = chain * tiling.k_blocks_per_chain;
    Unit unit;
    unit.row0 = (group * tiling.group + in_group % rows) * BM;
    unit.col0 = in_group / rows * BN;
    unit.k_block0 = k_block0;
    unit.k_blocks = exists(index) ? min(tiling.k_blocks_per_chain, tiling.k_blocks - k_block0) : 0;
    unit.first = chain == 0;
    return unit;
  }

 private:
  __device__ __forceinline__ static int tile_of(int index) {
    return index * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x);
  }
  __device__ __forceinline__ bool exists(int index) const { return tile_of(index) < tiling.tiles_m * tiling.tiles_n; }
};

}  // namespace tcgemm
