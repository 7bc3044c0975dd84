// Our sharded optimizer behind the door of experiments/ddp/own_ranks.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/index.hpp"
#include "device/queue.hpp"
#include "experiments/ddp/own_ranks.hpp"
#include "parallel/grouped_adamw.hpp"
#include "parallel/zero/sharded_optimizer.hpp"

namespace syslab {
namespace {

using device::Stream;
using parallel::OptimizedParameter;

// v ← momentum · v + g, w ← w − rate · v, as an optimizer that ShardedOptimizer can wrap.
class Momentum {
 public:
  struct Options {
    double rate = 0, momentum = 0;
  };
  static std::string text_of(const Options& options) {
    return fmt::format("{:a} {:a}", options.rate, options.momentum);
  }

  void add_group(std::span<const OptimizedParameter> parameters, const Options& options) {
    for (const OptimizedParameter& one : parameters) {
      held_.push_back({one, options, std::vector<float>(at(one.weight.elements()))});
    }
  }
  void step(Stream compute) {
    device::enqueue(compute, [this, count = held_.size()] {
      for (std::size_t i = 0; i < count; ++i) move(held_[i]);
    });
  }
  std::size_t state_bytes() const {
    std::size_t sum = 0;
    for (const Held& one : held_) sum += one.velocity.size() * sizeof(float);
    return sum;
  }

 private:
  struct Held {
    OptimizedParameter parameter;
    Options options;
    std::vector<float> velocity;
  };
  static void move(Held& one) {
    auto* weight = one.parameter.weight.as<float>();
    const auto* gradient = one.parameter.gradient.as<float>();
    for (std::size_t i = 0; i < one.velocity.size(); ++i) {
      one.velocity[i] = static_cast<float>(one.options.momentum) * one.velocity[i] + gradient[i];
      weight[i] -= static_cast<float>(one.options.rate) * one.velocity[i];
    }
  }
  std::deque<Held> held_;  // queued work refers to them
};

// A rank's weights and gradients, in the order of registration.
class Owner {
 public:
  Owner(const OwnTraining& training, comm::Communicator& ranks, Stream compute, Stream communication)
      : training_(training),
        asked_(training.asked),
        rank_(ranks.rank()),
        compute_(compute),
        communication_(communication),
        parameters_(parameters_of(asked_.at("parameters"))) {
    const ConstTensorView start = training.input("start");
    const float* row = start.as<float>() + rank_ * start.shape[1];
    plane_.assign(row, row + start.shape[1]);
    gradients_.resize(at(total()));
    std::ranges::copy(plane_, training.of_rank("state", rank_).begin());
  }

  ~Owner() { drain(compute_); }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

  template <typename Optimizer, typename OptionsOf>
  void train(Optimizer& optimizer, const OptionsOf& options_of) {
    const int steps = asked_.at("steps").get<int>();
    for (int step = 0; step < steps; ++step) {
      for (const Json& group : asked_.at("groups")) {
        if (group.at("from").get<int>() != step) continue;
        // A gradient that is being made is read once its group is there.
        device::synchronize(compute_);
        optimizer.add_group(members_of(group), options_of(group.at("options").at("lr").get<double>()));
      }
      if (asked_.at("checks_zero_grad").get<bool>()) clear_and_look(optimizer, step);
      device::enqueue(compute_, [this, step] { make_gradients(step); });
      delay_if_late(asked_, communication_);
      optimizer.step(compute_);
      device::enqueue(compute_, [this, step] {
        std::copy_n(plane_.begin(), total(), training_.of_rank("weights", rank_).subspan(at(step * total())).begin());
      });
    }
    device::synchronize(communication_);
    device::synchronize(compute_);
    training_.of_rank("held", rank_)[0] = static_cast<float>(optimizer.state_bytes() / sizeof(float));
    training_.of_rank("events", rank_)[0] = 0;  // its laws look at none
  }

 private:
  std::int64_t total() const { return parameters_.back().first + parameters_.back().count; }

  std::vector<OptimizedParameter> members_of(const Json& group) {
    std::vector<OptimizedParameter> made;
    for (const Json& member : group.at("members")) {
      const OwnParameter& one = parameters_[member.get<std::size_t>()];
      OptimizedParameter& added =
          made.emplace_back(OptimizedParameter{one.name, {plane_.data() + one.first, DType::f32, {one.count}}, {}});
      if (one.trains) added.gradient = {gradients_.data() + one.first, DType::f32, {one.count}};
    }
    return made;
  }

  void make_gradients(int step) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const OwnParameter& one = parameters_[i];
      const int uses = uses_of(asked_, step, static_cast<int>(i));
      if (!one.trains || uses == 0) continue;
      std::ranges::copy(gradient_of(training_, step, 0, rank_, one, uses, plane_), gradients_.begin() + one.first);
    }
  }

  template <typename Optimizer>
  void clear_and_look(Optimizer& optimizer, int step) {
    optimizer.zero_gradients(compute_);
    device::synchronize(compute_);
    for (const OwnParameter& one : parameters_) {
      const auto begin = gradients_.begin() + one.first;
      if (std::all_of(begin, begin + one.count, [](float value) { return value == 0; })) continue;
      throw Error(ErrorKind::check,
                  fmt::format("the gradient of '{}' is not zero before step {}, on rank {}", one.name, step, rank_));
    }
  }

  const OwnTraining& training_;
  const Json& asked_;
  int rank_;
  Stream compute_, communication_;
  std::vector<OwnParameter> parameters_;
  std::vector<float> plane_, gradients_;
};

}  // namespace

TrainOwn train_sharded_optimizer() {
  return [](const OwnTraining& training, comm::Communicator& ranks, Stream compute, Stream communication) {
    const Json& given = training.asked.at("options");
    Owner owner(training, ranks, compute, communication);
    if (training.asked.at("optimizer") == "AdamW") {
      parallel::ShardedOptimizer<parallel::GroupedAdamW> optimizer(ranks, communication, adamw::find_rung("naive"),
                                                                   compute);
      owner.train(optimizer, [&](double rate) {
        return adamw::Options{.lr = rate,
                              .beta1 = given.at("betas").at(0).get<double>(),
                              .beta2 = given.at("betas").at(1).get<double>(),
                              .eps = given.at("eps").get<double>(),
                              .weight_decay = given.at("weight_decay").get<double>(),
                              .decay_order = adamw::DecayOrder::before,
                              .eps_mode = adamw::EpsMode::corrected};
      });
      return;
    }
    parallel::ShardedOptimizer<Momentum> optimizer(ranks, communication);
    owner.train(optimizer, [&](double rate) { return Momentum::Options{rate, given.value("momentum", 0.0)}; });
  };
}

}  // namespace syslab
