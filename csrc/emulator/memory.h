// device/memory.cuh under g++: the same names, with every access checked and counted.
#pragma once
#include <algorithm>
#include <bit>
#include <cstring>

#include "hooks.h"

#undef __shared__
#define __shared__ static thread_local  // one copy for the block that this OS thread runs
#define __launch_bounds__(...)
#define TCGEMM_NO_COPY(Class)   \
  Class(const Class&) = delete; \
  Class& operator=(const Class&) = delete

namespace tcgemm {

using emulator::At;
using emulator::Site;
using std::max;
using std::min;

template <class T>
struct Global;
template <class T>
class SharedSpan;

namespace emulator {

// What a[i] gives. It is read by conversion and written by assignment, nothing else: `auto v = a[i]`, `&a[i]` and
// `a[i] += x` would hide an access, so they do not compile.
template <class T>
class GlobalElement {
 public:
  using Value = std::remove_const_t<T>;
  GlobalElement(Extent* extent, const At& at) : extent_(extent), at_(at) {}
  TCGEMM_NO_COPY(GlobalElement);
  operator Value() && {
    Value x;
    global_load(extent_, at_.i, 1, &x, true, at_.site);
    return x;
  }
  void operator=(std::type_identity_t<Value> x) && requires(!std::is_const_v<T>) {
    global_store(extent_, at_.i, 1, &x, true, at_.site);
  }
  void operator=(GlobalElement&& x) && { std::move(*this) = static_cast<Value>(std::move(x)); }

 private:
  Extent* extent_;
  At at_;
};

template <class T>
class SharedElement {
 public:
  SharedElement(const View& view, const At& at) : view_(view), at_(at) {}
  TCGEMM_NO_COPY(SharedElement);
  operator T() && {
    T x;
    shared_load(view_, at_.i, sizeof(T), 1, &x, at_.site);
    return x;
  }
  void operator=(std::type_identity_t<T> x) && { shared_store(view_, at_.i, sizeof(T), 1, &x, at_.site); }
  void operator=(SharedElement&& x) && { std::move(*this) = static_cast<T>(std::move(x)); }

 private:
  View view_;
  At at_;
};

}  // namespace emulator

template <class T>
struct Global {
  emulator::Extent* extent = nullptr;
  emulator::GlobalElement<T> operator[](const At& at) const { return {extent, at}; }
};

template <class T>
Global<T> global_operand(const Operand& x, int64_t rows, int64_t cols) {
  return {emulator::find_extent(x, rows, cols, sizeof(T))};
}

template <class T>
class SharedSpan {
 public:
  explicit SharedSpan(const emulator::View& view) : view_(view) {}
  emulator::SharedElement<T> operator[](const At& at) const { return {view_, at}; }
  SharedSpan from(int i) const {
    return SharedSpan({view_.region, view_.first + i * static_cast<int>(sizeof(T)), view_.end});
  }
  const emulator::View& view() const { return view_; }

 private:
  emulator::View view_;
};

template <class T, int N>
class SharedArray {
 public:
  constexpr SharedArray(Site declared = Site::current()) : declared_(declared) {}
  TCGEMM_NO_COPY(SharedArray);
  emulator::SharedElement<T> operator[](const At& at) const { return {view(), at}; }
  operator SharedSpan<T>() const { return SharedSpan<T>(view()); }
  SharedSpan<T> from(int i) const { return SharedSpan<T>(view()).from(i); }

 private:
  emulator::View view() const { return emulator::static_shared(this, N * sizeof(T), sizeof(T), declared_); }
  Site declared_;
};

template <class T>
SharedSpan<T> dynamic_shared(int offset, int count, Site site = Site::current()) {
  return SharedSpan<T>(emulator::dynamic_shared_view(offset, count, sizeof(T), site));
}

#ifdef TCGEMM_EMULATOR_TRACE
namespace emulator {
template <class T>
class RegisterElement {
 public:
  RegisterElement(T* array, const At& at) : array_(array), at_(at) {}
  operator T() const {
    register_access(array_, static_cast<int>(at_.i), array_ + at_.i, sizeof(T), std::is_integral_v<T>, false, at_.site);
    return array_[at_.i];
  }
  void operator=(std::type_identity_t<T> x) const {
    array_[at_.i] = x;
    register_access(array_, static_cast<int>(at_.i), &x, sizeof(T), std::is_integral_v<T>, true, at_.site);
  }
  void operator=(const RegisterElement& x) const { *this = static_cast<T>(x); }
  void operator+=(std::type_identity_t<T> x) const { *this = static_cast<T>(*this) + x; }

