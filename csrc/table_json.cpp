// tcgemm_kernels(): the table of kernels for Python. In both libraries, because it needs neither torch nor CUDA.
#include <string>

#include "introspect.h"

namespace {

std::string dtypes_json(unsigned dtypes) {
  constexpr const char* kNames[] = {"float16", "bfloat16", "float32"};
  std::string json;
  for (int d = 0; d < 3; ++d) {
    if ((dtypes >> d & 1u) != 0) json += (json.empty() ? "\"" : ", \"") + std::string(kNames[d]) + "\"";
  }
  return "[" + json + "]";
}

std::string row_json(const char* name, unsigned dtypes, int arch, int bf16, int max, int tile, bool invariant,
                     const char* summary) {
  return std::string("{\"name\": \"") + name + "\", \"dtypes\": " + dtypes_json(dtypes) +
         ", \"min_arch\": " + std::to_string(arch) + ", \"min_arch_bf16\": " + std::to_string(bf16) +
         ", \"max_capability\": " + std::to_string(max) + ", \"tile\": " + std::to_string(tile) +
         ", \"batch_invariant\": " + (invariant ? "true" : "false") + ", \"summary\": \"" + summary + "\"}";
}

std::string table_json() {
  constexpr unsigned F16 = 1, BF16 = 2, F32 = 4;
  std::string json;
#define RUNG(name, source, family, dtypes, arch, bf16, max, tile, invariant, summary) \
  json += (json.empty() ? "" : ",\n ") + row_json(#name, dtypes, arch, bf16, max, tile, invariant, summary);
#include "kernels.def"
#undef RUNG
  return "[" + json + "]";
}

}  // namespace

const char* tcgemm_kernels() {
  static const std::string json = table_json();
  return json.c_str();
}
