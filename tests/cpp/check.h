// The least that a test needs: CHECK counts failures and goes on, finish() turns them into an exit status.
#pragma once
#include <cstdio>

namespace test {
inline int failures = 0;
inline int checks = 0;
inline int finish() {
  std::printf("%d checks, %d failed\n", checks, failures);
  return failures == 0 && checks > 0 ? 0 : 1;
}
}  // namespace test

#define CHECK(condition, ...)                                              \
  do {                                                                     \
    ++test::checks;                                                        \
    if (!(condition)) {                                                    \
      ++test::failures;                                                    \
      std::fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
      std::fprintf(stderr, __VA_ARGS__);                                   \
      std::fprintf(stderr, "\n");                                          \
    }                                                                      \
  } while (0)
