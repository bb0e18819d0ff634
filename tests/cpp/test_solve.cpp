// solve() through its public header alone, the way a program without torch calls it.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "check.h"
#include "solve.h"

namespace {

constexpr std::chrono::milliseconds kBusy{200};

// Exactly the capstone's signature: another does not convert.
void (*const kSignature)(const __half*, const __half*, float*, std::size_t, std::size_t, std::size_t,
                         cudaStream_t) = solve;

bool ok(cudaError_t error, const char* what) {
  CHECK(error == cudaSuccess, "%s: %s", what, cudaGetErrorString(error));
  return error == cudaSuccess;
}

// Small integers: sums are exact in FP32, so results are compared bit for bit. a and b differ from each other and
// from their transposes.
struct Operands {
  std::size_t m, n, k;
  std::vector<__half> a, b;
  std::vector<float> expected;

  Operands(std::size_t rows, std::size_t cols, std::size_t depth, int seed)
      : m(rows), n(cols), k(depth), a(m * k), b(k * n), expected(m * n) {
    std::vector<int> whole_a(a.size()), whole_b(b.size());
    for (std::size_t i = 0; i < a.size(); ++i) whole_a[i] = static_cast<int>((i * 7 + seed) % 9) - 4;
    for (std::size_t i = 0; i < b.size(); ++i) whole_b[i] = static_cast<int>((i * 5 + i / 11 + seed) % 9) - 4;
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = __float2half(static_cast<float>(whole_a[i]));
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = __float2half(static_cast<float>(whole_b[i]));
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        int sum = 0;
        for (std::size_t kk = 0; kk < k; ++kk) sum += whole_a[i * k + kk] * whole_b[j * k + kk];
        expected[i * n + j] = static_cast<float>(sum);
      }
    }
  }
};

// Device copies with a guard of 64 floats on both sides of c.
struct OnDevice {
  static constexpr std::size_t kGuard = 64;
  const Operands& host;
  __half *a = nullptr, *b = nullptr;
  float* memory = nullptr;

