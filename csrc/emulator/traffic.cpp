#include "traffic.h"

#include <algorithm>

namespace tcgemm::emulator {
namespace {

// Sorts, and returns how many different ones there are, which then come first.
int make_distinct(uint64_t* values, int count) {
  if (!std::is_sorted(values, values + count)) std::sort(values, values + count);
  return static_cast<int>(std::unique(values, values + count) - values);
}

// Whether lanes 2i and 2i + 1 name the same address wherever both are active. lds_probe.cu measured this on an H200
// with all lanes active and both halves of the warp alike. NVIDIA states the same of compute capability 7.x, and that
// lanes i and i ^ 2 do as well; no rung needs that, and it has not been measured.
bool shared_in_pairs(const uint64_t* addresses, const int* lanes, int count) {
  for (int i = 1; i < count; ++i) {
    if (lanes[i - 1] / 2 == lanes[i] / 2 && addresses[i - 1] != addresses[i]) return false;
  }
  return true;
}

// One pass: every bank gives one word at a time.
int busiest_bank(const uint64_t* addresses, int count, int bytes) {
  uint64_t words[128];
  int n = 0;
  for (int i = 0; i < count; ++i) {
    const uint64_t first = addresses[i] / 4, last = (addresses[i] + static_cast<uint64_t>(bytes) - 1) / 4;
    for (uint64_t word = first; word <= last; ++word) {
      if (n == 0 || words[n - 1] != word) words[n++] = word;
    }
  }
  n = make_distinct(words, n);
  int used[32] = {}, worst = 0;
  for (int w = 0; w < n; ++w) worst = std::max(worst, ++used[words[w] % 32]);
  return worst;
}

}  // namespace

int count_sectors(const uint64_t* addresses, int count, int bytes, std::vector<uint64_t>* touched) {
  uint64_t sectors[64];
  int n = 0;
  for (int i = 0; i < count; ++i) {
    const uint64_t first = addresses[i] / 32, last = (addresses[i] + static_cast<uint64_t>(bytes) - 1) / 32;
    if (n == 0 || sectors[n - 1] != first) sectors[n++] = first;  // neighbours mostly share a sector
    if (last != first) sectors[n++] = last;
  }
  n = make_distinct(sectors, n);
  if (touched != nullptr) touched->insert(touched->end(), sectors, sectors + n);
  return n;
}

int count_copy_sectors(const uint64_t* from, const uint64_t* to, int count) {
  uint64_t pairs[32];
  for (int i = 0; i < count; ++i) pairs[i] = from[i] / 32 << 16 | to[i] / 128;  // there are 227 KB of shared memory
  return make_distinct(pairs, count);
}

int count_wavefronts(const uint64_t* addresses, const int* lanes, int count, int bytes, bool pairs) {
  const int lanes_a_pass = bytes <= 4 ? 32 : bytes == 8 ? 16 : 8;
  const auto end_of_group = [&](int i, int group) {
    int end = i;
    while (end < count && lanes[end] / group == lanes[i] / group) ++end;
    return end;
  };
  int wavefronts = 0;
  for (int i = 0, end; i < count; i = end) {
    end = end_of_group(i, 2 * lanes_a_pass);
    const bool one_pass = pairs && bytes > 4 && shared_in_pairs(addresses + i, lanes + i, end - i);
    if (!one_pass) end = end_of_group(i, lanes_a_pass);
    wavefronts += busiest_bank(addresses + i, end - i, bytes);
  }
  return wavefronts;
}

}  // namespace tcgemm::emulator
