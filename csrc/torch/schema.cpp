// Every op's schema. STABLE_TORCH_LIBRARY may stand once for a namespace; all else uses _IMPL.
//
// For each op X there are two private twins. `_X` is X below autograd: X's own kernels, and a fallthrough on the
// Autograd key. `_X_grad` is X above it: Python puts an autograd function on its Autograd key; without Python it
// computes like X. X's own Autograd kernel (front.cpp) picks one of them. Twins name a kernel by its id (call.h).
#include "call.h"

namespace {

struct Schema {
  std::string name, before, algo, after;  // name(before algo after
};
// An argument called `kernel` or `cls` would break Inductor, hence `algo`.
const std::string kAlgo = ", str? algo=None", kAlgoId = ", int algo=0";
const Schema kSchemas[] = {
    {"mm", "(Tensor a, Tensor b, *", kAlgo, ", bool batch_invariant=False) -> Tensor"},
    {"mm_out", "(Tensor a, Tensor b, *, Tensor(a!) out", kAlgo, ") -> ()"},
    {"sgemm", "(Tensor a, Tensor b, *", kAlgo, ") -> Tensor"},
    {"sgemm_out", "(Tensor a, Tensor b, *, Tensor(a!) out", kAlgo, ") -> ()"},
    {"cublas_mm", "(Tensor a, Tensor b", "", ") -> Tensor"},
    {"cublaslt_mm", "(Tensor a, Tensor b, int heuristic", "", ") -> Tensor"},
    {"reference_mm", "(Tensor a, Tensor b", "", ") -> Tensor"},
};

}  // namespace

STABLE_TORCH_LIBRARY(tcgemm, m) {
  for (const auto& [name, before, algo, after] : kSchemas) {
    m.def((name + before + algo + after).c_str());
    for (const std::string& twin : {"_" + name, "_" + name + "_grad"}) {
      m.def((twin + before + (algo.empty() ? "" : kAlgoId) + after).c_str());
    }
  }
  m.def("cublaslt_heuristics(Tensor a, Tensor b) -> int");
}
