// One block, step by step, as JSON: schema trace.schema.json, explained in docs/emulator.md.
#pragma once
#include <cstdint>
#include <map>
#include <source_location>
#include <string>
#include <vector>

namespace tcgemm::emulator {

struct Warp;
struct Column;
class SharedMemory;
enum class Access : uint8_t;

class Trace {
 public:
  // How 2-byte values are to be read.
  void set_bfloat16(bool yes) { bfloat16_ = yes; }

  // Leaves out all warps but this one; -1 keeps all.
  void set_warp(int warp) { only_warp_ = warp; }

  // An instruction of the warp's lanes. Needs the lanes' records and values still in place.
  void add_column(Warp& warp, const Column& column);
  // Anything that the warp does as a whole. `details`: further members, each starting with a comma, or nothing.
  void add_event(int warp, Access access, const std::source_location& site, const std::string& details);
  // The number of the fragment or register array that lies at this place in a lane's stack.
  int number(const void* object, const void* stack_top);

  // The block's shared arrays, once it has run.
  void describe(const SharedMemory& memory);

  const std::vector<std::string>& steps() const { return steps_; }
  const std::string& shared() const { return shared_; }

 private:
  struct Lanes;  // which take part in an instruction, and with what
  std::string value(const uint32_t* words, int bytes, int element_bytes) const;
  std::string register_details(const Lanes& lanes, int bytes) const;
  std::string global_details(const Lanes& lanes, Access access, int bytes) const;
  std::string shared_details(const Lanes& lanes, Access access, int bytes) const;

  bool wanted(int warp) const { return only_warp_ < 0 || only_warp_ == warp; }

  bool bfloat16_ = false;
  int only_warp_ = -1;
  std::vector<std::string> steps_;
  std::string shared_;
  std::map<int64_t, int> numbers_;
};

// A string as a JSON literal, with its quotes.
std::string quoted(const std::string& text);
// A path below csrc/, or the file's name.
std::string short_path(const char* file);

}  // namespace tcgemm::emulator
