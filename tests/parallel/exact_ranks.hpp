// The training job of exact_training.hpp by ranks that divide its state in any way.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "comm/communicator.hpp"
#include "tests/parallel/exact_training.hpp"

namespace syslab::property {

// How ranks divide a state, and what travels.
struct ExactWay {
  Sharding sharding = Sharding::none;
  bool in_turn = false;       // of zero1 and zero2: slices are updated under the backward pass
  std::optional<DType> wire;  // gradients travel rounded, some of them written so where they have no parts to add to
};

class ExactRanks {
 public:
  virtual ~ExactRanks() = default;
  virtual void join(int until) = 0;  // collective: tensors up to there
  virtual void take(const ExactStep& step) = 0;
  // After all that is queued: all weights that this rank has, and its moments.
  virtual std::vector<StatePiece> pieces() = 0;
};
// Tensors join in groups with `none` and `optimizer` alone.
std::unique_ptr<ExactRanks> exact_ranks(const ExactModel& model, const ExactWay& way, comm::Communicator& ranks,
                                        device::Stream compute, device::Stream communication);

}  // namespace syslab::property
