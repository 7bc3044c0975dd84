#include "worker/cases/channel_training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "core/index.hpp"
#include "core/text/json_text.hpp"
#include "worker/cases/weight_bounds.hpp"
#include "worker/judged/foreign.hpp"

namespace syslab::worker {
namespace {

constexpr std::int64_t kMostWeights = 1 << 22;        // that are compared
constexpr std::int64_t kWeightsAStep = 512;           // of each rank, as a step has left them
constexpr std::uint64_t kSeedsOfTokens = 1ULL << 31;  // that every generator takes
constexpr std::int64_t kFieldsTold = sizeof(Told) / sizeof(double);

}  // namespace

ChannelTraining::ChannelTraining(CaseContext& context, const TimedRanks& timed, std::shared_ptr<CallChannel> channel)
    : context_(context),
      timed_(timed),
      channel_(std::move(channel)),
      case_(timed.training),
      ranks_(timed.training.at("ranks").get<std::int64_t>()),
      tokens_(context.unforeseen("tokens")),
      told_(at(ranks_)) {
  for (const std::int64_t one : timed_.parameters) total_ += one;
  // Of full sharding each rank has parts, which only the class itself puts together.
  if (timed_.training.at("communicates") && timed_.training.at("way") != "fully_sharded") {
    a_step_ = std::min(total_, kWeightsAStep);
  }
  case_["seed"] = context.unforeseen("weights").bits(0) % kSeedsOfTokens;
  channel_->call("open", {}, {}, {{"case", json_text(case_)}});
}

void ChannelTraining::refresh() {
  keep();
  const double seed = static_cast<double>(tokens_.bits(seeds_.size()) % kSeedsOfTokens);
  seeds_.push_back(static_cast<std::uint64_t>(seed));
  const std::array<NamedInput, 1> inputs{{{"seed", {&seed, DType::f64, {1}}}}};
  channel_->call("refresh", inputs, {}, {});
}

void ChannelTraining::step() {
  const double number = static_cast<double>(seeds_.size());  // a call with an input is timed, and no question
  const std::array<NamedInput, 1> inputs{{{"number", {&number, DType::f64, {1}}}}};
  Params where;
  if (a_step_ > 0) {
    firsts_.push_back(
        static_cast<std::int64_t>(places_.bits(firsts_.size()) % static_cast<std::uint64_t>(step_stride())));
    where = {{"first", firsts_.back()}, {"stride", step_stride()}, {"count", a_step_}};
  }
  elapsed_ = channel_->call(kStepOfRanks, inputs, {}, where);
  ask();
  fresh_ = true;
}

double ChannelTraining::seconds() const { return Seconds(elapsed_).count(); }

void ChannelTraining::keep() {
  if (std::exchange(fresh_, false)) kept_.push_back(told_);
}

StepCheck ChannelTraining::check_steps(std::span<const float> first, std::span<const float> second) const {
  StepCheck worst{.name = "weights behind each step", .tolerance = 1};
  const std::array<std::int64_t, 1> all{a_step_};
  for (std::size_t step = 0; step < after_.size(); ++step) {
    const auto of = [&](std::span<const float> values, std::size_t row) {
      return values.subspan(row * at(a_step_), at(a_step_));
    };
    for (std::size_t rank = 0; rank < at(ranks_); ++rank) {
      const double error = compare_weights(of(after_[step], rank), of(first, step), of(second, step), all).worst;
      if (error <= worst.error && !worst.message.empty()) continue;
      worst.error = error;
      worst.message = fmt::format(
          "{} weights of rank {} when step {} of {} had ended against those of one process, over their bound: what a "
          "step begins must have ended by then",
          a_step_, rank, step + 1, after_.size());
    }
  }
  return worst;
}

StepCheck ChannelTraining::check_loss() const {
  const bool is_number = std::ranges::all_of(told_, [](const Told& one) { return std::isfinite(one.loss); });
  return {.name = "loss",
          .error = is_number ? 0 : std::numeric_limits<double>::quiet_NaN(),
          .message = fmt::format("the mean over rank 0's rows is {}", told_[0].loss)};
}

std::vector<StepCheck> ChannelTraining::check_weights() {
  const auto picked = pick();
  const std::int64_t count = picked.count;
  const Params where{{"first", picked.first}, {"stride", picked.stride}};
  std::vector<float> found(at(ranks_ * count)), alone(at(2 * count));
  const std::array<NamedOutput, 1> theirs{{{"weights", {found.data(), DType::f32, {ranks_, count}}}}};
  context_.progress(1, "comparing weights with those of one process");
  channel_->call("weights", {}, theirs, where);
  channel_->call("close", {}, {}, {});
  Params asked = where;
  asked.set("case", json_text(case_));
  std::string seeds;
  for (const std::uint64_t seed : seeds_) seeds += std::to_string(seed) + " ";
  asked.set("seeds", seeds);
  const auto steps = static_cast<std::int64_t>(after_.size());
  std::vector<float> after(at(2 * steps * a_step_));
  std::vector<NamedOutput> own{{"weights", {alone.data(), DType::f32, {2, count}}}};
  if (!after.empty()) {
    own.push_back({"after", {after.data(), DType::f32, {2, steps, a_step_}}});
    std::string firsts;
    for (const std::int64_t one : firsts_) firsts += std::to_string(one) + " ";
    asked.set("firsts", firsts);
    asked.set("step_stride", step_stride());
  }
  context_.lab_ranks()->call("alone", {}, own, asked);

  const std::span<const float> first(alone.data(), at(count)), second(alone.data() + count, at(count));
  std::vector<StepCheck> checks;
  for (std::int64_t rank = 0; rank < ranks_; ++rank) {
    const std::span<const float> own_weights(found.data() + rank * count, at(count));
    const WeightBounds bounds = compare_weights(own_weights, first, second, picked.elements);
    checks.push_back({.name = fmt::format("weights (rank {})", rank),
                      .error = bounds.worst,
                      .tolerance = 1,
                      .message = fmt::format("weights after {} steps against those of one process, over their bound; "
                                             "furthest in parameter {} of {}",
                                             seeds_.size(), bounds.parameter, timed_.parameters.size()),
                      .fraction = static_cast<double>(count) / static_cast<double>(picked.total)});
  }
  if (!after.empty()) {
    const auto half = std::span<const float>(after).subspan(0, after.size() / 2);
    checks.push_back(check_steps(half, std::span<const float>(after).subspan(after.size() / 2)));
  }
  return checks;
}

void ChannelTraining::ask() {
  std::vector<NamedOutput> outputs;
  if (a_step_ > 0) {
    std::vector<float>& found = after_.emplace_back(at(ranks_ * a_step_));
    outputs.push_back({"after", {found.data(), DType::f32, {ranks_, a_step_}}});
  }
  outputs.push_back({"told", {told_.data(), DType::f64, {ranks_, kFieldsTold}}});
  channel_->call("told", {}, outputs, {});
}

ChannelTraining::Picked ChannelTraining::pick() const {
  Picked made;
  made.total = total_;
  made.stride = std::max<std::int64_t>(1, (made.total + kMostWeights - 1) / kMostWeights);
  made.first =
      static_cast<std::int64_t>(context_.unforeseen("positions").bits(0) % static_cast<std::uint64_t>(made.stride));
  const auto before = [&](std::int64_t end) {  // picked positions below `end`
    return end <= made.first ? 0 : (end - made.first - 1) / made.stride + 1;
  };
  std::int64_t begin = 0;
  for (const std::int64_t one : timed_.parameters) {
    made.elements.push_back(before(begin + one) - before(begin));
    begin += one;
  }
  made.count = before(made.total);
  return made;
}

}  // namespace syslab::worker
