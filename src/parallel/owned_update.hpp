// AdamW over what one rank owns of a model: stretches of memory anywhere, with moments for them and for nothing else.
//
//   OwnedUpdate update({{weights, gradients}, …}, rung, stream);
//   update.bytes();                                       // 8 a parameter that is owned, in fp32
//   update.queue(scalars, clip, non_finite, stream);
//
// The update is elementwise: whoever owns an element gives it the bits that one process gives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/tensor.hpp"
#include "device/buffer.hpp"
#include "device/stream.hpp"
#include "ops/adamw/adamw.hpp"

namespace syslab::parallel {

// Contiguous, of as many elements and of one dtype; `gradient` is read when the update runs. `copy`: where the new
// weights are also written rounded, in a two-byte dtype; no memory: nowhere.
struct OwnedStretch {
  TensorView weight;
  ConstTensorView gradient;
  TensorView copy = {};
};

class OwnedUpdate {
 public:
  enum class Moment { first, second };

  // Takes memory for the moments, zeroed in the order of `stream`, accounted as optimizer. There may be no stretch at
  // all. Error(usage) naming a stretch with mismatched views or a dtype other than the first one's. `stream` must
  // outlive this; the destructor waits for it if it is a CPU queue; for another that the update was queued on, who
  // destroys this has waited.
  OwnedUpdate(std::vector<OwnedStretch> stretches, const adamw::Rung& rung, device::Stream stream);

  int size() const { return static_cast<int>(stretches_.size()); }
  std::int64_t elements() const { return first_.back(); }
  std::size_t bytes() const { return moments_[0].bytes() + moments_[1].bytes(); }  // of the moments
  // Of one stretch, as one row.
  TensorView moment(Moment moment, int stretch) const;

  // Queues the step of all stretches, or of one. `scalars`, `clip` and `non_finite` as in adamw::Args, in memory of the
  // stream's device that lives until the step is done. On any stream, queues of the CPU too.
  void queue(const adamw::Scalars* scalars, const float* clip, const std::int64_t* non_finite,
             device::Stream stream) const;
  void queue_one(int stretch, const adamw::Scalars* scalars, const float* clip, const std::int64_t* non_finite,
                 device::Stream stream) const;

 private:
  std::vector<OwnedStretch> stretches_;
  const adamw::Rung* rung_;
  std::vector<std::int64_t> first_{0};  // of each stretch in the moments, and the end
  DType dtype_ = DType::f32;
  device::Buffer moments_[2];
  device::AwaitsQueues awaits_;
};

}  // namespace syslab::parallel
