// What one instruction of a warp asks of the memory system. docs/emulator.md says what was measured.
#pragma once
#include <cstdint>
#include <vector>

namespace tcgemm::emulator {

// 32-byte sectors that the addresses touch. Appends them to `touched` unless it is null.
int count_sectors(const uint64_t* addresses, int count, int bytes, std::vector<uint64_t>* touched);
// Sectors that a cp.async of 16 bytes a lane fetches: one that goes to two 128-byte lines of shared memory counts
// twice.
int count_copy_sectors(const uint64_t* from, const uint64_t* to, int count);
// Passes that shared memory needs: 8 or 16 bytes are served to 16 or 8 lanes at a time, and each pass takes as long as
// its busiest bank. `lanes`: which lane each address belongs to. `pairs`: a load (not ldmatrix) serves twice as many
// lanes in a pass when each active lane shares its address with lane ^ 1, or each with lane ^ 2.
int count_wavefronts(const uint64_t* addresses, const int* lanes, int count, int bytes, bool pairs);

}  // namespace tcgemm::emulator
