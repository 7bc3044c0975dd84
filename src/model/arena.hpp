// The memory of a model's parameters: weights, their copies, gradients and moments, each a single contiguous buffer
// with the same layout (model/parameters.hpp). An optimizer is one kernel over all of it; a tensor is a view.
//
//   ParameterArena arena(ParameterLayout(config), {.copy_dtype = DType::bf16}, stream);
//   arena.view(Plane::gradient, arena.layout().lm_head());
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "core/tensor.hpp"
#include "device/buffer.hpp"
#include "device/device.hpp"
#include "model/parameter_source.hpp"
#include "model/parameters.hpp"

namespace syslab::model {

// One of the arena's buffers. `copy` is the weights rounded to a two-byte dtype, for matrix products. Where the weights
// are split, they have no buffer: `copy` is their upper halves and `low` the lower (core/split_float.hpp).
enum class Plane { weight, copy, low, gradient, first_moment, second_moment };
inline constexpr int kPlanes = 6;
std::string_view to_string(Plane plane);  // "first moment"

struct ArenaOptions {
  DType dtype = DType::f32;                               // of weights, gradients and moments; f64 is the oracle's
  std::optional<DType> copy_dtype;                        // bf16 or f16; none: products read the weights themselves
  bool weights = true, gradients = true, moments = true;  // no weights, no copy: the layout alone
  bool split = false;  // fp32 weights in halves, one of them the bf16 copy: 4 bytes instead of 6
};

// Whether products read a parameter, and with it the copy where there is one; embedding and norms are read as they are.
inline bool read_by_products(ParameterKind kind) { return kind == ParameterKind::linear; }

// Owner of the buffers, in the memory of the stream's device, accounted as parameter, gradient and optimizer. Initially
// zero, including padding. Error(usage) for other dtypes than above, Error(oom) if memory is short.
class ParameterArena final : public ParameterSource {
 public:
  ParameterArena(ParameterLayout layout, const ArenaOptions& options, device::Stream stream);

  const ParameterLayout& layout() const { return layout_; }
  const ArenaOptions& options() const { return options_; }
  device::Stream stream() const { return stream_; }

  // Split weights exist and can be read and written, but have no view.
  bool has(Plane plane) const;
  DType dtype(Plane plane) const;
  bool splits() const { return options_.split && options_.weights; }
  std::vector<Plane> planes_of_weights() const;  // the buffers that hold them, for byte copies
  // The plane that products read: the copy if there is one, otherwise the weights.
  Plane compute_plane() const { return has(Plane::copy) ? Plane::copy : Plane::weight; }

  // Error(internal) for a plane that this arena does not have, and for split weights.
  TensorView whole(Plane plane) const;                    // (elements), padding included
  TensorView view(Plane plane, int index) const;          // one tensor in its shape
  TensorView qkv(Plane plane, std::int64_t layer) const;  // (3·d, d): q, k, v

  // To a pass: embedding and norms of the weights, linear layers of what products read. All is there at all times.
  // Where weights are split, the embedding is read from the upper halves, and norms from gains().
  ConstTensorView weights(int parameter) const override;
  void done(int) const override {}
  GradientPlace gradient(int parameter, bool add) const override;

  // Where weights are split: those of norms once more, in fp32, a row each as they are registered, and where each lies
  // in the planes. Whoever changes halves other than by write() makes these anew (Transformer::refresh_weights_copy).
  struct Gains {
    TensorView values;                      // (norms, d)
    const std::int64_t* offsets = nullptr;  // (norms), in the memory of the arena's device
  };
  Gains gains() const;

  std::size_t bytes(Plane plane) const;
  std::size_t bytes() const;  // of all planes, and gains

  // Writes elements [first, first + values.elements()) of a tensor, row-major, from contiguous host memory of any
  // floating dtype, rounded to the plane's; where the plane is the weights, to their copy too. In the order of the
  // arena's stream; `values` may change on return.
  void write(Plane plane, int index, std::int64_t first, const ConstTensorView& values);
  // The inverse of write(). Waits for the arena's stream.
  void read(Plane plane, int index, std::int64_t first, const TensorView& values) const;
  std::vector<double> read(Plane plane, int index) const;  // a whole tensor

 private:
  void require(Plane plane) const;
  TensorView view_at(Plane plane, std::int64_t offset, const Shape& shape) const;
  void* address(Plane plane, int index, std::int64_t first, std::int64_t count) const;
  void write_plane(Plane plane, int index, std::int64_t first, const ConstTensorView& values);
  void make_gains();
  void write_halves(int index, std::int64_t first, const ConstTensorView& values);
  void read_halves(int index, std::int64_t first, const TensorView& values) const;
  std::int64_t gain_row(int index) const;  // of a norm

  ParameterLayout layout_;
  ArenaOptions options_;
  device::Stream stream_;
  std::array<device::Buffer, kPlanes> buffers_;
  device::Buffer gains_, gain_offsets_;
};

}  // namespace syslab::model
