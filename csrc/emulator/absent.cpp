// An empty entry for each rung of the table, which a rung that is linked in replaces. So one kernel file makes an
// executable, and rungs that need TMA or wgmma may stay outside.
#include "../gemm.h"

namespace tcgemm {
#define RUNG(name, ...)                                        \
  extern __attribute__((weak)) const KernelEntry name##_entry; \
  extern const KernelEntry name##_entry = {};
#include "../kernels.def"
#undef RUNG
}  // namespace tcgemm
