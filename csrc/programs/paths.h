// What the stand-alone programs share: inputs whose product is known exactly, a check of every element, and times
// taken in one interleaved run. No torch. Inputs are small integers, exact in FP16, so every path must match the
// double-precision CPU product at every element: a mismatch is an error of indexing or synchronisation.
#pragma once
#include <cublas_v2.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "../device_info.h"
#include "../gemm.h"

namespace paths {

constexpr int kSizes[] = {1024, 2048};
constexpr int kRepeats = 50;
constexpr std::size_t kFlushBytes = std::size_t{256} << 20;  // several times the largest L2

inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}
inline void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  std::fprintf(stderr, "%s: %s\n", what, cublasGetStatusString(status));
  std::exit(1);
}

template <class T>
T* on_device(const std::vector<T>& host) {
  T* data = nullptr;
  check(cudaMalloc(&data, host.size() * sizeof(T)), "cudaMalloc");
  check(cudaMemcpy(data, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice), "copy to the device");
  return data;
}

// One size: the inputs in both precisions, the output, and the reference.
struct Case {
  int n;
  std::vector<float> a, b;  // a row-major, b column-major
  std::vector<double> reference;
  float *a32, *b32, *c;
  __half *a16, *b16;
};

// c[i][j] = sum a[i][kk] b[kk][j] in double, rows shared out among the threads, four at a time to reuse b.
inline void multiply_rows(const Case& problem, const std::vector<double>& b, int first, int last,
                          std::vector<double>& c) {
  const std::size_t n = problem.n;
  for (int i = first; i < last; i += 4) {
    for (std::size_t kk = 0; kk < n; ++kk) {
      for (int row = i; row < std::min(i + 4, last); ++row) {
        const double x = problem.a[row * n + kk];
        double* out = &c[row * n];
        const double* line = &b[kk * n];
        for (std::size_t j = 0; j < n; ++j) out[j] += x * line[j];
      }
    }
  }
}

inline std::vector<double> cpu_product(const Case& problem) {
  const std::size_t n = problem.n;
  std::vector<double> b(n * n), c(n * n, 0.0);
  for (std::size_t kk = 0; kk < n; ++kk) {
    for (std::size_t j = 0; j < n; ++j) b[kk * n + j] = problem.b[j * n + kk];
  }
  const int workers = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (int w = 0; w < workers; ++w) {
    const int first = problem.n * w / workers, last = problem.n * (w + 1) / workers;
    threads.emplace_back([&, first, last] { multiply_rows(problem, b, first, last, c); });
  }
  for (std::thread& thread : threads) thread.join();
  return c;
}

inline Case make_case(int n) {
  Case made{n, std::vector<float>(std::size_t(n) * n), std::vector<float>(std::size_t(n) * n), {}};
  std::mt19937 draw(n);
  for (float& x : made.a) x = static_cast<float>(static_cast<int>(draw() % 9) - 4);
  for (float& x : made.b) x = static_cast<float>(static_cast<int>(draw() % 9) - 4);
  made.reference = cpu_product(made);
  std::vector<__half> a16(made.a.size()), b16(made.b.size());
  std::transform(made.a.begin(), made.a.end(), a16.begin(), [](float x) { return __float2half(x); });
  std::transform(made.b.begin(), made.b.end(), b16.begin(), [](float x) { return __float2half(x); });
  made.a32 = on_device(made.a);
  made.b32 = on_device(made.b);
  made.a16 = on_device(a16);
  made.b16 = on_device(b16);
  made.c = on_device(std::vector<float>(made.a.size()));
  return made;
}

inline void release(const Case& done) {
  for (void* data : {static_cast<void*>(done.a32), static_cast<void*>(done.b32), static_cast<void*>(done.a16),
                     static_cast<void*>(done.b16), static_cast<void*>(done.c)}) {
    check(cudaFree(data), "cudaFree");
  }
}

struct Path {
  std::string name;
  std::function<void()> run;
  std::vector<float> ms;
};

inline Path rung(const char* shown, const char* algo, const Case& problem, tcgemm::DType dtype) {
  tcgemm::GemmProblem p;
  const bool half = dtype == tcgemm::DType::kFloat16;
  p.dtype = dtype;
  p.m = p.n = p.k = problem.n;
  p.a = {half ? static_cast<void*>(problem.a16) : problem.a32, p.k, 1};
  p.b = {half ? static_cast<void*>(problem.b16) : problem.b32, 1, p.k};
  p.c = {problem.c, p.n, 1};
  tcgemm::DeviceInfo device;
  check(static_cast<cudaError_t>(tcgemm::device_info(0, &device)), "device_info");
  const tcgemm::Choice choice = tcgemm::choose(p, device, algo);
  if (choice.kernel == nullptr) {
    std::fprintf(stderr, "%s: %s\n", algo, choice.reason.c_str());
    std::exit(1);
  }
  return {shown, [=] { check(static_cast<cudaError_t>(choice.kernel->entry->launch(p, device)), shown); }, {}};
}

