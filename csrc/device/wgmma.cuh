// wgmma: four warps multiply 64 x N x 16 straight from shared memory, with FP32 sums in their registers.
// Both operands lie in shared memory as TMA leaves them with 128-byte swizzle, in lines of 64 elements: a line
// runs along k (K-major), or along m or n (MN-major), and eight lines are an atom of 1024 bytes.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

namespace tcgemm {

constexpr int kWgmmaM = 64;
constexpr int kWgmmaK = 16;
constexpr int kSwizzleBytes = 128;                    // a line: 64 elements of 2 bytes
constexpr int kSwizzleAtomBytes = 8 * kSwizzleBytes;  // the pattern repeats every 8 lines

// How an operand runs along its lines.
enum class Lines { kAlongK, kAlongMn };

// How to walk an operand's tile of 64 k. An MN-major tile is one block of 64 k-lines for each 64 elements of m
// or n, because a line, and so a TMA box, is no wider than the swizzle.
template <Lines LINES>
struct TileWalk {
  static constexpr bool kK = LINES == Lines::kAlongK;
  static constexpr int kPer64MnBytes = 64 * kSwizzleBytes;  // both ways: 64 lines
  static constexpr int kPer16KBytes = kK ? 32 : 16 * kSwizzleBytes;
  static constexpr int kTranspose = kK ? 0 : 1;
};

// The 64-bit matrix descriptor: address, leading and stride byte offsets (all / 16) and, at bit 62, 1 for
// 128-byte swizzle. The stride offset leads from an atom to the next one along the 8-line direction. The leading
// offset leads along an MN-major operand from one block of 64 to the next; a K-major one does not use it.
// Moving a tile on is adding bytes / 16, since no sum leaves the 14 bits of the address.
__device__ __forceinline__ uint64_t wgmma_descriptor(uint32_t address) {
  constexpr uint64_t kLeading = TileWalk<Lines::kAlongMn>::kPer64MnBytes / 16;
  constexpr uint64_t kStride = kSwizzleAtomBytes / 16;
  return uint64_t{(address & 0x3ffffu) >> 4} | kLeading << 16 | kStride << 32 | uint64_t{1} << 62;
}

// Registers written before are seen by the wgmma that follow.
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory"); }
// Until at most PENDING groups are under way.
template <int PENDING>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(PENDING) : "memory");
}

// After a wait: keeps the compiler from moving reads of acc to before it.
template <int BLOCKS, int COUNT>
__device__ __forceinline__ void wgmma_landed(float (&acc)[BLOCKS][COUNT]) {
#pragma unroll
  for (int i = 0; i < BLOCKS; ++i) {
#pragma unroll
    for (int j = 0; j < COUNT; ++j) asm volatile("" : "+f"(acc[i][j])::"memory");
  }
}

// Gives registers back, or takes them. By all four warps of a warpgroup, once, in the branch of its role:
// anywhere else ptxas ignores it (C7508).
template <int COUNT>
__device__ __forceinline__ void release_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(COUNT));
}
template <int COUNT>
__device__ __forceinline__ void claim_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(COUNT));
}

// acc += a b, or acc = a b when keep is 0. acc[4 j + i] of lane l in warp w is row 16 w + l / 4 + 8 (i / 2),
// column 8 j + 2 (l % 4) + i % 2 of the 64 x N tile.
template <class T, int N, Lines A, Lines B>
struct Wgmma;

// clang-format off
#define TCGEMM_ACC8(i) "+f"(acc[i]), "+f"(acc[i + 1]), "+f"(acc[i + 2]), "+f"(acc[i + 3]), \
                       "+f"(acc[i + 4]), "+f"(acc[i + 5]), "+f"(acc[i + 6]), "+f"(acc[i + 7])
#define TCGEMM_ACC16(i) TCGEMM_ACC8(i), TCGEMM_ACC8(i + 8)
#define TCGEMM_ACC32(i) TCGEMM_ACC16(i), TCGEMM_ACC16(i + 16)
#define TCGEMM_ACC64(i) TCGEMM_ACC32(i), TCGEMM_ACC32(i + 32)
#define TCGEMM_NAMES0 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define TCGEMM_NAMES16 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define TCGEMM_NAMES32 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define TCGEMM_NAMES48 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define TCGEMM_NAMES64 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define TCGEMM_NAMES80 "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define TCGEMM_NAMES96 "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"
#define TCGEMM_NAMES112 "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
// The first COUNT of them.
#define TCGEMM_FIRST16 TCGEMM_NAMES0
#define TCGEMM_FIRST32 TCGEMM_FIRST16 ", " TCGEMM_NAMES16
#define TCGEMM_FIRST40 TCGEMM_FIRST32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define TCGEMM_FIRST48 TCGEMM_FIRST32 ", " TCGEMM_NAMES32
#define TCGEMM_FIRST56 TCGEMM_FIRST48 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define TCGEMM_FIRST64 TCGEMM_FIRST48 ", " TCGEMM_NAMES48
#define TCGEMM_FIRST72 TCGEMM_FIRST64 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define TCGEMM_FIRST80 TCGEMM_FIRST64 ", " TCGEMM_NAMES64
#define TCGEMM_FIRST88 TCGEMM_FIRST80 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define TCGEMM_FIRST96 TCGEMM_FIRST80 ", " TCGEMM_NAMES80
#define TCGEMM_FIRST112 TCGEMM_FIRST96 ", " TCGEMM_NAMES96
#define TCGEMM_FIRST128 TCGEMM_FIRST112 ", " TCGEMM_NAMES112

