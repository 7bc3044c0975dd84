// Sets of inputs and guarded outputs of one operator, in the memory of the device that it runs on: enough of them that
// a call finds nothing of its set in a cache, with new content whenever a sample needs it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "check/guard.hpp"
#include "contract/operation.hpp"
#include "device/buffer.hpp"
#include "worker/cases/case_context.hpp"

namespace syslab::worker {

class InputSets {
 public:
  // One set, filled, its outputs poisoned. `operation` and `context` must outlive this. Everything runs in the order of
  // `stream`, which is on the operation's device.
  InputSets(const CaseContext& context, const Operation& operation, device::Stream stream = {});

  // Adds sets until there are `count`.
  void grow(int count);
  int count() const { return static_cast<int>(sets_.size()); }
  std::uint64_t bytes_per_set() const;

  const Inputs& inputs(int set) const { return sets_[index(set)].input_views; }
  const Outputs& outputs(int set) const { return sets_[index(set)].output_views; }
  void call(const OperationCall& what, int set) const { what(inputs(set), outputs(set), stream_); }
  // New random inputs (prepared, if the operator prepares), poisoned outputs. Of inputs above 16 MiB so much is new, in
  // stripes over the whole length; of somebody else's implementation all of it.
  void refresh(int set);

  // What is wrong with the set after a call, apart from the values: inputs changed, outputs not or overly written, or
  // NaN. Nothing when all is well.
  std::optional<std::string> misuse(int set, std::size_t output) const;
  std::optional<std::string> changed_inputs(int set) const;

  // The first of these sets with a NaN in an output (what was not written is one); -1: none has any. On a GPU one wait
  // for all.
  int first_with_nans(std::span<const int> sets) const;

  // Both as views of host memory: of a GPU's, copies.
  struct OnHost {
    std::vector<device::Buffer> memory;
    Inputs inputs;
    Outputs outputs;
  };
  OnHost on_host(int set) const;

  // What the oracle says of the set's inputs: on their own device where the operation has such an oracle, else on the
  // host, where they are copied first.
  std::vector<Expected> expect(int set) const;

 private:
  struct Set {
    std::vector<device::Buffer> buffers;
    std::vector<check::GuardedTensor> outputs;
    Inputs input_views;
    Outputs output_views;
    std::uint64_t generation = 0;
    // Of the inputs as the implementation got them, and room for those of now, on the device.
    device::Buffer fingerprints;
  };
  static std::size_t index(int set) { return static_cast<std::size_t>(set); }
  void draw(const TensorView& whole, const std::string& input, int number, std::uint64_t generation);
  void take_fingerprints(const Set& set, std::size_t first) const;

  const CaseContext& context_;
  const Operation& operation_;
  device::Stream stream_;
  Distribution distribution_;  // of every input
  std::vector<Set> sets_;
};

}  // namespace syslab::worker
