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
struct TilePlace {
  int m, n;  // in tiles; a grid has fewer than 2^31 blocks
};
template <int GROUP>
__device__ __forceinline__ TilePlace place_block(unsigned block, unsigned tiles_m, unsigned tiles_n) {
  const unsigned group = block / (GROUP * tiles_n), in_group = block % (GROUP * tiles_n);
  const unsigned rows = min(tiles_m - group * GROUP, unsigned{GROUP});
  return {static_cast<int>(group * GROUP + in_group % rows), static_cast<int>(in_group / rows)};
}

}  // namespace tcgemm
