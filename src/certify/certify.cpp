// The models that a certificate is drawn of, and all of them trained both ways.
#include <fmt/format.h>

#include <algorithm>

#include "certify/certificate.hpp"
#include "core/error.hpp"
#include "core/random.hpp"

namespace syslab::parallel {
namespace {

bool has_tied(const ToyModel& model) {
  return std::ranges::any_of(model.layers, [](const ToyLayer& one) { return one.tied_to >= 0; });
}

bool has_frozen(const ToyModel& model) {
  return model.fixed || std::ranges::any_of(model.layers, [](const ToyLayer& one) { return one.frozen_bias; });
}

// The first seed, from this one on, whose drawn model has both.
std::uint64_t tied_and_frozen_from(std::uint64_t seed) {
  while (!has_tied(drawn_model(seed)) || !has_frozen(drawn_model(seed))) ++seed;
  return seed;
}

}  // namespace

ToyModel drawn_model(std::uint64_t seed) {
  const RandomStream random(seed);
  std::uint64_t at = 0;
  const auto below = [&](std::int64_t end) { return static_cast<std::int64_t>(random.bits(at++)) % end; };
  const std::int64_t layers = 1 + below(3);
  std::vector<std::int64_t> widths;
  for (std::int64_t i = 0; i <= layers; ++i) widths.push_back(1 + below(6));
  const bool tied = layers == 3 && below(2) == 0;
  if (tied) widths = {widths[0], widths[0], widths[0], widths[3]};
  ToyModel model{.fixed = below(2) == 0, .padding = below(5)};
  for (std::size_t i = 0; i < static_cast<std::size_t>(layers); ++i) {
    ToyLayer layer{.in = widths[i], .out = widths[i + 1], .bias = below(2) == 0};
    layer.frozen_bias = layer.bias && below(3) == 0;
    if (tied && i == 1) layer.tied_to = 0;
    model.layers.push_back(layer);
  }
  if (below(2) == 0) model.rare = static_cast<int>(below(5));
  return model;
}

void Certified::add(const CertificateCase& asked, const Trained& trained) {
  ++models;
  tied += has_tied(asked.model) ? 1 : 0;
  frozen += has_frozen(asked.model) ? 1 : 0;
  groups += asked.groups ? 1 : 0;
  steps = asked.steps;
  compared += static_cast<std::int64_t>(trained.weights.size());
}

std::string to_string(const Certified& found) {
  const std::string groups =
      found.groups == 0
          ? ""
          : fmt::format(", {} with two parameter groups of which one is added after the first step", found.groups);
  const std::string among =
      found.tied + found.frozen == 0
          ? ""
          : fmt::format(", {} with tied weights and {} with frozen parameters{},", found.tied, found.frozen, groups);
  return fmt::format("{} toy models with exact arithmetic{} have the bits of one process after {} steps", found.models,
                     among, found.steps);
}

Certified certify(comm::Communicator& ranks, SyncOptions options, std::uint64_t seed, device::Stream compute,
                  device::Stream communication, const CertifiedWay& way) {
  constexpr int kModels = 4;
  options.wire.reset();
  Certified certified;
  const std::uint64_t first = tied_and_frozen_from(seed);
  for (std::uint64_t number = 0; number < kModels; ++number) {
    const std::uint64_t drawn = first + number;
    CertificateCase asked{.model = drawn_model(drawn), .seed = drawn, .parts = 1 + static_cast<int>(number % 2)};
    asked.sync = options;
    asked.sharding = way.sharding;
    asked.copy = way.copy;
    asked.in_turn = way.in_turn;
    asked.groups = way.sharding == Sharding::optimizer && number % 2 == 0;
    asked.model.alignment = ranks.size();  // as in a model that is sharded
    const GradientPieces pieces = ToyNetwork(asked.model, {}).pieces();
    // Limits and schedules were made for the real model: this one needs its own, with two or three buckets.
    if (options.strategy == Strategy::planned)
      asked.sync.schedule = schedule_by_count(pieces, 2 + static_cast<int>(number % 2));
    if (options.strategy == Strategy::bucketed) asked.sync.bucket_mb = {40 / 0x1p20};
    const Trained together = train_together(asked, ranks, compute, communication);
    const std::optional<std::string> found = difference(asked, together, train_alone(asked));
    for (const std::string& text : ranks.exchange(found.value_or(""))) {
      if (text.empty()) continue;
      throw Error(ErrorKind::check,
                  fmt::format("{}, sharding {}, over {} ranks ({}) is not equal to one process: {} (model {})",
                              to_string(options.strategy), to_string(way.sharding), ranks.size(), ranks.backend(), text,
                              drawn));
    }
    certified.add(asked, together);
  }
  return certified;
}

}  // namespace syslab::parallel