// SIZE is N; NAMES and ACC its N / 2 registers; the other numbers name the operands behind them.
#define TCGEMM_WGMMA_TYPED(SIZE, TYPE, NAMES, DESC_A, DESC_B, KEEP, TRANS_A, TRANS_B, ...)                     \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " KEEP ", 0;\n"                                             \
               "wgmma.mma_async.sync.aligned.m64n" SIZE "k16.f32." TYPE "." TYPE " {" NAMES "}, " DESC_A ", " \
               DESC_B ", p, 1, 1, " TRANS_A ", " TRANS_B ";\n}\n"                                             \
               : __VA_ARGS__                                                                                  \
               : "l"(a), "l"(b), "r"(keep), "n"(TileWalk<A>::kTranspose), "n"(TileWalk<B>::kTranspose))
#define TCGEMM_WGMMA(SIZE, NAMES, DESC_A, DESC_B, KEEP, TRANS_A, TRANS_B, ...)                                \
  template <class T, Lines A, Lines B>                                                                        \
  struct Wgmma<T, SIZE, A, B> {                                                                               \
    __device__ __forceinline__ static void run(float (&acc)[SIZE / 2], uint64_t a, uint64_t b, int keep) {    \
      if constexpr (std::is_same_v<T, __half>) {                                                              \
        TCGEMM_WGMMA_TYPED(#SIZE, "f16", NAMES, DESC_A, DESC_B, KEEP, TRANS_A, TRANS_B, __VA_ARGS__);         \
      } else {                                                                                                \
        TCGEMM_WGMMA_TYPED(#SIZE, "bf16", NAMES, DESC_A, DESC_B, KEEP, TRANS_A, TRANS_B, __VA_ARGS__);        \
      }                                                                                                       \
    }                                                                                                         \
  }

TCGEMM_WGMMA(32, TCGEMM_FIRST16, "%16", "%17", "%18", "%19", "%20", TCGEMM_ACC16(0));
TCGEMM_WGMMA(64, TCGEMM_FIRST32, "%32", "%33", "%34", "%35", "%36", TCGEMM_ACC32(0));
TCGEMM_WGMMA(80, TCGEMM_FIRST40, "%40", "%41", "%42", "%43", "%44", TCGEMM_ACC32(0), TCGEMM_ACC8(32));
TCGEMM_WGMMA(96, TCGEMM_FIRST48, "%48", "%49", "%50", "%51", "%52", TCGEMM_ACC32(0), TCGEMM_ACC16(32));
TCGEMM_WGMMA(112, TCGEMM_FIRST56, "%56", "%57", "%58", "%59", "%60",
             TCGEMM_ACC32(0), TCGEMM_ACC16(32), TCGEMM_ACC8(48));
TCGEMM_WGMMA(128, TCGEMM_FIRST64, "%64", "%65", "%66", "%67", "%68", TCGEMM_ACC64(0));
TCGEMM_WGMMA(144, TCGEMM_FIRST72, "%72", "%73", "%74", "%75", "%76", TCGEMM_ACC64(0), TCGEMM_ACC8(64));
TCGEMM_WGMMA(160, TCGEMM_FIRST80, "%80", "%81", "%82", "%83", "%84", TCGEMM_ACC64(0), TCGEMM_ACC16(64));
TCGEMM_WGMMA(176, TCGEMM_FIRST88, "%88", "%89", "%90", "%91", "%92",
             TCGEMM_ACC64(0), TCGEMM_ACC16(64), TCGEMM_ACC8(80));
TCGEMM_WGMMA(192, TCGEMM_FIRST96, "%96", "%97", "%98", "%99", "%100", TCGEMM_ACC64(0), TCGEMM_ACC32(64));
TCGEMM_WGMMA(224, TCGEMM_FIRST112, "%112", "%113", "%114", "%115", "%116",
             TCGEMM_ACC64(0), TCGEMM_ACC32(64), TCGEMM_ACC16(96));
TCGEMM_WGMMA(256, TCGEMM_FIRST128, "%128", "%129", "%130", "%131", "%132",
             TCGEMM_ACC64(0), TCGEMM_ACC64(64));
#undef TCGEMM_WGMMA
#undef TCGEMM_WGMMA_TYPED
#undef TCGEMM_ACC8
#undef TCGEMM_ACC16
#undef TCGEMM_ACC32
#undef TCGEMM_ACC64
#undef TCGEMM_NAMES0
#undef TCGEMM_NAMES16
#undef TCGEMM_NAMES32
#undef TCGEMM_NAMES48
#undef TCGEMM_NAMES64
#undef TCGEMM_NAMES80
#undef TCGEMM_NAMES96
#undef TCGEMM_NAMES112
#undef TCGEMM_FIRST16
#undef TCGEMM_FIRST32
#undef TCGEMM_FIRST40
#undef TCGEMM_FIRST48
#undef TCGEMM_FIRST56
#undef TCGEMM_FIRST64
#undef TCGEMM_FIRST72
#undef TCGEMM_FIRST80
#undef TCGEMM_FIRST88
#undef TCGEMM_FIRST96
#undef TCGEMM_FIRST112
#undef TCGEMM_FIRST128
// clang-format on

}  // namespace tcgemm
