// Sets of inputs and guarded outputs of one operator, in the memory of the device that it runs on: enough of them that
// a call finds nothing of its set in a cache, with new content whenever a sample needs it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "check/guard.hpp"
#include "device/buffer.hpp"
#include "worker/operator_case.hpp"

namespace syslab::worker {

class InputSets {
 public:
  // One set, filled, its outputs poisoned. `operator_case` and `context` must outlive this. Everything happens in the
  // order of `stream`, whose device is the case's.
  InputSets(const CaseContext& context, const OperatorCase& operator_case, device::Stream stream = {});

  // Adds sets until there are `count`.
  void grow(int count);
  int count() const { return static_cast<int>(sets_.size()); }
  std::uint64_t bytes_per_set() const;

  const Tensors& tensors(int set) const { return sets_[index(set)].tensors; }
  // New random inputs (prepared, if the operator prepares), poisoned outputs. Of inputs above 16 MiB so much is new, in
  // stripes over the whole length.
  void refresh(int set);

  // What is wrong with the set after a call, apart from the values: inputs changed, outputs not or overly written, or
  // NaN. Nothing when all is well.
  std::optional<std::string> misuse(int set, std::size_t output) const;
  std::optional<std::string> changed_inputs(int set) const;

  // What the oracle says of the set's inputs: on their own device where the case has such an oracle, else on the host,
  // where they are copied first.
  std::vector<Expectation> expect(int set) const;

 private:
  struct Set {
    std::vector<device::Buffer> buffers;
    std::vector<check::GuardedTensor> outputs;
    Tensors tensors;
    std::uint64_t generation = 0;
    // Of the inputs as the implementation got them, and room for those of now, on the device.
    device::Buffer fingerprints;
  };
  static std::size_t index(int set) { return static_cast<std::size_t>(set); }
  void draw(const TensorView& whole, const InputSpec& input, int number, std::uint64_t generation);
  void take_fingerprints(const Set& set, std::size_t first) const;

  const CaseContext& context_;
  const OperatorCase& case_;
  device::Stream stream_;
  std::optional<Distribution> distribution_;  // replaces every input's own
  std::vector<Set> sets_;
};

}  // namespace syslab::worker
