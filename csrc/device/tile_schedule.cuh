// What the blocks of a persistent kernel work on, and in which order.
#pragma once
#include <cstdint>

#include "divisor.h"

namespace tcgemm {

// C in tiles, and the walk over them: `group` rows of tiles together, column by column, then the rows below.
struct Tiling {
  int tiles_m, tiles_n;
  int group, last_group;                        // rows of tiles, of all groups and of the last one
  Divisor by_group, by_column, by_last_column;  // tiles of a group, of a column of it, of a column of the last one
  Divisor by_splits;
  int k_blocks, k_blocks_per_split, k_blocks_per_chain;
};

inline Tiling make_tiling(int64_t tiles_m, int64_t tiles_n, int group, int64_t k_blocks, int64_t splits,
                          int64_t chains) {
  Tiling t = {};
  t.tiles_m = static_cast<int>(tiles_m);
  t.tiles_n = static_cast<int>(tiles_n);
  t.group = group;
  t.last_group = t.tiles_m - (t.tiles_m - 1) / group * group;
  t.by_group = make_divisor(group * t.tiles_n);
  t.by_column = make_divisor(group);
  t.by_last_column = make_divisor(t.last_group);
  t.by_splits = make_divisor(static_cast<int>(splits));
  t.k_blocks = static_cast<int>(k_blocks);
  t.k_blocks_per_split = static_cast<int>(ceil_div(k_blocks, splits));
  t.k_blocks_per_chain = static_cast<int>(ceil_div(t.k_blocks_per_split, chains));
  return t;
}

// A tile, and a piece of k. Without k-blocks there is nothing to do, but it counts as a turn.
struct Unit {
  int row0, col0, k_block0, k_blocks;
};

// What falls to a block. R, a form, says how large a tile is, how many warpgroups take turns, and what clusters do.
template <class R>
struct Schedule {
  Tiling tiling;

  // Whether there is a unit u. Not a number of units: it would live in a register through every main loop.
  __device__ __forceinline__ bool has(int u) const { return exists(u / R::kTurns * R::kTurns); }

  // The same, worked out again and not kept in registers since unit(u).
  __device__ __forceinline__ Unit unit_anew(int u) const {
    asm volatile("" : "+r"(u));
    return unit(u);
  }

  __device__ __forceinline__ Unit unit(int u) const {
    const int tile = tile_of(u);
    const int group = tiling.by_group.quotient(tile), in_group = tile - group * tiling.group * tiling.tiles_n;
    const bool last = (group + 1) * tiling.group >= tiling.tiles_m;
    const int col = (last ? tiling.by_last_column : tiling.by_column).quotient(in_group);
    const int row = group * tiling.group + in_group - col * (last ? tiling.last_group : tiling.group);
    const int k_block0 = R::kSplitK ? piece() * tiling.k_blocks_per_split : 0;
    const int k_blocks =
        R::kSplitK ? max(min(tiling.k_blocks - k_block0, tiling.k_blocks_per_split), 0) : tiling.k_blocks;
    return {(R::kSharersB * row + rank_m()) * R::BM, (R::kSharersA * col + rank_n()) * R::BN, k_block0,
            exists(u) ? k_blocks : 0};
  }

  // Of this block in its cluster: those that share come one after the other, column by column, then the next piece of
  // k.
  __device__ __forceinline__ static int rank() { return static_cast<int>(__clusterRelativeBlockRank()); }
  __device__ __forceinline__ static int piece() { return R::kSplitK ? rank() / R::kSharers : 0; }
  __device__ __forceinline__ static int first_sharer() { return piece() * R::kSharers; }
  // Among those that share, those of them below each other, and those beside each other.
  __device__ __forceinline__ static int place() { return rank() - first_sharer(); }
  __device__ __forceinline__ static int rank_m() { return R::kSharersB > 1 ? rank() % R::kSharersB : 0; }
  __device__ __forceinline__ static int rank_n() { return R::kSharersA > 1 ? place() / R::kSharersB : 0; }

 private:
  // Clusters work as one. Without them a block is a cluster of its own.
  __device__ __forceinline__ static int tile_of(int u) {
    if constexpr (R::kSharers > 1 || R::kSplitK) {
      return u * static_cast<int>(__clusterGridDimInClusters().x) + static_cast<int>(__clusterIdx().x);
    } else {
      return u * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x);
    }
  }
  __device__ __forceinline__ bool exists(int u) const { return tile_of(u) < tiling.tiles_m * tiling.tiles_n; }
};

}  // namespace tcgemm
