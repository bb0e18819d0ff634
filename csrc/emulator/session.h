// One emulated launch: its options, its operands, what was found wrong and what was counted.
#pragma once
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "counts.h"
#include "global.h"
#include "hooks.h"
#include "trace.h"

namespace tcgemm::emulator {

enum class Fault {
  kOutOfBounds,            // global memory: outside the operand's rows x cols
  kSharedOutOfBounds,      // outside the shared array, or the launch's dynamic memory
  kUninitialisedShared,    // shared memory that this block has not written
  kUninitialisedOutput,    // an element of C read before it was written
  kUninitialisedFragment,  // a fragment used before it was filled or loaded
  kRace,                   // two accesses of shared memory, one a write, with no barrier between them
  kMisaligned,             // a vector, fragment or cp.async address
  kUnwaitedCopy,           // bytes of a cp.async that has not been waited for
  kDivergentBarrier,       // not all threads of the block reach the same __syncthreads()
  kDivergentWarp,          // the lanes of a warp do not reach the same warp-wide operation, or disagree on its operands
  kWrittenTwice,
  kNeverWritten,
  kUnknownOperand,  // memory that is no operand of the problem
  kLaunch,          // the launch itself: too many threads, too much shared memory
};
const char* fault_name(Fault fault);

struct Finding {
  Fault fault;
  std::string text;  // what, with numbers; then where
  const char* file = "";
  unsigned line = 0;
  int64_t block = -1;
  int warp = -1, lane = -1;
  int64_t index = -1;  // of the element in its operand or shared array
  int64_t times = 0;
};

enum class Order { kAscending, kDescending, kAlternate };  // of the warps in a block; alternate: block by block

struct Options {
  int os_threads = 1;
  Order order = Order::kAlternate;
  bool counts = true;
  int arch = 90;  // below 80, WMMA loads two matrices an instruction instead of four
  int64_t trace_block = -1;
  int max_findings = 100;
  std::function<void(int64_t done, int64_t total)> progress;
};

class Session {
 public:
  explicit Session(Options options) : options_(std::move(options)) {}

  // An operand of the problem. Its memory must outlive the session; accesses elsewhere are faults.
  void add_operand(const char* name, const Operand& x, int64_t rows, int64_t cols, int element_bytes, bool output);
  // The operand that `x` lies in.
  Extent* find(const Operand& x, int64_t rows, int64_t cols, int element_bytes);
  // Looks for elements of C that nobody wrote.
  void check_written();

  // Records a finding. `text` is called for the first one of its kind, site and space only.
  void report(Fault fault, const Site& site, const void* space, int64_t index,
              const std::function<std::string()>& text);
  void add(const Counts& counts);
  void reach(const Site& site);

  const Options& options() const { return options_; }
  const std::vector<Finding>& findings() const { return findings_; }
  const Counts& counts() const { return counts_; }
  const std::map<std::pair<std::string, unsigned>, int64_t>& reached() const { return reached_; }
  const std::vector<std::unique_ptr<Extent>>& extents() const { return extents_; }
  Trace trace;

 private:
  Options options_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Extent>> extents_;
  std::vector<Finding> findings_;
  std::map<std::tuple<Fault, unsigned, const void*>, size_t> known_;
  Counts counts_;
  std::map<std::pair<std::string, unsigned>, int64_t> reached_;  // file and line: how often
};

// The session of the launch that runs now. One at a time in a process.
extern Session* session;

}  // namespace tcgemm::emulator
