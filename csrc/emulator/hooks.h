// What kernel code calls when g++ compiles it. Everything here is implemented in the emulator's own .cpp files, so
// that a kernel's translation unit stays small: an edited kernel is compiled again in seconds.
#pragma once
#include <cstdint>
#include <source_location>
#include <type_traits>

#include "../gemm.h"

namespace tcgemm::emulator {

using Site = std::source_location;

// An index that remembers where it was written: a[i] converts i, and the default argument is evaluated there.
struct At {
  int64_t i;
  Site site;
  At(int64_t index, Site where = Site::current()) : i(index), site(where) {}
};

struct Extent;  // an operand in global memory (global.h)
struct Region;  // an allocation of shared memory (shared.h)
struct Lane;    // a CUDA thread (machine.h)

struct Dim3 {
  unsigned x = 0, y = 0, z = 0;
};

// Where the fibre that runs now stands. Kernels see these as threadIdx, blockIdx, blockDim and gridDim.
struct Position {
  Dim3 thread, block, block_dim, grid_dim;
};
extern constinit thread_local const Position* position;

// Shared memory: where a view of it begins and ends, in bytes of its region.
struct View {
  Region* region = nullptr;
  int first = 0, end = 0;
};

Extent* find_extent(const Operand& x, int64_t rows, int64_t cols, int element_bytes);

// `count` consecutive elements as one access; more than one must be aligned. An inactive lane only takes part in the
// instruction. What may not be read comes back as NaN and is reported.
void global_load(Extent* a, int64_t i, int count, void* out, bool active, Site site);
void global_store(Extent* c, int64_t i, int count, const void* x, bool active, Site site);
// `count` guarded element accesses of this site, which this lane leaves out because it took another path.
void global_skip(Extent* a, int count, int element_bytes, Site site);

View static_shared(const void* array, int bytes, int element_bytes, Site declared);
View dynamic_shared_view(int offset, int count, int element_bytes, Site site);
void shared_load(const View& tile, int64_t i, int element_bytes, int count, void* out, Site site);
void shared_store(const View& tile, int64_t i, int element_bytes, int count, const void* x, Site site);

void copy_async(const View& tile, int64_t at, Extent* a, int64_t i, int valid, int element_bytes, Site site);
void copy_async_commit(Site site);
void copy_async_wait(int newest, Site site);

void block_barrier(Site site);
void warp_barrier(Site site);
// x of lane `from` of this warp.
uint32_t shuffle(uint32_t x, int from, Site site);

// Only in builds with a trace: a register array's element was read or written.
// `packed`: its 4 bytes hold two halves.
void register_access(const void* array, int i, const void* x, int bytes, bool packed, bool write, Site site);

enum class Element { kHalf, kBFloat16 };
enum class FragmentKind { kA, kB, kAccumulator };

// A WMMA fragment. Which lane holds what is unspecified, so the emulator keeps all 256 values in lane 0's copy.
struct alignas(32) FragmentData {
  float v[256];  // row by row
  bool set = false;
  FragmentKind kind;
  explicit FragmentData(FragmentKind which) : kind(which) {}
};

void fragment_fill(FragmentData& frag, float x, Site site);
void fragment_load_shared(FragmentData& frag, const View& tile, int64_t i, int64_t ld, bool by_row, Element element,
                          Site site);
void fragment_load_global(FragmentData& frag, Extent* a, int64_t i, int64_t ld, bool by_row, Element element,
                          Site site);
void fragment_multiply(FragmentData& acc, const FragmentData& a, const FragmentData& b, Site site);
void fragment_store_shared(const View& tile, int64_t i, const FragmentData& acc, int64_t ld, Site site);
void fragment_store_global(Extent* c, int64_t i, const FragmentData& acc, int64_t ld, Site site);

// ldmatrix.x4 and mma.sync m16n8k8, m16n8k16, on this lane's registers.
void load_matrices(unsigned* registers, const View& tile, int64_t at, bool transposed, Site site);
void multiply_registers(float* acc, const unsigned* a, const unsigned* b, int k, Element element, Site site);
[[noreturn]] void no_such_instruction(Site site);

// For tests that change a kernel's text: shows that the changed line ran.
void reached(Site site = Site::current());

struct Launch {
  int64_t blocks = 1;
  int threads = 1;
  int shared_bytes = 0;
};
// Runs `body(context)` once per thread of the grid. 0, or a cudaError_t.
int run_grid(const Launch& shape, void (*body)(const void*), const void* context);

}  // namespace tcgemm::emulator
