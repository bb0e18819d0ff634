// From a problem's runtime type and layout to a kernel's template arguments, once for all rungs.
#pragma once
#include "tile.cuh"

namespace tcgemm {

// Calls launch.template operator()<T, MAJOR_A, MAJOR_B>() for the layouts of `p`.
template <class T, class Launch>
int for_layout(const GemmProblem& p, Launch launch) {
  const bool b_by_row = major_of(p.b, p.k, p.n) == Major::kRow;
  if (major_of(p.a, p.m, p.k) == Major::kRow) {
    return b_by_row ? launch.template operator()<T, Major::kRow, Major::kRow>()
                    : launch.template operator()<T, Major::kRow, Major::kCol>();
  }
  return b_by_row ? launch.template operator()<T, Major::kCol, Major::kRow>()
                  : launch.template operator()<T, Major::kCol, Major::kCol>();
}

// The same for the type as well, of the two half-precision ones.
template <class Launch>
int for_type_and_layout(const GemmProblem& p, Launch launch) {
  return p.dtype == DType::kFloat16 ? for_layout<__half>(p, launch) : for_layout<__nv_bfloat16>(p, launch);
}

// Or FP32.
template <class Launch>
int for_any_type_and_layout(const GemmProblem& p, Launch launch) {
  return p.dtype == DType::kFloat32 ? for_layout<float>(p, launch) : for_type_and_layout(p, launch);
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
