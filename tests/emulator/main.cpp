// ctest: what the emulator must find, must not find, and must count, on kernels of a few lines.
#include "harness.h"

int main() {
  tcgemm::emulator::test_machine();
  tcgemm::emulator::test_operands();
  tcgemm::emulator::test_copies();
  tcgemm::emulator::test_fragments();
  tcgemm::emulator::test_counts();
  tcgemm::emulator::test_traffic();
  tcgemm::emulator::test_mma();
  return test::finish();
}
