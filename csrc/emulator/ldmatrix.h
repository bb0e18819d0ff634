// device/ldmatrix.cuh under g++.
#pragma once
#include "memory.h"

namespace tcgemm {

template <class T>
void ldmatrix_x4(Reg<unsigned, 4>& frag, const SharedSpan<T>& tile, const At& at) {
  static_assert(sizeof(T) == 2, "ldmatrix .b16");
  emulator::load_matrices(frag.v, tile.view(), at.i, false, at.site);
}

template <class T>
void ldmatrix_x4_trans(Reg<unsigned, 4>& frag, const SharedSpan<T>& tile, const At& at) {
  static_assert(sizeof(T) == 2, "ldmatrix .b16");
  emulator::load_matrices(frag.v, tile.view(), at.i, true, at.site);
}

}  // namespace tcgemm