  explicit OnDevice(const Operands& operands) : host(operands) {
    ok(cudaMalloc(&a, (host.a.size() + 1) * sizeof(__half)), "cudaMalloc");
    ok(cudaMalloc(&b, (host.b.size() + 1) * sizeof(__half)), "cudaMalloc");
    ok(cudaMalloc(&memory, bytes()), "cudaMalloc");
    ok(cudaMemset(a, 0xff, host.a.size() * sizeof(__half)), "poison a");
    ok(cudaMemset(b, 0xff, host.b.size() * sizeof(__half)), "poison b");
    ok(cudaMemset(memory, 0xff, bytes()), "poison c");
  }
  ~OnDevice() {
    cudaFree(a);
    cudaFree(b);
    cudaFree(memory);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  std::size_t bytes() const { return (host.m * host.n + 2 * kGuard) * sizeof(float); }
  float* c() const { return memory + kGuard; }

  void upload(cudaStream_t stream) const {
    ok(cudaMemcpyAsync(a, host.a.data(), host.a.size() * sizeof(__half), cudaMemcpyHostToDevice, stream), "copy a");
    ok(cudaMemcpyAsync(b, host.b.data(), host.b.size() * sizeof(__half), cudaMemcpyHostToDevice, stream), "copy b");
  }
  void run(cudaStream_t stream) const { kSignature(a, b, c(), host.m, host.n, host.k, stream); }

  void check(const char* what) const {
    std::vector<float> got(host.m * host.n + 2 * kGuard);
    if (!ok(cudaDeviceSynchronize(), what)) return;
    ok(cudaMemcpy(got.data(), memory, bytes(), cudaMemcpyDeviceToHost), what);
    CHECK(std::memcmp(got.data() + kGuard, host.expected.data(), host.m * host.n * sizeof(float)) == 0,
          "%s: %zu,%zu,%zu is wrong", what, host.m, host.n, host.k);
    for (std::size_t i = 0; i < kGuard; ++i) {
      unsigned before = 0, after = 0;
      std::memcpy(&before, &got[i], sizeof before);
      std::memcpy(&after, &got[kGuard + host.m * host.n + i], sizeof after);
      CHECK(before == 0xffffffffu && after == 0xffffffffu, "%s: wrote outside of c", what);
    }
  }
};

// The first call of the process, so that neither code loading nor device queries may break a capture. Capturing also
// forbids allocation and synchronisation.
void first_call_inside_a_capture(cudaStream_t stream) {
  const Operands host(100, 52, 75, 1);
  const OnDevice device(host);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  std::size_t nodes = 0;
  ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin capture");
  device.run(stream);
  if (!ok(cudaStreamEndCapture(stream, &graph), "end capture")) return;
  ok(cudaGraphGetNodes(graph, nullptr, &nodes), "cudaGraphGetNodes");
  CHECK(nodes > 0, "the graph is empty: solve() did not use its stream");
  ok(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  device.upload(stream);
  ok(cudaGraphLaunch(executable, stream), "cudaGraphLaunch");
  device.check("captured");
  ok(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
  ok(cudaGraphDestroy(graph), "cudaGraphDestroy");
}

void shapes(cudaStream_t stream) {
  const std::size_t sizes[][3] = {{16, 16, 16},  {16, 8, 16}, {1, 1, 1},    {128, 128, 128}, {61, 63, 617},
                                  {33, 7, 15},   {7, 130, 1}, {129, 1, 17}, {200, 96, 608},  {65, 257, 31},
                                  {256, 256, 0}, {0, 5, 4},   {5, 0, 4}};
  int seed = 0;
  for (const auto& [m, n, k] : sizes) {
    const Operands host(m, n, k, ++seed);
    const OnDevice device(host);
    device.upload(stream);
    device.run(stream);
    device.check("shapes");
  }
}

// The stream is busy when the inputs are written: a solve() on another stream would read NaN, and one that
// synchronises would keep the host.
void enqueued_on_the_given_stream(cudaStream_t stream) {
  using namespace std::chrono;
  const Operands host(150, 140, 130, 3);
  const OnDevice device(host);
  ok(cudaLaunchHostFunc(
         stream, [](void*) { std::this_thread::sleep_for(kBusy); }, nullptr),
     "cudaLaunchHostFunc");
  __half *pinned_a = nullptr, *pinned_b = nullptr;  // a copy from pageable memory would wait for the stream
  ok(cudaMallocHost(&pinned_a, host.a.size() * sizeof(__half)), "cudaMallocHost");
  ok(cudaMallocHost(&pinned_b, host.b.size() * sizeof(__half)), "cudaMallocHost");
  std::memcpy(pinned_a, host.a.data(), host.a.size() * sizeof(__half));
  std::memcpy(pinned_b, host.b.data(), host.b.size() * sizeof(__half));
  ok(cudaMemcpyAsync(device.a, pinned_a, host.a.size() * sizeof(__half), cudaMemcpyHostToDevice, stream), "copy a");
  ok(cudaMemcpyAsync(device.b, pinned_b, host.b.size() * sizeof(__half), cudaMemcpyHostToDevice, stream), "copy b");
  const auto start = steady_clock::now();
  device.run(stream);
  CHECK(steady_clock::now() - start < kBusy / 2, "solve() waited for the stream");
  device.check("busy stream");
  cudaFreeHost(pinned_a);
  cudaFreeHost(pinned_b);
}

void allocates_nothing(cudaStream_t stream) {
  const Operands host(300, 200, 100, 5);
  const OnDevice device(host);
  device.upload(stream);
  device.run(stream);
  ok(cudaDeviceSynchronize(), "first call");
  std::size_t before = 0, after = 0, total = 0;
  ok(cudaMemGetInfo(&before, &total), "cudaMemGetInfo");
  for (int i = 0; i < 1000; ++i) device.run(stream);
  ok(cudaDeviceSynchronize(), "1000 calls");
  ok(cudaMemGetInfo(&after, &total), "cudaMemGetInfo");
  CHECK(after == before, "%zu bytes of device memory gone after 1000 calls", before - after);
  device.check("1000 calls");
}

}  // namespace

int main() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    std::printf("skipped: no CUDA device\n");
    return 77;
  }
  cudaStream_t stream = nullptr;
  if (!ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate")) return 1;
  first_call_inside_a_capture(stream);
  shapes(stream);
  enqueued_on_the_given_stream(stream);
  allocates_nothing(stream);
  ok(cudaStreamDestroy(stream), "cudaStreamDestroy");
  return test::finish();
}
