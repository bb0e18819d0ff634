// What `choose` must know about a GPU.
#pragma once
#include "gemm.h"

namespace tcgemm {

// Fills in `info` for GPU number `device`, and returns a cudaError_t. Asks once in a process: later calls read what
// the first one found. Creates the device's context if there is none; safe while a stream is being captured.
int device_info(int device, DeviceInfo* info);

// For what the loaded code was compiled: the architecture of the PTX behind the probe kernel's binary.
// Needs `device` to be current. A cudaError_t.
int code_arch_of_current_device(int* code_arch);

}  // namespace tcgemm
