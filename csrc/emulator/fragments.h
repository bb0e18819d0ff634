// What the files about WMMA share: checks, and memory traffic.
//
// The memory traffic of WMMA, as the hardware's instructions make it (read off the SASS of sm_75, sm_80 and sm_90, nvcc
// 13.0): a load from shared memory is ldmatrix, 8 lines of 16 bytes a pass; from global memory it is four 4-byte
// loads, lane l at line l/4 (+8), bytes 4 (l%4) (+16); a store is four 8-byte stores, lane l at row l/4 (+8),
// columns 2 (l%4), 2 (l%4) + 1 (+8).
#pragma once
#include <string>

#include "machine.h"

namespace tcgemm::emulator {

// All lanes must name the same fragment: the same variable, at the same place of their stacks.
void check_same_fragment(Warp& warp, const FragmentData* first, const FragmentData* other, int lane, const Site& site);
// Reports a fragment that was neither filled nor loaded.
void check_set(const FragmentData& frag, const Site& site);
// Its number in the trace.
std::string fragment_number(Warp& warp, const FragmentData* frag);

// A fragment from shared memory: 16 lines, `line_bytes` apart, from address `first` on.
void count_ldmatrix(Warp& warp, const Site& site, int space, uint64_t first, int64_t line_bytes);
// Four accesses of 32 lanes: lane l at line l/4 and `bytes` (l%4) along it; then 8 lines on, and `half` bytes along.
void count_by_quads(Warp& warp, Access access, const Site& site, int space, uint64_t first, int64_t line_bytes,
                    int bytes, int half);

}  // namespace tcgemm::emulator
