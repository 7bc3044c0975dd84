#include "parallel/owned_update.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/error.hpp"
#include "device/memory.hpp"
#include "parallel/in_order.hpp"
#include "parallel/moves.hpp"

namespace syslab::parallel {

OwnedUpdate::OwnedUpdate(std::vector<OwnedStretch> stretches, const adamw::Rung& rung, device::Stream stream)
    : stretches_(std::move(stretches)), rung_(&rung), awaits_(stream) {
  if (!stretches_.empty()) dtype_ = stretches_.front().weight.dtype;
  for (const OwnedStretch& one : stretches_) {
    const std::int64_t elements = one.weight.elements();
    if (one.weight.dtype != dtype_ || one.gradient.dtype != dtype_ || one.gradient.elements() != elements) {
      throw Error(ErrorKind::usage,
                  fmt::format("stretch {} of an update has {} weights in {} and {} gradients in {}: as many of both in "
                              "one dtype, here {}, are wanted",
                              first_.size() - 1, elements, to_string(one.weight.dtype), one.gradient.elements(),
                              to_string(one.gradient.dtype), to_string(dtype_)));
    }
    if (one.copy.data != nullptr && one.copy.elements() != elements) {
      throw Error(ErrorKind::usage, fmt::format("stretch {} of an update has {} weights and a copy of {} elements",
                                                first_.size() - 1, elements, one.copy.elements()));
    }
    first_.push_back(first_.back() + elements);
  }
  if (elements() == 0) return;
  const std::size_t bytes = static_cast<std::size_t>(elements()) * size_of(dtype_);
  for (const Moment moment : {Moment::first, Moment::second}) {
    device::Buffer& buffer = moments_[static_cast<int>(moment)];
    buffer = device::Buffer(bytes, moment == Moment::first ? "owned first moments" : "owned second moments", stream,
                            device::MemoryCategory::optimizer);
    device::fill_bytes(buffer.data(), 0, bytes, stream);
  }
}

TensorView OwnedUpdate::moment(Moment moment, int stretch) const {
  const auto at = static_cast<std::size_t>(stretch);
  const TensorView all(moments_[static_cast<int>(moment)].data(), dtype_, {1, elements()});
  return parallel::stretch(all, first_[at], first_[at + 1] - first_[at]);
}

void OwnedUpdate::queue(const adamw::Scalars* scalars, const float* clip, const std::int64_t* non_finite,
                        device::Stream stream) const {
  for (int one = 0; one < size(); ++one) queue_one(one, scalars, clip, non_finite, stream);
}

void OwnedUpdate::queue_one(int stretch, const adamw::Scalars* scalars, const float* clip,
                            const std::int64_t* non_finite, device::Stream stream) const {
  const OwnedStretch& owned = stretches_[static_cast<std::size_t>(stretch)];
  const std::int64_t count = owned.weight.elements();
  if (count == 0) return;
  const auto flat = [count](const auto& view) {
    auto made = view;
    made.shape = {count};
    return made;
  };
  adamw::Problem problem{.elements = count, .dtype = dtype_};
  const bool has_copy = owned.copy.data != nullptr;
  if (has_copy) problem.copy_dtype = owned.copy.dtype;
  const adamw::Args args{.p = flat(owned.weight),
                         .m = flat(moment(Moment::first, stretch)),
                         .v = flat(moment(Moment::second, stretch)),
                         .g = flat(owned.gradient),
                         .copy = has_copy ? flat(owned.copy) : TensorView{},
                         .scalars = scalars,
                         .clip = clip,
                         .non_finite = non_finite};
  in_order(stream, [rung = rung_, problem, args](device::Stream own) { rung->step(problem, args, own); });
}

}  // namespace syslab::parallel