 private:
  T* array_;
  At at_;
};
}  // namespace emulator

template <class T, int N>
struct Reg {
  T v[N];
  emulator::RegisterElement<T> operator[](const At& at) { return {v, at}; }
  emulator::RegisterElement<T> operator[](const At& at) const { return {const_cast<T*>(v), at}; }
};
#else
template <class T, int N>
struct Reg {
  T v[N];
  T& operator[](int i) { return v[i]; }
  const T& operator[](int i) const { return v[i]; }
};
#endif

template <class T>
T load_or(Global<const T> a, const At& at, bool in, std::type_identity_t<T> otherwise) {
  T x = otherwise;
  emulator::global_load(a.extent, at.i, 1, &x, in, at.site);
  return x;
}

template <class T>
void store_if(Global<T> c, const At& at, bool in, std::type_identity_t<T> x) {
  emulator::global_store(c.extent, at.i, 1, &x, in, at.site);
}

template <int N, class T>
Vec<T, N> load_vec(Global<const T> a, const At& at) {
  Vec<T, N> x;
  emulator::global_load(a.extent, at.i, N, &x, true, at.site);
  return x;
}
template <int N, class T>
Vec<T, N> load_vec(const SharedSpan<T>& tile, const At& at) {
  Vec<T, N> x;
  emulator::shared_load(tile.view(), at.i, sizeof(T), N, &x, at.site);
  return x;
}
template <class T, int N>
void store_vec(const SharedSpan<T>& tile, const At& at, const Vec<T, N>& x) {
  emulator::shared_store(tile.view(), at.i, sizeof(T), N, &x, at.site);
}
template <class T, int N>
void store_vec(Global<T> c, const At& at, const Vec<T, N>& x) {
  emulator::global_store(c.extent, at.i, N, &x, true, at.site);
}

template <class T, int N>
void store_vec_if(Global<T> c, const At& at, bool in, const Vec<T, N>& x) {
  emulator::global_store(c.extent, at.i, N, &x, in, at.site);
}

// Both paths of the branch appear in every lane's record, so that the lanes of a warp stay comparable.
template <int N, class T>
Vec<T, N> load_vec_or_zero(Global<const T> a, const At& at, int valid) {
  Vec<T, N> x;
  emulator::global_load(a.extent, at.i, N, &x, valid >= N, at.site);
  if (valid >= N) {
    emulator::global_skip(a.extent, N, sizeof(T), at.site);
    return x;
  }
  for (int e = 0; e < N; ++e) {
    x.v[e] = T(0.0f);
    emulator::global_load(a.extent, at.i + e, 1, &x.v[e], e < valid, at.site);
  }
  return x;
}

}  // namespace tcgemm

#undef TCGEMM_NO_COPY
#define threadIdx (::tcgemm::emulator::position->thread)
#define blockIdx (::tcgemm::emulator::position->block)
#define blockDim (::tcgemm::emulator::position->block_dim)
#define gridDim (::tcgemm::emulator::position->grid_dim)

inline void __syncthreads(tcgemm::Site site = tcgemm::Site::current()) { tcgemm::emulator::block_barrier(site); }
inline void __syncwarp(unsigned = 0xffffffffu, tcgemm::Site site = tcgemm::Site::current()) {
  tcgemm::emulator::warp_barrier(site);
}

template <class T>
T __shfl_sync(unsigned, T x, int from, int width = 32, tcgemm::Site site = tcgemm::Site::current()) {
  static_assert(sizeof(T) == 4, "shuffles move 4 bytes");
  const int lane = static_cast<int>(threadIdx.x % 32), group = lane / width * width;
  return std::bit_cast<T>(tcgemm::emulator::shuffle(std::bit_cast<uint32_t>(x), group + from % width, site));
}
template <class T>
T __shfl_xor_sync(unsigned, T x, int mask, int width = 32, tcgemm::Site site = tcgemm::Site::current()) {
  static_assert(sizeof(T) == 4, "shuffles move 4 bytes");
  const int lane = static_cast<int>(threadIdx.x % 32), from = lane ^ mask;
  const bool inside = from < lane / width * width + width;
  return std::bit_cast<T>(tcgemm::emulator::shuffle(std::bit_cast<uint32_t>(x), inside ? from : lane, site));
}
template <class T>
T __shfl_down_sync(unsigned, T x, int by, int width = 32, tcgemm::Site site = tcgemm::Site::current()) {
  static_assert(sizeof(T) == 4, "shuffles move 4 bytes");
  const int lane = static_cast<int>(threadIdx.x % 32);
  const bool inside = lane % width + by < width;
  return std::bit_cast<T>(tcgemm::emulator::shuffle(std::bit_cast<uint32_t>(x), inside ? lane + by : lane, site));
}
template <class T>
T __shfl_up_sync(unsigned, T x, int by, int width = 32, tcgemm::Site site = tcgemm::Site::current()) {
  static_assert(sizeof(T) == 4, "shuffles move 4 bytes");
  const int lane = static_cast<int>(threadIdx.x % 32);
  const bool inside = lane % width - by >= 0;
  return std::bit_cast<T>(tcgemm::emulator::shuffle(std::bit_cast<uint32_t>(x), inside ? lane - by : lane, site));
}
