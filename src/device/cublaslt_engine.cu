#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <tuple>

#include "device/buffer.hpp"
#include "device/cublas_common.cuh"
#include "device/cublas_engine.hpp"
#include "device/cuda_library.hpp"

namespace syslab::device {
namespace {

constexpr std::array kFiles = {
#if CUDART_VERSION >= 13000
    "libcublasLt.so.13", "libcublasLt.so.12"
#else
    "libcublasLt.so.12", "libcublasLt.so.13"
#endif
};

struct Functions {
  CudaLibrary library{kFiles, "the package libcublas", "matrix products with an epilogue"};
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
  decltype(&cublasLtMatmulDescCreate) create_product = nullptr;
  decltype(&cublasLtMatmulDescDestroy) destroy_product = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) set_product = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) create_layout = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) destroy_layout = nullptr;
  decltype(&cublasLtMatrixLayoutSetAttribute) set_layout = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) create_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&cublasLtGetStatusName) status_name = nullptr;
  decltype(&cublasLtGetStatusString) status_text = nullptr;
  std::string why;

  Functions() : why(library.why()) {
    if (!library.found()) return;
    take("cublasLtCreate", create);
    take("cublasLtDestroy", destroy);
    take("cublasLtMatmul", matmul);
    take("cublasLtMatmulDescCreate", create_product);
    take("cublasLtMatmulDescDestroy", destroy_product);
    take("cublasLtMatmulDescSetAttribute", set_product);
    take("cublasLtMatrixLayoutCreate", create_layout);
    take("cublasLtMatrixLayoutDestroy", destroy_layout);
    take("cublasLtMatrixLayoutSetAttribute", set_layout);
    take("cublasLtMatmulPreferenceCreate", create_preference);
    take("cublasLtMatmulPreferenceDestroy", destroy_preference);
    take("cublasLtMatmulPreferenceSetAttribute", set_preference);
    take("cublasLtMatmulAlgoGetHeuristic", heuristic);
    take("cublasLtGetStatusName", status_name);
    take("cublasLtGetStatusString", status_text);
  }

  template <typename Function>
  void take(const char* name, Function*& function) {
    library.look_up(name, function);
    if (function == nullptr && why.empty()) {
      why = library.file() + " has no " + name + ": install cuBLAS of CUDA 12 or 13";
    }
  }

  void check(cublasStatus_t status, const char* asked, const char* call) const {
    if (status != CUBLAS_STATUS_SUCCESS) {
      throw_blas_status(status, status_name(status), status_text(status), asked, call);
    }
  }
};

const Functions& functions() {
  static const Functions table;
  return table;
}

// cuBLASLt's descriptors with an owner.
template <typename Handle, typename Destroy>
class Owned {
 public:
  explicit Owned(Destroy destroy) : destroy_(destroy) {}
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (handle_ != nullptr) destroy_(handle_);
  }
  Handle* out() { return &handle_; }
  Handle get() const { return handle_; }

 private:
  Handle handle_ = nullptr;
  Destroy destroy_;
};

using Product = Owned<cublasLtMatmulDesc_t, decltype(&cublasLtMatmulDescDestroy)>;
using Layout = Owned<cublasLtMatrixLayout_t, decltype(&cublasLtMatrixLayoutDestroy)>;
using Preference = Owned<cublasLtMatmulPreference_t, decltype(&cublasLtMatmulPreferenceDestroy)>;

// cuBLASLt cares for no alignment beyond this.
std::uint32_t alignment_of(const void* data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  return address == 0 ? 256 : static_cast<std::uint32_t>(std::uint64_t{1} << std::min(8, std::countr_zero(address)));
}

