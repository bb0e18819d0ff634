// Wavefronts of shared memory and sectors of cp.async, against figures that were measured on an H200 or follow from the
// addresses.
#include "emulator/traffic.h"

#include "harness.h"

namespace tcgemm::emulator {
namespace {

template <class T, int WIDTH>
__global__ void shared_read(Global<float> c, int by) {
  __shared__ SharedArray<T, 4096> tile;
  const int lane = static_cast<int>(threadIdx.x);
  for (int i = lane; i < 4096; i += 32) tile[i] = T(1.0f);
  __syncthreads();
  if constexpr (WIDTH == 1) {
    c[lane] = static_cast<float>(static_cast<T>(tile[lane * by]));
  } else {
    const Vec<T, WIDTH> x = load_vec<WIDTH>(SharedSpan<T>(tile), lane * by);
    c[lane] = static_cast<float>(x.v[0]);
  }
}

template <class T, int WIDTH>
int64_t read_wavefronts(int by) {
  Bench bench;
  Buffer<float> c(32);
  launch(shared_read<T, WIDTH>, {.blocks = 1, .threads = 32}, kNoStream, bench.output("C", c.data(), 1, 32, 32), by);
  EXPECT_CLEAN(bench);
  return bench.sum(Access::kSharedLoad).wavefronts;
}

void banks() {
  EXPECT_EQUAL((read_wavefronts<float, 1>(1)), 1);
  EXPECT_EQUAL((read_wavefronts<float, 1>(0)), 1);  // a broadcast
  EXPECT_EQUAL((read_wavefronts<float, 1>(2)), 2);
  EXPECT_EQUAL((read_wavefronts<float, 1>(32)), 32);
  EXPECT_EQUAL((read_wavefronts<float, 1>(33)), 1);
  EXPECT_EQUAL((read_wavefronts<__half, 1>(1)), 1);  // two lanes share a word
  EXPECT_EQUAL((read_wavefronts<float, 2>(2)), 2);   // 8 bytes: two passes of 16 lanes
  EXPECT_EQUAL((read_wavefronts<float, 4>(4)), 4);   // 16 bytes: four passes of 8
  EXPECT_EQUAL((read_wavefronts<float, 4>(32)), 32);
}

// lds_probe.cu: which item of its width each lane reads, and the wavefronts that an H200 counted for it.
template <int WIDTH>
__global__ void read_items(Global<float> c, Global<const int> item) {
  __shared__ SharedArray<float, 32 * WIDTH> tile;
  const int lane = static_cast<int>(threadIdx.x);
  for (int i = lane; i < 32 * WIDTH; i += 32) tile[i] = 1.0f;
  __syncthreads();
  const int mine = item[lane];
  c[lane] = load_vec<WIDTH>(SharedSpan<float>(tile), mine * WIDTH).v[0];
}

template <int WIDTH>
int64_t item_wavefronts(int (*item_of)(int)) {
  Bench bench;
  Buffer<float> c(32);
  Buffer<int> items(32);
  for (int lane = 0; lane < 32; ++lane) items[lane] = item_of(lane);
  launch(read_items<WIDTH>, {.blocks = 1, .threads = 32}, kNoStream, bench.output("C", c.data(), 1, 32, 32),
         bench.input("A", items.data(), 1, 32, 32));
  EXPECT_CLEAN(bench);
  return bench.sum(Access::kSharedLoad).wavefronts;
}

void lanes_that_share_addresses() {
  struct Pattern {
    const char* name;
    int (*item)(int);
    int by_4, by_8, by_16;  // bytes a lane
  };
  const Pattern measured[] = {
      {"distinct", [](int l) { return l; }, 1, 2, 4},
      {"pairs", [](int l) { return l / 2; }, 1, 1, 2},
      {"fours", [](int l) { return l / 4; }, 1, 1, 2},
      {"eights", [](int l) { return l / 8; }, 1, 1, 2},
      {"halves", [](int l) { return l % 16; }, 1, 2, 4},
      {"quarters", [](int l) { return l % 8; }, 1, 2, 4},
      {"all", [](int) { return 0; }, 1, 1, 2},
      {"alternating", [](int l) { return l / 4 * 2 + l % 2; }, 1, 1, 2},
      {"mixed", [](int l) { return l < 16 ? l / 2 : l; }, 1, 2, 4},
  };
  for (const Pattern& each : measured) {
    const int64_t got[] = {item_wavefronts<1>(each.item), item_wavefronts<2>(each.item), item_wavefronts<4>(each.item)};
    CHECK(got[0] == each.by_4 && got[1] == each.by_8 && got[2] == each.by_16, "%s: %d, %d, %d", each.name,
          static_cast<int>(got[0]), static_cast<int>(got[1]), static_cast<int>(got[2]));
  }
}

// Pairs in one pass still share banks: 16 addresses 128 bytes apart are 16 words of bank 0.
void pairs_with_conflicts() {
  uint64_t addresses[32];
  int lanes[32];
  for (int lane = 0; lane < 32; ++lane) {
    addresses[lane] = static_cast<uint64_t>(lane / 2 * 128);
    lanes[lane] = lane;
  }
  EXPECT_EQUAL(count_wavefronts(addresses, lanes, 32, 8, true), 16);
  EXPECT_EQUAL(count_wavefronts(addresses, lanes, 32, 8, false), 8 + 8);
  for (uint64_t& address : addresses) address = 0;
  EXPECT_EQUAL(count_wavefronts(addresses, lanes, 32, 16, true), 2);
  EXPECT_EQUAL(count_wavefronts(addresses, lanes, 32, 16, false), 4);  // a store, or rows of ldmatrix
  EXPECT_EQUAL(count_wavefronts(addresses, lanes, 8, 16, true), 1);    // lanes 8 to 31 inactive
}

// Measured with lds_probe.cu: an inactive lane agrees with any; half a warp that agrees does not merge alone.
void inactive_lanes() {
  uint64_t addresses[16];
  int even[16], lower[16];
  for (int i = 0; i < 16; ++i) {
    addresses[i] = static_cast<uint64_t>(i);  // in items
    even[i] = 2 * i;
    lower[i] = i;
  }
  const auto wavefronts = [&](const int* lanes, int bytes) {
    uint64_t at[16];
    for (int i = 0; i < 16; ++i) at[i] = addresses[i] * static_cast<uint64_t>(bytes);
    return count_wavefronts(at, lanes, 16, bytes, true);
  };
  EXPECT_EQUAL(wavefronts(even, 4), 1);
  EXPECT_EQUAL(wavefronts(even, 8), 1);
  EXPECT_EQUAL(wavefronts(even, 16), 2);
  EXPECT_EQUAL(wavefronts(lower, 4), 1);
  EXPECT_EQUAL(wavefronts(lower, 8), 1);
  EXPECT_EQUAL(wavefronts(lower, 16), 2);
}

// A warp copies four lines of 128 bytes to shared lines of LD halves, as wmma_pipelined does (LD = 72, counted by ncu).
template <int LD>
__global__ void copy_lines(Global<const __half> a, Global<float> c, int times) {
  __shared__ SharedArray<__half, 4 * LD> tile;
  const int lane = static_cast<int>(threadIdx.x), at = lane / 8 * LD + lane % 8 * 8;
  tile[at] = __half(0.0f);
  for (int i = 0; i < times; ++i) {
    cp_async_16(SharedSpan<__half>(tile), at, a, lane / 8 * 256 + lane % 8 * 8);
    cp_async_commit();
    cp_async_wait<0>();
  }
  c[lane] = 0.0f;
}

template <int LD>
void expect_copied_sectors(int64_t sectors, int times = 1) {
  Bench bench;
  Buffer<__half> a(4 * 256, 0.0f, 0.0f);
  Buffer<float> c(32);
  const auto global_a = bench.input("A", a.data(), 4, 256, 256);
  launch(copy_lines<LD>, {.blocks = 1, .threads = 32}, kNoStream, global_a, bench.output("C", c.data(), 1, 32, 32),
         times);
  EXPECT_CLEAN(bench);
  EXPECT_EQUAL(bench.sum(Access::kAsyncLoad).sectors, sectors * times);
  EXPECT_EQUAL(bench.sum(Access::kAsyncLoad).requests, times);
  EXPECT_EQUAL(bench.get().counts().distinct_sectors[0][0], 16);
}

void copies_to_padded_lines() {
  expect_copied_sectors<64>(16);
  expect_copied_sectors<72>(18);  // lines 1 and 3 begin in the middle of 32 bytes: a 128-byte boundary cuts a sector
  expect_copied_sectors<80>(16);  // no boundary does
  expect_copied_sectors<72>(18, 2100);  // 4,201 records: the lane must not be merged between a copy's two
}

// A fragment load from a tile with lines of LD halves (SEEDS.md, B6.3, measured).
template <Major MAJOR>
__global__ void load_one(Global<float> c, int ld) {
  __shared__ SharedArray<__half, 16 * 144> tile;
  const int lane = static_cast<int>(threadIdx.x);
  for (int i = lane; i < 16 * 144; i += 32) tile[i] = __half(1.0f);
  __syncthreads();
  FragmentA<__half, MAJOR> frag;
  load_fragment(frag, SharedSpan<__half>(tile), 0, ld);
  c[lane] = 0.0f;
}

int64_t load_wavefronts(int ld, int arch = 90, int64_t instructions = 1) {
  Options options;
  options.arch = arch;
  Bench bench(options);
  Buffer<float> c(32);
  launch(load_one<Major::kRow>, {.blocks = 1, .threads = 32}, kNoStream, bench.output("C", c.data(), 1, 32, 32), ld);
  EXPECT_CLEAN(bench);
  EXPECT_EQUAL(bench.sum(Access::kFragmentLoad).instructions, instructions);
  return bench.sum(Access::kFragmentLoad).wavefronts;
}

void padding_of_fragment_loads() {
  const int measured[][2] = {{16, 8}, {24, 4}, {32, 16}, {128, 32}, {136, 4}, {144, 8}};
  for (const auto& [ld, wavefronts] : measured) EXPECT_EQUAL(load_wavefronts(ld), wavefronts);
  EXPECT_EQUAL(load_wavefronts(24, 75, 2), 4);  // LDSM.x2 twice
}

}  // namespace

void test_traffic() {
  banks();
  lanes_that_share_addresses();
  pairs_with_conflicts();
  inactive_lanes();
  copies_to_padded_lines();
  padding_of_fragment_loads();
}

}  // namespace tcgemm::emulator
