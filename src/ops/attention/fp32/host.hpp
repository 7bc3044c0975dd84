// Shared by the forward and backward host code of the fp32 rungs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "device/buffer.hpp"
#include "ops/attention/attention.hpp"
#include "ops/attention/fp32/kernels.hpp"

namespace syslab::attention::fp32 {

Shape shape_of(const Problem& problem);

// How ranges of keys are split for blocks of `rows` queries that compute `products` products per tile; and ranges of
// queries, over all heads of a group, for blocks of `rows` keys.
Split cut_over_keys(const Problem& problem, int rows, int products);
Split cut_over_queries(const Problem& problem, int rows, int products);

// Allocates ranges of the workspace; with a null base it only counts bytes.
class Carver {
 public:
  explicit Carver(void* base) : base_(static_cast<char*>(base)) {}
  template <typename T>
  T* take(std::int64_t count) {
    return static_cast<T*>(take_bytes(count * static_cast<std::int64_t>(sizeof(T))));
  }
  Planes planes(std::int64_t rows, int columns) {
    return {take<char>(rows * 4 * columns), take<TileScale>(rows / kTileRows)};
  }
  std::size_t used() const { return used_; }

 private:
  void* take_bytes(std::int64_t bytes);
  char* base_;
  std::size_t used_ = 0;
};

// Total rows of the planes over all heads and batch entries.
struct Extents {
  std::int64_t heads_q, heads_kv, rows_q, rows_k;
  int columns;
  Extents(const Problem& problem, const Shape& shape);
};

template <typename T, typename View>
Rows<T> rows_of(const View& view) {
  return {view.template as<float>(), view.stride(0), view.stride(1), view.stride(2)};
}

// Whether every row begins at a multiple of that many floats.
template <typename T>
bool aligned(const Rows<T>& rows, int floats) {
  return reinterpret_cast<std::uintptr_t>(rows.data) % (sizeof(float) * static_cast<std::size_t>(floats)) == 0 &&
         rows.batch_stride % floats == 0 && rows.head_stride % floats == 0 && rows.row_stride % floats == 0;
}

// The pre-pass over all tensors of a call, as one kernel.
class PlaneMaker {
 public:
  PlaneMaker(const Problem& problem, Pass pass);
  void add(const ConstTensorView& view, const Planes& to, int padded_rows, float sign = 1);
  template <class Arithmetic>
  void run(device::Stream stream) const {
    make_planes<Arithmetic>(jobs_, columns_, blocks_, stream);
  }

 private:
  int columns_;
  PlaneJobs jobs_{};
  std::int64_t blocks_ = 0;
};

// −1 if the scale is negative: Q's planes absorb its sign, so that the kernels can take maxima of the raw sums.
float sign_of(const Problem& problem);

// The caller's workspace, or memory allocated for the call. Error(usage) if the caller's is too small.
class Scratch {
 public:
  Scratch(const ops::Workspace& lent, std::size_t bytes, device::Stream stream, std::string_view name);
  void* data() const { return data_; }

 private:
  device::Buffer own_;
  void* data_ = nullptr;
};
// Bytes to request so that this many fit from an aligned address on.
std::size_t with_alignment(std::size_t bytes);

// Error(usage) unless the problem is supported and the stream, if given, is a GPU's; Error(device) unless that GPU is
// sm_80 or later.
void demand_supported(const Problem& problem, Pass pass, std::string_view name);
void demand_supported(const Problem& problem, Pass pass, device::Stream stream, std::string_view name);

std::size_t backward_workspace_bytes(const Problem& problem);

}  // namespace syslab::attention::fp32
