#include "traffic.h"

#include <algorithm>

namespace tcgemm::emulator {
namespace {

// Sorts, and returns how many different ones there are, which then come first.
int make_distinct(uint64_t* values, int count) {
  if (!std::is_sorted(values, values + count)) std::sort(values, values + count);
  return static_cast<int>(std::unique(values, values + count) - values);
}

// Whether every active lane shares its address with lane ^ mask, if that one is active.
bool agrees_with(int mask, const uint64_t* addresses, const int* lanes, int count) {
  uint64_t of_lane[32];
  bool active[32] = {};
  for (int i = 0; i < count; ++i) {
    of_lane[lanes[i]] = addresses[i];
    active[lanes[i]] = true;
  }
  for (int i = 0; i < count; ++i) {
    const int other = lanes[i] ^ mask;
    if (active[other] && of_lane[other] != addresses[i]) return false;
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
  // lds_probe.cu measured this on an H200: the whole warp has to agree, and in one of the two ways.
  const bool merges =
      pairs && bytes > 4 && (agrees_with(1, addresses, lanes, count) || agrees_with(2, addresses, lanes, count));
  int wavefronts = 0;
  for (int i = 0, end; i < count; i = end) {
    end = end_of_group(i, merges ? 2 * lanes_a_pass : lanes_a_pass);
    wavefronts += busiest_bank(addresses + i, end - i, bytes);
  }
  return wavefronts;
}

}  // namespace tcgemm::emulator
