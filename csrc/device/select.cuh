// From a problem's runtime type and layout to a kernel's template arguments, once for all rungs.
#pragma once
#include "tile.cuh"

namespace tcgemm {

// Calls launch.template operator()<T, MAJOR_A, MAJOR_B>() for the half-precision type and layouts of `p`.
template <class Launch>
int for_type_and_layout(const GemmProblem& p, Launch launch) {
  const bool a_by_row = major_of(p.a, p.m, p.k) == Major::kRow;
  const bool b_by_row = major_of(p.b, p.k, p.n) == Major::kRow;
  const auto for_layout = [&]<class T>() {
    if (a_by_row) {
      return b_by_row ? launch.template operator()<T, Major::kRow, Major::kRow>()
                      : launch.template operator()<T, Major::kRow, Major::kCol>();
    }
    return b_by_row ? launch.template operator()<T, Major::kCol, Major::kRow>()
                    : launch.template operator()<T, Major::kCol, Major::kCol>();
  };
  return p.dtype == DType::kFloat16 ? for_layout.template operator()<__half>()
                                    : for_layout.template operator()<__nv_bfloat16>();
}

// Block number `block` of a grid that covers C in tiles_m x tiles_n tiles, in groups of GROUP rows of tiles:
// blocks that run at the same time share rows of A and columns of B in the L2 cache.
template <int GROUP>
__device__ __forceinline__ void place_block(int64_t block, int64_t tiles_m, int64_t tiles_n, int64_t& tile_m,
                                            int64_t& tile_n) {
  const int64_t per_group = GROUP * tiles_n;
  const int64_t first_m = block / per_group * GROUP;
  const int64_t group_rows = tiles_m - first_m < GROUP ? tiles_m - first_m : GROUP;
  tile_m = first_m + block % per_group % group_rows;
  tile_n = block % per_group / group_rows;
}

}  // namespace tcgemm
