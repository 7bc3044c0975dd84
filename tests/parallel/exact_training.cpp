#include "tests/parallel/exact_training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/random.hpp"
#include "parallel/in_order.hpp"

namespace syslab::property {

namespace exact {

TensorView view_of(std::vector<float>& values) {
  return {values.data(), DType::f32, {static_cast<std::int64_t>(values.size())}};
}

adamw::Options options_of(int group) {
  return {.lr = 0.75 / (group + 1), .beta1 = 0.5, .beta2 = 0.75, .eps = 1e-8, .weight_decay = 0.125};
}

void add_gradient(const ExactModel& model, const ExactStep& step, int tensor, const RowBlock& rows,
                  const float* weights, float* out, bool add) {
  const ExactTensor& of = model.tensors[at(tensor)];
  const RandomStream random = RandomStream::derive(model.seed, "exact", of.name, std::to_string(step.number));
  const std::int64_t end = std::min(rows.first + rows.count, step.users[at(tensor)]);
  for (std::int64_t i = 0; i < of.elements(); ++i) {
    float sum = add ? out[i] : 0;
    for (std::int64_t row = rows.first; row < end; ++row) {
      const auto bits = static_cast<int>(random.bits(static_cast<std::uint64_t>(row * of.elements() + i)) % 9);
      sum += static_cast<float>(bits % 3 - 1) + weights[i] * static_cast<float>(bits / 3 - 1);
    }
    out[i] = sum;
  }
}

}  // namespace exact

namespace {

using device::Stream;
using exact::at;
using exact::view_of;
using parallel::in_order;
using parallel::OptimizedParameter;

// To the grid.
void snap(std::span<float> weights) {
  for (float& one : weights) one = std::clamp(std::nearbyint(2 * one) / 2, -1.0F, 1.0F);
}

}  // namespace

float ExactModel::initial(int tensor, std::int64_t element) const {
  const RandomStream random = RandomStream::derive(seed, "exact", tensors[at(tensor)].name, "weights");
  return 0.5F * static_cast<float>(random.bits(static_cast<std::uint64_t>(element)) % 5) - 1;
}

std::string ExactState::difference(const ExactModel& model, const std::vector<StatePiece>& pieces) const {
  for (const StatePiece& piece : pieces) {
    const auto of = std::ranges::find(model.tensors, piece.parameter, &ExactTensor::name) - model.tensors.begin();
    const std::vector<float>& expected = planes[static_cast<std::size_t>(piece.plane)].at(at(of));
    for (std::int64_t i = 0; i < piece.values.elements(); ++i) {
      const float found = piece.values.as<float>()[i], wanted = expected.at(at(piece.first + i));
      if (std::memcmp(&found, &wanted, sizeof found) == 0 || (found == 0 && wanted == 0)) continue;
      return fmt::format("{} {} of '{}' is {} after step {}, and {} of one process", to_string(piece.plane),
                         piece.first + i, piece.parameter, found, step, wanted);
    }
  }
  return {};
}

SnappedAdamW::SnappedAdamW(Stream stream) : inner_(adamw::find_rung("naive"), stream) {}

void SnappedAdamW::add_group(std::span<const OptimizedParameter> parameters, const Options& options) {
  inner_.add_group(parameters, options);
  options_ = options;
  for (const OptimizedParameter& one : parameters) {
    weights_.push_back(one.weight);
    gradients_.push_back(one.gradient);
  }
}

void SnappedAdamW::step_one(int number, Stream stream) const {
  const adamw::Scalars scalars = adamw::scalars_of(options_, counted_ + 1);
  const auto flat = [](const auto& view) {
    auto made = view;
    made.shape = {view.elements()};
    return made;
  };
  const TensorView p = flat(weights_[at(number)]), m = flat(moment(test::Moment::first, 0, number)),
                   v = flat(moment(test::Moment::second, 0, number));
  in_order(stream, [p, m, v, scalars, g = flat(gradients_[at(number)])](Stream) {
    adamw::find_rung("naive").step({.elements = p.elements(), .dtype = DType::f32},
                                   {.p = p, .m = m, .v = v, .g = g, .scalars = &scalars}, {});
    snap(std::span(p.as<float>(), at(p.elements())));
  });
}

void SnappedAdamW::step(Stream stream) {
  inner_.step(stream);
  for (const TensorView& weights : weights_) {
    in_order(stream, [weights](Stream) { snap(std::span(weights.as<float>(), at(weights.elements()))); });
  }
}

void ExactAlone::join() {
  const int end = model_.grouped ? state_.joined + 1 : model_.size();
  for (; state_.joined < end; ++state_.joined) {
    std::vector<float> weights;
    const std::int64_t elements = model_.tensors[at(state_.joined)].elements();
    for (std::int64_t i = 0; i < elements; ++i) weights.push_back(model_.initial(state_.joined, i));
    state_.planes[1].emplace_back(weights.size());
    state_.planes[2].emplace_back(weights.size());
    state_.planes[0].push_back(std::move(weights));
  }
  state_.group_steps.push_back(0);
}

void ExactAlone::take(const ExactStep& step) {
  ++state_.step;
  for (std::int64_t& steps : state_.group_steps) ++steps;
  for (int i = 0; i < state_.joined; ++i) {
    const int group = model_.grouped ? i : 0;
    std::vector<float>& weights = state_.planes[0][at(i)];
    std::vector<float> gradient(weights.size());
    exact::add_gradient(model_, step, i, {0, step.rows}, weights.data(), gradient.data(), false);
    const adamw::Scalars scalars = adamw::scalars_of(exact::options_of(group), state_.group_steps[at(group)]);
    const adamw::Problem problem{.elements = static_cast<std::int64_t>(weights.size()), .dtype = DType::f32};
    adamw::find_rung("naive").step(problem,
                                   {.p = view_of(weights),
                                    .m = view_of(state_.planes[1][at(i)]),
                                    .v = view_of(state_.planes[2][at(i)]),
                                    .g = view_of(gradient),
                                    .scalars = &scalars},
                                   {});
    snap(weights);
  }
}

}  // namespace syslab::property
