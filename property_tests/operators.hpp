// What the laws of the model's operators share: tensors of whole numbers, memory to work in, and a search that asks a
// rung the same under every contract (no hand-out says more of these operators than their formulas).
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "check/search.hpp"
#include "device/buffer.hpp"
#include "device/memory.hpp"
#include "ops/rung.hpp"
#include "property_tests/draw.hpp"
#include "property_tests/law_table.hpp"
#include "property_tests/left_out.hpp"
#include "property_tests/on_device.hpp"
#include "property_tests/tensors.hpp"
#include "property_tests/verdict.hpp"

namespace syslab::property {

// 64-bit whole numbers between guards, in the memory of a tensor of as many fp64 elements.
inline check::GuardedTensor whole_numbers(std::string_view name, std::span<const std::int64_t> values) {
  check::GuardedTensor tensor = output(name, DType::f64, {static_cast<std::int64_t>(values.size())}, {1});
  std::memcpy(tensor.view().data, values.data(), values.size_bytes());
  return tensor;
}
inline std::int64_t* as_whole_numbers(const TensorView& view) { return static_cast<std::int64_t*>(view.data); }

// Memory of the size that a rung asks for, filled with what no rung may count on.
class Scratch {
 public:
  Scratch(std::size_t bytes, device::Stream stream) : buffer_(bytes, "workspace", stream) {
    if (bytes > 0) device::fill_bytes(buffer_.data(), 0xff, bytes, stream);
  }
  operator ops::Workspace() const { return {buffer_.data(), buffer_.bytes()}; }  // NOLINT: lending is what it is for

 private:
  device::Buffer buffer_;
};

template <typename Entry, typename Rung>
check::LawResult search_rung(const Entry& entry, const Rung& rung, const check::LawRequest& request) {
  if (const auto reason = OnDevice::refusal(rung.device)) return does_not_apply(rung.name + " " + *reason);
  return with_left_out(
      check::search(entry.id, request, [&](check::Observation& observation) { entry.body(rung, observation); }), rung,
      request);
}

}  // namespace syslab::property
