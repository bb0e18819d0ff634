#include "fragments.h"

#include "session.h"

namespace tcgemm::emulator {
void count_ldmatrix(Warp& warp, const Site& site, int space, uint64_t first, int64_t line_bytes) {
  if (!session->options().counts) return;
  const int matrices = session->options().arch < 80 ? 2 : 4;  // LDSM.x2, LDSM.x4
  const uint64_t key = Record::make(Access::kFragmentLoad, site, 0, 16, 0, true, 0).key;
  for (int matrix = 0; matrix < 4; matrix += matrices) {
    uint64_t addresses[32];
    int lanes[32];
    for (int l = 0; l < 8 * matrices; ++l) {
      const int part = matrix + l / 8, line = l % 8 + part % 2 * 8;
      addresses[l] = first + static_cast<uint64_t>(line * line_bytes + part / 2 * 16);
      lanes[l] = l;
    }
    warp.block->counts.add_access(warp.index, warp.interval, key, space, addresses, lanes, 8 * matrices, 16);
  }
}

void count_by_quads(Warp& warp, Access access, const Site& site, int space, uint64_t first, int64_t line_bytes,
                    int bytes, int half) {
  if (!session->options().counts) return;
  const uint64_t key = Record::make(access, site, 0, bytes, 0, true, 0).key;
  for (int part = 0; part < 4; ++part) {
    uint64_t addresses[32];
    int lanes[32];
    for (int l = 0; l < 32; ++l) {
      addresses[l] =
          first + static_cast<uint64_t>((l / 4 + part % 2 * 8) * line_bytes + l % 4 * bytes + part / 2 * half);
      lanes[l] = l;
    }
    warp.block->counts.add_access(warp.index, warp.interval, key, space, addresses, lanes, 32, bytes);
  }
}

}  // namespace tcgemm::emulator
