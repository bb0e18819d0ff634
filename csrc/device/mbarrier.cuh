// mbarrier: a counter in shared memory on which threads and bulk copies meet.
// A phase ends when the expected arrivals have come and all announced bytes have landed. Who waits names the
// parity of the phase that it waits for: 0 for the first, then 1, 0, ... A wait for parity 1 on a fresh barrier
// returns at once, which is how a producer finds every slot of a new ring empty.
#pragma once
#include <cstdint>

namespace tcgemm {

// A wait that fails this often has met a bug: trap, so that the host sees an error and not a hang. A failed try_wait
// takes tens of nanoseconds at the least, so the limit is worth half a second or more; no wait here lasts a
// millisecond. No printf here: one call in the kernel makes ptxas serialise every wgmma (C7510).
constexpr uint32_t kSpinLimit = 1u << 24;

struct Mbarrier {
  uint32_t address;  // in shared memory, a multiple of 8

  __device__ __forceinline__ void init(int arrivals) const {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(address), "r"(arrivals) : "memory");
  }

  __device__ __forceinline__ void arrive() const {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(address) : "memory");
  }

  // An arrival at the barrier in the same place of the cluster's block `rank`. Without a scope: .release.cluster would
  // emit MEMBAR.ALL.GPU, and what is released here are reads by wgmma, which are done.
  __device__ __forceinline__ void arrive_at(uint32_t rank) const {
    asm volatile(
        "{\n"
        ".reg .b32 there;\n"
        "mapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
        "}\n" ::"r"(address),
        "r"(rank)
        : "memory");
  }

  // One arrival that also announces `bytes` of bulk copies.
  __device__ __forceinline__ void arrive_expect_bytes(uint32_t bytes) const {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(address), "r"(bytes) : "memory");
  }

  __device__ __forceinline__ bool try_wait(uint32_t parity) const {
    uint32_t done;
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "}\n"
        : "=r"(done)
        : "r"(address), "r"(parity)
        : "memory");
    return done != 0;
  }

  __device__ __forceinline__ void wait(uint32_t parity) const {
    for (uint32_t spins = 0; !try_wait(parity);) {
      if (++spins == kSpinLimit) __trap();
    }
  }
};

// Makes initialised barriers visible to the copy engine. A barrier among the threads must follow.
__device__ __forceinline__ void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}

// All threads of all the cluster's blocks meet, those that have ended left out: each says that it is here, and later
// waits for the others. What it wrote before is seen behind the meeting, but if relaxed: then it need not be, which
// saves some 500 clocks. Not .aligned: warps may come in pieces.
__device__ __forceinline__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.release;\n" ::: "memory"); }
__device__ __forceinline__ void cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed;\n" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire;\n" ::: "memory"); }
__device__ __forceinline__ void cluster_sync() {
  cluster_arrive();
  cluster_wait();
}

// A place in a ring of SLOTS barriers, and the parity of the round.
template <int SLOTS>
struct RingCursor {
  int slot = 0;
  uint32_t parity = 0;

  __device__ __forceinline__ int before() const { return slot == 0 ? SLOTS - 1 : slot - 1; }
  __device__ __forceinline__ void advance() {
    if (++slot == SLOTS) {
      slot = 0;
      parity ^= 1;
    }
  }
  __device__ __forceinline__ void advance(int steps) {
    const int at = slot + steps;
    slot = at % SLOTS;
    parity ^= (at / SLOTS) & 1;
  }
};

// Named barriers: `threads` of the block meet at barrier `id`; sync waits for them, arrive does not.
__device__ __forceinline__ void named_barrier_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;\n" ::"r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ void named_barrier_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;\n" ::"r"(id), "r"(threads) : "memory");
}

}  // namespace tcgemm