inline Path cublas(cublasHandle_t handle, const Case& problem) {
  return {"cublasGemmEx", [=, n = problem.n, a = problem.a16, b = problem.b16, c = problem.c] {
            const float one = 1.0f, zero = 0.0f;
            // Row-major C is column-major C^T = B^T A^T.
            check(cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, n, n, n, &one, b, CUDA_R_16F, n, a, CUDA_R_16F, n,
                               &zero, c, CUDA_R_32F, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                  "cublasGemmEx");
          }};
}

inline void verify(const Path& path, const Case& problem) {
  std::vector<float> c(problem.reference.size());
  check(cudaMemset(problem.c, 0xff, c.size() * sizeof(float)), "poison C");  // NaN: what nobody writes is wrong
  path.run();
  check(cudaMemcpy(c.data(), problem.c, c.size() * sizeof(float), cudaMemcpyDeviceToHost), path.name.c_str());
  for (std::size_t i = 0; i < c.size(); ++i) {
    if (static_cast<double>(c[i]) == problem.reference[i]) continue;
    std::fprintf(stderr, "%s, N = %d: C[%zu][%zu] is %g, expected %g\n", path.name.c_str(), problem.n, i / problem.n,
                 i % problem.n, c[i], problem.reference[i]);
    std::exit(1);
  }
}

// All paths in turn, so that a change of clock hits each alike; a cold L2 before each.
inline void measure(std::vector<Path>& paths, void* flush) {
  cudaEvent_t start, stop;
  check(cudaEventCreate(&start), "cudaEventCreate");
  check(cudaEventCreate(&stop), "cudaEventCreate");
  for (int repeat = -1; repeat < kRepeats; ++repeat) {
    for (Path& path : paths) {
      float ms = 0;
      check(cudaMemsetAsync(flush, repeat & 1, kFlushBytes, nullptr), "flush");
      check(cudaEventRecord(start), "cudaEventRecord");
      path.run();
      check(cudaEventRecord(stop), "cudaEventRecord");
      check(cudaEventSynchronize(stop), path.name.c_str());
      check(cudaEventElapsedTime(&ms, start, stop), "cudaEventElapsedTime");
      if (repeat >= 0) path.ms.push_back(ms);  // the first round loads code
    }
  }
  check(cudaEventDestroy(start), "cudaEventDestroy");
  check(cudaEventDestroy(stop), "cudaEventDestroy");
}

inline double median(std::vector<float> taken) {
  std::sort(taken.begin(), taken.end());
  const std::size_t half = taken.size() / 2;
  return taken.size() % 2 != 0 ? taken[half] : 0.5 * (taken[half - 1] + taken[half]);
}

inline void print(const std::vector<Path>& paths, int n) {
  const double cublas_ms = median(paths.back().ms);
  std::printf("\n%-32s %9s %12s %14s\n", ("path, at N = " + std::to_string(n)).c_str(), "ms", "GFLOP/s",
              "%cuBLAS (f16)");
  for (const Path& path : paths) {
    const double ms = median(path.ms);
    std::printf("%-32s %9.3f %12.1f %14.1f\n", path.name.c_str(), ms, 2.0 * n * n * n / ms / 1e6,
                100.0 * cublas_ms / ms);
  }
}

using MakePaths = std::vector<Path> (*)(const Case& problem);

// For each size: checks every path that `make_paths` names, and cublasGemmEx, then times them and prints the table.
inline int run(MakePaths make_paths) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    std::fprintf(stderr, "no CUDA device\n");
    return 77;
  }
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  cublasHandle_t handle;
  check(cublasCreate(&handle), "cublasCreate");
  check(cublasSetMathMode(handle, CUBLAS_DEFAULT_MATH), "cublasSetMathMode");
  void* flush = nullptr;
  check(cudaMalloc(&flush, kFlushBytes), "cudaMalloc");
  std::printf("%s, compute capability %d.%d; medians of %d, cold L2, one interleaved run a size\n", properties.name,
              properties.major, properties.minor, kRepeats);
  std::vector<std::pair<int, std::vector<Path>>> tables;
  for (const int n : kSizes) {
    const Case problem = make_case(n);
    std::vector<Path> all = make_paths(problem);
    all.push_back(cublas(handle, problem));
    for (const Path& path : all) verify(path, problem);
    std::printf("N = %d: every path matches the CPU at all %d elements\n", n, n * n);
    measure(all, flush);
    tables.emplace_back(n, all);
    release(problem);
  }
  for (const auto& [n, all] : tables) print(all, n);
  check(cublasDestroy(handle), "cublasDestroy");
  check(cudaFree(flush), "cudaFree");
  return 0;
}

}  // namespace paths
