// Token ids and targets as an input of an operation. Tensors have no integer dtype, so the integers are stored as the
// bits of as many fp64 elements; the operation writes them itself ("prepared").
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "core/tensor.hpp"
#include "device/memory.hpp"

namespace syslab::ops {

class WholeNumbers {
 public:
  // `count` numbers in [0, end), from the stream `name` of this seed.
  WholeNumbers(std::string name, std::int64_t count, std::int64_t end, std::uint64_t seed)
      : name_(std::move(name)), values_(std::make_shared<std::vector<std::int64_t>>()) {
    const RandomStream stream = RandomStream::derive(seed, "operation", "whole numbers", name_);
    values_->reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
      values_->push_back(stream.bits(static_cast<std::uint64_t>(i)) % end);
    }
  }

  const std::string& name() const { return name_; }
  const std::vector<std::int64_t>& values() const { return *values_; }
  TensorSpec spec() const { return {name_, DType::f64, {static_cast<std::int64_t>(values_->size())}}; }
  // Writes them into the input, in the memory of the stream's device.
  void write(const TensorView& input, device::Stream stream) const {
    device::copy(input.data, values_->data(), values_->size() * sizeof(std::int64_t), stream);
  }
  static const std::int64_t* of(const ConstTensorView& input) { return static_cast<const std::int64_t*>(input.data); }

 private:
  std::string name_;
  std::shared_ptr<std::vector<std::int64_t>> values_;
};

}  // namespace syslab::ops
