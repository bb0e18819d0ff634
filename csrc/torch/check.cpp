// The checks of every op and their texts. tcgemm/ops.py has the same for fake tensors, whose sizes may be symbols.
#include <numeric>
#include <stdexcept>
#include <vector>

#include "../gemm.h"
#include "call.h"

namespace tcgemm {
namespace {

struct AlgoName {
  const char* name;
  unsigned dtypes;
};

constexpr unsigned F16 = 1u << static_cast<int>(DType::kFloat16);
constexpr unsigned BF16 = 1u << static_cast<int>(DType::kBFloat16);
constexpr unsigned F32 = 1u << static_cast<int>(DType::kFloat32);
constexpr AlgoName kAlgos[] = {
#define RUNG(name, source, family, dtypes, ...) {#name, dtypes},
#include "../kernels.def"
#undef RUNG
};

// Names in the order of the table, of those kernels that take one of `dtypes`.
std::string algo_names(unsigned dtypes) {
  std::string names;
  for (const AlgoName& algo : kAlgos) {
    if ((algo.dtypes & dtypes) != 0) names += (names.empty() ? "" : ", ") + std::string(algo.name);
  }
  return names;
}

struct DtypeName {
  int32_t (*code)();
  const char* name;
  unsigned bit;
};
const DtypeName kDtypes[] = {
    {aoti_torch_dtype_float16, "torch.float16", F16},
    {aoti_torch_dtype_bfloat16, "torch.bfloat16", BF16},
    {aoti_torch_dtype_float32, "torch.float32", F32},
    {aoti_torch_dtype_float64, "torch.float64", 0},
    {aoti_torch_dtype_uint8, "torch.uint8", 0},
    {aoti_torch_dtype_int8, "torch.int8", 0},
    {aoti_torch_dtype_int16, "torch.int16", 0},
    {aoti_torch_dtype_int32, "torch.int32", 0},
    {aoti_torch_dtype_int64, "torch.int64", 0},
    {aoti_torch_dtype_bool, "torch.bool", 0},
    {aoti_torch_dtype_complex64, "torch.complex64", 0},
    {aoti_torch_dtype_complex128, "torch.complex128", 0},
    {aoti_torch_dtype_float8_e4m3fn, "torch.float8_e4m3fn", 0},
    {aoti_torch_dtype_float8_e5m2, "torch.float8_e5m2", 0},
};

DtypeName dtype_of(AtenTensorHandle x) {
  int32_t code = 0;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(x, &code));
  for (const DtypeName& dtype : kDtypes) {
    if (dtype.code() == code) return dtype;
  }
  return {nullptr, "another dtype", 0};
}

std::string dtype_names(unsigned dtypes) {
  std::string names;
  for (const DtypeName& dtype : kDtypes) {
    if ((dtype.bit & dtypes) != 0) names += (names.empty() ? "" : " or ") + std::string(dtype.name);
  }
  return names;
}

std::string device_of(AtenTensorHandle x) {
  int32_t type = 0, index = 0;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(x, &type));
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_index(x, &index));
  if (type == aoti_torch_device_type_cpu()) return "cpu";
  if (type == aoti_torch_device_type_meta()) return "meta";
  const std::string name = type == aoti_torch_device_type_cuda() ? "cuda" : "device type " + std::to_string(type);
  return index < 0 ? name : name + ":" + std::to_string(index);
}

int64_t dim_of(AtenTensorHandle x) {
  int64_t dim = 0;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_dim(x, &dim));
  return dim;
}

// Not through torch::stable::Tensor: it throws where sizes are symbols.
bool read_sizes(AtenTensorHandle x, std::vector<int64_t>& sizes) {
  sizes.resize(dim_of(x));
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (aoti_torch_get_size(x, static_cast<int64_t>(d), &sizes[d]) != AOTI_TORCH_SUCCESS) return false;
  }
  return true;
}

std::string text_of(const std::vector<int64_t>& sizes) {
  std::string text;
  for (int64_t size : sizes) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text.empty() ? "no dimension" : text;
}

void check_rank(const OpFacts& op, const char* name, AtenTensorHandle x) {
  const int64_t dim = dim_of(x);
  if (dim == 2) return;
  fail(std::string(op.name) + ": " + name + " must be a matrix, got a " + std::to_string(dim) +
       "-D tensor; pass a 2-D tensor, e.g. fold batch dimensions into the rows with reshape");
}

void check_dtypes(const OpFacts& op, AtenTensorHandle a, AtenTensorHandle b) {
  const DtypeName dtype_a = dtype_of(a), dtype_b = dtype_of(b);
  if (dtype_a.code != dtype_b.code) {
    fail(std::string(op.name) + ": a and b must have the same dtype, got " + dtype_a.name + " and " + dtype_b.name +
         "; cast one of them");
  }
  struct Wanted {
    unsigned dtypes;
    const char* remedy;
  };
  static constexpr Wanted kWanted[] = {{F16 | BF16, "; cast them, or use tcgemm::sgemm for torch.float32"},
                                       {F32, "; cast them, or use tcgemm::mm for torch.float16 and torch.bfloat16"},
                                       {F16 | BF16 | F32, "; cast them"}};
  const Wanted& wanted = kWanted[static_cast<int>(op.dtypes)];
  if ((wanted.dtypes & dtype_a.bit) == 0) {
    fail(std::string(op.name) + ": a and b must be " + dtype_names(wanted.dtypes) + ", got " + dtype_a.name +
         wanted.remedy);
  }
}

