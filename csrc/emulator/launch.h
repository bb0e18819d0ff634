// device/launch.cuh under g++: the grid runs here and now, fibre by fibre.
#pragma once
#include <tuple>

#include "hooks.h"

namespace tcgemm {

constexpr int kDefaultSharedBytes = 48 * 1024;

struct LaunchShape {
  int64_t blocks = 1;
  int threads = 1;
  int shared_bytes = 0;
};

template <class... Params, class... Args>
int launch(void (*kernel)(Params...), const LaunchShape& shape, const Stream& stream, Args&&... args) {
  if (stream.footprint != nullptr) {
    *stream.footprint = {reinterpret_cast<const void*>(kernel), shape.threads, shape.shared_bytes};
    return 0;
  }
  struct Call {
    void (*kernel)(Params...);
    std::tuple<std::remove_cvref_t<Params>...> args;
  };
  const Call call{kernel, {static_cast<Args&&>(args)...}};
  const auto body = [](const void* context) {
    const Call& each = *static_cast<const Call*>(context);
    std::apply(each.kernel, each.args);
  };
  return emulator::run_grid({shape.blocks, shape.threads, shape.shared_bytes}, body, &call);
}

}  // namespace tcgemm