class Engine final : public CublasLtEngine {
 public:
  explicit Engine(Stream stream)
      : table_(functions()),
        stream_(stream),
        workspace_(table_.why.empty() ? kBlasWorkspace : 0, "cuBLASLt workspace", stream, MemoryCategory::library) {
    if (!table_.why.empty()) throw Error(ErrorKind::device, table_.why, "dlopen");
    table_.check(table_.create(&handle_), "start cuBLASLt", "cublasLtCreate");
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine() override { table_.destroy(handle_); }

  // Operands change places as in cublas_engine.cu, so that a bias along a row of C is one along a column of Cᵀ, which
  // is what cuBLASLt adds.
  void gemm(const Gemm& g, const Epilogue& epilogue) override {
    const bool wide = g.c.dtype == DType::f64;
    const cublasComputeType_t compute = compute_type(g.a.dtype, g.c.dtype, g.math == GemmMath::tf32);
    Product product(table_.destroy_product);
    table_.check(table_.create_product(product.out(), compute, wide ? CUDA_R_64F : CUDA_R_32F), "describe a product",
                 "cublasLtMatmulDescCreate");
    set(product, CUBLASLT_MATMUL_DESC_TRANSA, operation(g.transpose_b));
    set(product, CUBLASLT_MATMUL_DESC_TRANSB, operation(g.transpose_a));
    const int kind =
        (epilogue.gelu ? CUBLASLT_EPILOGUE_GELU : 0) | (epilogue.bias != nullptr ? CUBLASLT_EPILOGUE_BIAS : 0);
    set(product, CUBLASLT_MATMUL_DESC_EPILOGUE,
        static_cast<cublasLtEpilogue_t>(kind == 0 ? CUBLASLT_EPILOGUE_DEFAULT : kind));
    if (epilogue.bias != nullptr) {
      set(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, epilogue.bias);
      set(product, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, cuda_type_of(g.c.dtype));
    }
    Layout a(table_.destroy_layout), b(table_.destroy_layout), c(table_.destroy_layout);
    describe(a, g.a, g.transpose_a ? g.k : g.m, g.transpose_a ? g.m : g.k, g.batch);
    describe(b, g.b, g.transpose_b ? g.n : g.k, g.transpose_b ? g.k : g.n, g.batch);
    describe(c, g.c, g.m, g.n, g.batch);

    const cublasLtMatmulAlgo_t algorithm = algorithm_for(g, kind, product, a, b, c);
    const double alpha = g.alpha, beta = g.beta;
    const auto alpha_single = static_cast<float>(alpha), beta_single = static_cast<float>(beta);
    table_.check(
        table_.matmul(handle_, product.get(), wide ? static_cast<const void*>(&alpha) : &alpha_single, g.b.data,
                      b.get(), g.a.data, a.get(), wide ? static_cast<const void*>(&beta) : &beta_single, g.c.data,
                      c.get(), g.c.data, c.get(), &algorithm, workspace_.data(), kBlasWorkspace, cuda_stream(stream_)),
        "multiply matrices", "cublasLtMatmul");
  }

 private:
  template <typename Value>
  void set(const Product& product, cublasLtMatmulDescAttributes_t what, const Value& value) const {
    table_.check(table_.set_product(product.get(), what, &value, sizeof value), "describe a product",
                 "cublasLtMatmulDescSetAttribute");
  }

  // A row-major rows × columns matrix is a column-major columns × rows one.
  template <typename Matrix>
  void describe(Layout& layout, const Matrix& matrix, std::int64_t rows, std::int64_t columns,
                std::int64_t batch) const {
    table_.check(table_.create_layout(layout.out(), cuda_type_of(matrix.dtype), static_cast<std::uint64_t>(columns),
                                      static_cast<std::uint64_t>(rows), matrix.row_stride),
                 "describe a matrix", "cublasLtMatrixLayoutCreate");
    const auto count = static_cast<std::int32_t>(batch);
    for (const auto& [what, value, bytes] :
         {std::tuple<cublasLtMatrixLayoutAttribute_t, const void*, std::size_t>{CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                                                &count, sizeof count},
          {CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &matrix.batch_stride, sizeof matrix.batch_stride}}) {
      table_.check(table_.set_layout(layout.get(), what, value, bytes), "describe a matrix",
                   "cublasLtMatrixLayoutSetAttribute");
    }
  }

  // All that the choice depends on.
  using Key = std::array<std::int64_t, 19>;
  static Key key_of(const Gemm& g, int epilogue) {
    return {g.m,
            g.n,
            g.k,
            g.batch,
            g.transpose_a,
            g.transpose_b,
            static_cast<std::int64_t>(g.a.dtype),
            static_cast<std::int64_t>(g.c.dtype),
            static_cast<std::int64_t>(g.math),
            g.a.row_stride,
            g.b.row_stride,
            g.c.row_stride,
            g.a.batch_stride,
            g.b.batch_stride,
            g.c.batch_stride,
            epilogue,
            alignment_of(g.a.data),
            alignment_of(g.b.data),
            alignment_of(g.c.data)};
  }

  cublasLtMatmulAlgo_t algorithm_for(const Gemm& g, int epilogue, const Product& product, const Layout& a,
                                     const Layout& b, const Layout& c) {
    const Key key = key_of(g, epilogue);
    if (const auto known = algorithms_.find(key); known != algorithms_.end()) return known->second;
    Preference preference(table_.destroy_preference);
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t what, auto value) {
      table_.check(table_.set_preference(preference.get(), what, &value, sizeof value), "describe a preference",
                   "cublasLtMatmulPreferenceSetAttribute");
    };
    table_.check(table_.create_preference(preference.out()), "describe a preference", "cublasLtMatmulPreferenceCreate");
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{kBlasWorkspace});
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(g.b.data));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(g.a.data));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(g.c.data));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(g.c.data));
    cublasLtMatmulHeuristicResult_t result{};
    int found = 0;
    cublasStatus_t status = table_.heuristic(handle_, product.get(), b.get(), a.get(), c.get(), c.get(),
                                             preference.get(), 1, &result, &found);
    if (status == CUBLAS_STATUS_SUCCESS && found == 0) status = CUBLAS_STATUS_NOT_SUPPORTED;
    table_.check(status, "find an algorithm for a product", "cublasLtMatmulAlgoGetHeuristic");
    algorithms_.emplace(key, result.algo);
    return result.algo;
  }

  const Functions& table_;
  Stream stream_;
  Buffer workspace_;
  cublasLtHandle_t handle_ = nullptr;
  std::map<Key, cublasLtMatmulAlgo_t> algorithms_;
};

}  // namespace

std::unique_ptr<CublasLtEngine> make_cublaslt_engine(Stream stream) { return std::make_unique<Engine>(stream); }

std::string why_no_cublaslt() { return functions().why; }

}  // namespace syslab::device