void check_devices(const OpFacts& op, AtenTensorHandle a, AtenTensorHandle b) {
  const std::string device_a = device_of(a), device_b = device_of(b);
  if (device_a != device_b) {
    fail(std::string(op.name) + ": a and b must be on the same device, got " + device_a + " and " + device_b +
         "; move one of them");
  }
}

// Whether two elements share memory: then i * row_stride == j * col_stride for a step (i, j) inside the matrix.
bool overlaps_itself(int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride) {
  if (rows == 0 || cols == 0) return false;
  if ((rows > 1 && row_stride == 0) || (cols > 1 && col_stride == 0)) return true;
  if (rows == 1 || cols == 1) return false;
  const int64_t common = std::gcd(row_stride, col_stride);
  return col_stride / common < rows && row_stride / common < cols;
}

void check_out(const OpFacts& op, AtenTensorHandle a, AtenTensorHandle out, const std::vector<int64_t>& wanted,
               const std::vector<int64_t>& got) {
  const std::string name = op.name;
  const DtypeName dtype = dtype_of(out);
  if (dtype.bit != F32) fail(name + ": out must be torch.float32, got " + dtype.name + "; pass an FP32 tensor");
  if (device_of(out) != device_of(a)) {
    fail(name + ": out must be on the device of a and b, " + device_of(a) + ", got " + device_of(out) + "; move it");
  }
  if (wanted != got) {
    fail(name + ": out must have shape " + text_of(wanted) + ", got " + text_of(got) +
         "; it is never resized, so pass a tensor of that shape");
  }
  int64_t row_stride = 0, col_stride = 0;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_stride(out, 0, &row_stride));
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_stride(out, 1, &col_stride));
  if (overlaps_itself(got[0], got[1], row_stride, col_stride)) {
    fail(name + ": elements of out share memory (shape " + text_of(got) + ", strides " + std::to_string(row_stride) +
         " and " + std::to_string(col_stride) + "); pass a tensor with a place for each");
  }
}

void check_algo(const OpFacts& op, const char* algo, const DtypeName& dtype) {
  if (algo == nullptr) return;
  const std::string name = op.name;
  for (const AlgoName& known : kAlgos) {
    if (std::string(known.name) != algo) continue;
    if ((known.dtypes & dtype.bit) != 0) return;
    fail(name + "[" + algo + "]: takes " + dtype_names(known.dtypes) + ", got " + dtype.name +
         "; take None or one of " + algo_names(dtype.bit));
  }
  fail(name + ": no algo is called \"" + algo + "\"; take None or one of " + algo_names(~0u));
}

thread_local std::string noted_error;

}  // namespace

bool check_call(const OpFacts& op, AtenTensorHandle a, AtenTensorHandle b, AtenTensorHandle out, const char* algo) {
  check_rank(op, "a", a);
  check_rank(op, "b", b);
  check_dtypes(op, a, b);
  check_devices(op, a, b);
  std::vector<int64_t> size_a, size_b, size_out;
  if (!read_sizes(a, size_a) || !read_sizes(b, size_b)) return false;
  if (size_a[1] != size_b[0]) {
    fail(std::string(op.name) + ": a and b shapes cannot be multiplied (" + text_of(size_a) + " and " +
         text_of(size_b) + "); a needs as many columns as b has rows");
  }
  if (out != nullptr) {
    if (!read_sizes(out, size_out)) return false;
    check_out(op, a, out, {size_a[0], size_b[1]}, size_out);
  }
  check_algo(op, algo, dtype_of(a));
  return true;
}

const char* algo_of_id(const OpFacts& op, int64_t id) {
  if (id == 0) return nullptr;
  for (const AlgoName& known : kAlgos) {
    if (tcgemm_algo_id(known.name) == id) return known.name;
  }
  fail(std::string(op.name) + ": no kernel has the id " + std::to_string(id) +
       "; the graph was saved by a version that had another table, export it again");
}

void fail(const std::string& text) {
  noted_error = text;
  throw std::runtime_error(text);
}

}  // namespace tcgemm

void tcgemm_note_error(const char* text) { tcgemm::noted_error = text; }
const char* tcgemm_noted_error() { return tcgemm::noted_error.c_str(); }

int64_t tcgemm_algo_id(const char* algo) {
  if (algo == nullptr) return 0;
  uint64_t hash = 0xcbf29ce484222325u;
  for (; *algo != '\0'; ++algo) hash = (hash ^ static_cast<unsigned char>(*algo)) * 0x100000001b3u;
  return static_cast<int64_t>(hash >> 1);
}
