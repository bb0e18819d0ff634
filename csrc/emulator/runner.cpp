// The emulator's program: reads one problem a line on stdin, writes one JSON line for each on stdout.
//
// A line is `key=value` pairs separated by spaces: algo, dtype (float16, bfloat16, float32), m, n, k; for each x of
// a, b, c: x (a file: the matrix's elements row by row; c is written), x_strides (row,column), x_offset (elements from
// a 256-byte aligned address); and optionally threads, order (ascending, descending, alternate), counts (0 or 1),
// progress (0 or 1), trace (a file), trace_block,
// trace_warp, capability. An algo of "solve" calls solve().
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>

#include "report.h"
#include "solve_entry.h"

namespace tcgemm::emulator {
namespace {

class Request {
 public:
  explicit Request(const std::string& line) {
    std::istringstream in(line);
    for (std::string word; in >> word;) {
      const size_t equals = word.find('=');
      if (equals == std::string::npos) throw std::runtime_error("\"" + word + "\" is not key=value");
      values_[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }
  std::string text(const std::string& key) const {
    const auto found = values_.find(key);
    if (found == values_.end()) throw std::runtime_error("the request lacks " + key);
    return found->second;
  }
  std::string text(const std::string& key, const std::string& otherwise) const {
    const auto found = values_.find(key);
    return found == values_.end() ? otherwise : found->second;
  }
  int64_t number(const std::string& key) const { return std::stoll(text(key)); }
  int64_t number(const std::string& key, int64_t otherwise) const {
    return std::stoll(text(key, std::to_string(otherwise)));
  }

 private:
  std::map<std::string, std::string> values_;
};

// An operand in memory of its own: padding holds NaN, and what lies beyond is not touched by the emulator.
class Matrix {
 public:
  Matrix(const Request& request, const std::string& name, int64_t rows, int64_t cols, int64_t bytes)
      : rows_(rows), cols_(cols), bytes_(bytes), file_(request.text(name)) {
    const std::string strides = request.text(name + "_strides");
    operand_.row_stride = std::stoll(strides);
    operand_.col_stride = std::stoll(strides.substr(strides.find(',') + 1));
    const int64_t offset = request.number(name + "_offset", 0) * bytes;
    const int64_t span = rows * cols == 0 ? 0 : (rows - 1) * operand_.row_stride + (cols - 1) * operand_.col_stride + 1;
    const auto size = static_cast<size_t>((offset + span * bytes + 255) / 256 * 256 + 256);
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(256, size)));
    if (memory_ == nullptr) throw std::runtime_error("no memory for " + name);
    std::memset(memory_.get(), 0xff, size);
    operand_.data = memory_.get() + offset;
  }
  void read() {
    std::ifstream in(file_, std::ios::binary);
    std::string line(static_cast<size_t>(cols_ * bytes_), '\0');
    for (int64_t row = 0; row < rows_; ++row) {
      if (!in.read(line.data(), cols_ * bytes_)) throw std::runtime_error(file_ + " is too short");
      if (operand_.col_stride == 1) {
        std::memcpy(at(row, 0), line.data(), line.size());
      } else {
        for (int64_t col = 0; col < cols_; ++col) std::memcpy(at(row, col), &line[col * bytes_], bytes_);
      }
    }
  }
  void write() const {
    std::ofstream out(file_, std::ios::binary);
    for (int64_t row = 0; row < rows_; ++row) {
      for (int64_t col = 0; col < cols_; ++col) out.write(reinterpret_cast<const char*>(at(row, col)), bytes_);
    }
    if (!out) throw std::runtime_error("cannot write " + file_);
  }
  const Operand& operand() const { return operand_; }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::byte* at(int64_t row, int64_t col) const {
    return static_cast<std::byte*>(const_cast<void*>(operand_.data)) +
           (row * operand_.row_stride + col * operand_.col_stride) * bytes_;
  }
  int64_t rows_, cols_, bytes_;
  std::string file_;
  std::unique_ptr<std::byte, Free> memory_;
  Operand operand_;
};

DType dtype_of(const std::string& name) {
  if (name == "float16") return DType::kFloat16;
  if (name == "bfloat16") return DType::kBFloat16;
  if (name == "float32") return DType::kFloat32;
  throw std::runtime_error("dtype " + name + " is none of float16, bfloat16, float32");
}

Options options_of(const Request& request) {
  Options options;
  options.os_threads = static_cast<int>(request.number("threads", 1));
  const std::string order = request.text("order", "alternate");
  options.order = order == "ascending"    ? Order::kAscending
                  : order == "descending" ? Order::kDescending
                                          : Order::kAlternate;
  options.arch = static_cast<int>(request.number("capability", 90));
  options.counts = request.number("counts", 1) != 0;
  if (!request.text("trace", "").empty()) options.trace_block = request.number("trace_block", 0);
  if (request.number("progress", 0) != 0) {
    options.progress = [](int64_t done, int64_t total) {
      std::printf("{\"progress\":[%lld,%lld]}\n", static_cast<long long>(done), static_cast<long long>(total));
      std::fflush(stdout);
    };
  }
  return options;
}

// 0, or why the launch failed.
std::string launch(const std::string& algo, const GemmProblem& problem, const DeviceInfo& device) {
  if (algo == "solve") return call_solve(problem);
  const Kernel* kernel = find_kernel(algo.c_str());
  if (kernel == nullptr) return "algo=\"" + algo + "\" is no kernel; there are " + kernel_names();
  if (kernel->entry->launch == nullptr) return "this program was built without " + algo;
  if (const std::string why = why_not(*kernel, problem, device); !why.empty()) return why;
  const int error = kernel->entry->launch(problem, device);
  return error == 0 ? "" : "the launch failed with CUDA error " + std::to_string(error);
}

std::string run(const Request& request) {
  const std::string algo = request.text("algo");
  GemmProblem p;
  p.dtype = dtype_of(request.text("dtype"));
  p.m = request.number("m");
  p.n = request.number("n");
  p.k = request.number("k");
  const int64_t bytes = element_size(p.dtype);
  Matrix a(request, "a", p.m, p.k, bytes), b(request, "b", p.k, p.n, bytes), c(request, "c", p.m, p.n, 4);
  a.read();
  b.read();
  p.a = a.operand();
  p.b = b.operand();
  p.c = c.operand();
  Session run(options_of(request));
  session = &run;
  run.trace.set_bfloat16(p.dtype == DType::kBFloat16);
  run.trace.set_warp(static_cast<int>(request.number("trace_warp", -1)));
  run.add_operand("A", p.a, p.m, p.k, static_cast<int>(bytes), false);
  run.add_operand("B", p.b, p.k, p.n, static_cast<int>(bytes), false);
  run.add_operand("C", p.c, p.m, p.n, 4, true);
  const int capability = static_cast<int>(request.number("capability", 90));
  const std::clock_t start = std::clock();
  const std::string error = launch(algo, p, {capability, capability, 132});
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  if (!error.empty()) return "{\"error\":" + quoted(error) + ",\"findings\":" + findings_json(run) + "}";
  run.check_written();
  c.write();
  if (const std::string file = request.text("trace", ""); !file.empty()) {
    std::ostringstream head;
    head << "\"version\":1,\"kernel\":" << quoted(algo) << ",\"dtype\":" << quoted(request.text("dtype"))
         << ",\"m\":" << p.m << ",\"n\":" << p.n << ",\"k\":" << p.k << ",\"block\":" << run.options().trace_block
         << ",\"arch\":" << capability;
    std::ofstream(file) << trace_json(run, head.str());
  }
  const Kernel* kernel = find_kernel(algo.c_str());
  const int64_t declared =
      kernel != nullptr && kernel->entry->global_reads != nullptr ? kernel->entry->global_reads(p) : -1;
  return "{\"cpu_seconds\":" + std::to_string(seconds) + ",\"declared_reads\":" + std::to_string(declared) +
         ",\"findings\":" + findings_json(run) + ",\"reached\":" + reached_json(run) +
         ",\"counts\":" + counts_json(run) + "}";
}

}  // namespace
}  // namespace tcgemm::emulator

int main() {
  using namespace tcgemm::emulator;
  for (std::string line; std::getline(std::cin, line);) {
    std::string answer;
    try {
      answer = run(Request(line));
    } catch (const std::exception& e) {
      answer = "{\"error\":" + quoted(e.what()) + ",\"findings\":[]}";
    }
    session = nullptr;
    std::printf("%s\n", answer.c_str());
    std::fflush(stdout);
  }
}
