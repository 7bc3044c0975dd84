// Our own strategies behind the door that somebody's class has: the laws of property_tests/data_parallel hand a
// training to ranks of Python, or to these, which are threads.
//
//   data_parallel::laws(strategy, own_ranks(train_replicated(strategy)));
//
// A training's gradients are known in closed form; here they are computed by host work on a CPU queue, as kernels would
// be on a stream, and what is late (`late` of a case) is so because the communication stream first sleeps.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.hpp"
#include "core/call_channel.hpp"
#include "core/text/json.hpp"
#include "device/stream.hpp"
#include "property_tests/data_parallel/laws.hpp"

namespace syslab {

// What a law hands out and wants filled; the fields of the case are those of src/python/syslab_training.py.
struct OwnTraining {
  const Json& asked;
  std::span<const NamedInput> inputs;
  std::span<const NamedOutput> outputs;

  ConstTensorView input(std::string_view name) const;
  // This rank's elements of an output that has a row for each rank.
  std::span<float> of_rank(std::string_view name, int rank) const;
};

using TrainOwn =
    std::function<void(const OwnTraining&, comm::Communicator&, device::Stream compute, device::Stream communication)>;

std::shared_ptr<CallChannel> own_ranks(TrainOwn train);

// DDP by GradientSync, an optimizer by ParameterOwners, full sharding by Fsdp.
TrainOwn train_replicated(data_parallel::Strategy strategy);
TrainOwn train_sharded_optimizer();
TrainOwn train_fully_sharded();

// A parameter of a case, and where its elements lie among all parameters'.
struct OwnParameter {
  std::string name;
  std::int64_t first = 0, count = 0;
  bool trains = true;
};
std::vector<OwnParameter> parameters_of(const Json& described);

// Σ over the uses of a parameter in a step of (the batch's number + curve · weight), by element.
std::vector<float> gradient_of(const OwnTraining& training, int step, int part, int rank, const OwnParameter& parameter,
                               int uses, std::span<const float> weights);
int uses_of(const Json& asked, int step, int parameter);

// Where a case is late, work queued on `communication` from now on begins after a while.
void delay_if_late(const Json& asked, device::Stream communication);

// Waits for queued work that refers to what is being destroyed.
void drain(device::Stream stream) noexcept;

}  // namespace syslab
