// Temporaries of a composition of operations, laid out in one workspace.
//
//   struct Temporaries {
//     TensorView a, b;
//     Temporaries(const Problem& p, Scratch& scratch) : a(scratch.tensor(DType::f32, {p.rows, p.dim})), …
//   };
//   scratch_bytes<Temporaries>(problem);                    // how much they need
//   Lent<Temporaries> t(problem, workspace, stream);        // t->a, …: in the workspace, or in memory of this call
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor.hpp"
#include "device/device.hpp"
#include "ops/call_memory.hpp"
#include "ops/rung.hpp"

namespace syslab::framework {

class Scratch {
 public:
  explicit Scratch(void* data = nullptr) : data_(static_cast<std::byte*>(data)) {}  // null: only measures

  TensorView tensor(DType dtype, const Shape& shape) {
    return {take(static_cast<std::size_t>(shape.elements()) * size_of(dtype)), dtype, shape};
  }
  std::int64_t* indices(std::int64_t count) {
    return static_cast<std::int64_t*>(take(static_cast<std::size_t>(count) * sizeof(std::int64_t)));
  }
  std::size_t bytes() const { return bytes_; }

 private:
  void* take(std::size_t bytes) {
    constexpr std::size_t kGrain = 256;
    void* found = data_ == nullptr ? nullptr : data_ + bytes_;
    bytes_ += (bytes + kGrain - 1) / kGrain * kGrain;
    return found;
  }

  std::byte* data_;
  std::size_t bytes_ = 0;
};

template <typename Temporaries, typename Problem>
std::size_t scratch_bytes(const Problem& problem) {
  Scratch measure;
  const Temporaries temporaries(problem, measure);
  return measure.bytes();
}

// If the workspace is too small, memory is allocated for the call.
template <typename Temporaries>
class Lent {
 public:
  template <typename Problem>
  Lent(const Problem& problem, ops::Workspace workspace, device::Stream stream)
      : memory_(workspace, scratch_bytes<Temporaries>(problem), "results of operations", stream),
        scratch_(memory_.data()),
        temporaries_(problem, scratch_) {}

  const Temporaries* operator->() const { return &temporaries_; }

 private:
  ops::CallMemory memory_;
  Scratch scratch_;
  Temporaries temporaries_;
};

}  // namespace syslab::framework
