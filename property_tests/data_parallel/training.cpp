#include "property_tests/data_parallel/training.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <ostream>

#include "core/random.hpp"
#include "core/refusal.hpp"
#include "core/text/json_text.hpp"
#include "property_tests/data_parallel/streams.hpp"

namespace syslab::data_parallel {
namespace {

constexpr int kParts = 2;  // most backward passes of a step
constexpr double kMomentum = 0.5, kBeta1 = 0.9, kBeta2 = 0.999, kEps = 1e-8, kDecay = 0.1;
// Of trainings with these options.
constexpr double kDampening = 0.5, kShortBeta2 = 0.5, kLargeEps = 0.5;

double beta2_of(const Training& asked) { return asked.has(Option::betas) ? kShortBeta2 : kBeta2; }
double eps_of(const Training& asked) { return asked.has(Option::eps) ? kLargeEps : kEps; }

std::string_view name_of(Option option) {
  constexpr std::array<std::string_view, 6> kNames{"nesterov", "dampening", "maximize", "amsgrad", "betas", "eps"};
  return kNames[static_cast<std::size_t>(option)];
}

constexpr double kUnit = 0x1p-24;  // by which fp32 rounds at most
// What numbers of a batch are multiplied by for a parameter in fp64: they need more bits than fp32 has, and after a few
// steps not more than two numbers of fp32 hold.
constexpr double kWide = 1 + 0x1p26;

// Whole numbers from −4 to 4; real ones are any numbers of fp32 from −1/2 to 1/2, as large as those of the hand-outs'
// models.
double drawn(const Training& asked, std::string_view what, std::uint64_t place) {
  const double uniform = stream_of(asked.seed, "data parallel", what).uniform(place);
  return asked.real ? double{static_cast<float>(uniform - 0.5)} : std::floor(uniform * 9) - 4;
}

// So that a third of it is exact, wherever a class divides, and again of what a further backward pass adds to.
double scale_of(const Training& asked) {
  return !asked.sharded && !asked.real && asked.ranks == 3 ? std::pow(3, asked.backwards) : 1;
}

// The number of a batch for a parameter's element; `use`: 0, or 1 the second time in a step.
double batch_value(const Training& asked, int step, int part, int rank, int use, std::int64_t element) {
  const std::int64_t width = 2 * asked.elements();
  const int whose = asked.sharded ? 0 : rank;
  const std::int64_t place =
      ((std::int64_t{step} * kParts + part) * 8 + whose) * width + use * asked.elements() + element;
  return scale_of(asked) * drawn(asked, "batch", static_cast<std::uint64_t>(place));
}

double wide_of(const Training& asked, int parameter) {
  return asked.parameters[static_cast<std::size_t>(parameter)].dtype == DType::f64 ? kWide : 1;
}

std::int64_t uses_of(const Training& asked, int step, int parameter) {
  return std::ranges::count(asked.uses[static_cast<std::size_t>(step)], parameter);
}

double gradient_of(const Training& asked, int step, int part, int rank, int parameter, std::int64_t element,
                   double weight) {
  double sum = 0;
  for (int use = 0; use < uses_of(asked, step, parameter); ++use) {
    sum += wide_of(asked, parameter) * batch_value(asked, step, part, rank, use, element) +
           scale_of(asked) * asked.curve * weight;
  }
  return sum;
}

// Σ of the sizes of all that a gradient's mean is made of, over all ranks.
double size_of_terms(const Training& asked, int step, int parameter, std::int64_t element, double weight) {
  double sum = 0;
  for (int rank = 0; rank < asked.ranks; ++rank) {
    for (int part = 0; part < asked.backwards; ++part) {
      for (int use = 0; use < uses_of(asked, step, parameter); ++use) {
        sum += std::abs(batch_value(asked, step, part, rank, use, element)) + asked.curve * std::abs(weight);
      }
    }
  }
  return sum;
}

Json described(const std::vector<Parameter>& parameters) {
  Json list = Json::array();
  for (const Parameter& one : parameters) {
    list.push_back({{"name", one.name},
                    {"shape", one.shape},
                    {"dtype", std::string(to_string(one.dtype))},
                    {"trains", one.trains},
                    {"strided", one.strided}});
  }
  return list;
}

Json optimizer_json(const Training& asked) {
  Json groups = Json::array();
  for (const Group& group : asked.groups) {
    groups.push_back({{"members", group.members}, {"from", group.from}, {"options", {{"lr", group.rate}}}});
  }
  Json options{{"lr", asked.rate}};
  if (asked.update == Update::momentum) options["momentum"] = kMomentum;
  if (asked.update == Update::adamw)
    options.update({{"betas", {kBeta1, beta2_of(asked)}}, {"eps", eps_of(asked)}, {"weight_decay", kDecay}});
  for (const Option one : {Option::nesterov, Option::maximize, Option::amsgrad}) {
    if (asked.has(one)) options[std::string(name_of(one))] = true;
  }
  if (asked.has(Option::dampening)) options["dampening"] = kDampening;
  return {{"optimizer", asked.update == Update::adamw ? "AdamW" : "SGD"},
          {"options", options},
          {"groups", groups},
          {"as_groups", asked.as_groups},
          {"closure", asked.closure},
          {"checks_zero_grad", asked.checks_zero_grad},
          {"rate_changes", asked.rate_changes}};
}

Json case_json(const Training& asked) {
  Json ties = Json::array();
  for (const Tie& tie : asked.ties) ties.push_back({{"name", tie.name}, {"to", tie.to}});
  Json made{{"way", asked.sharded ? "sharded_optimizer" : "data_parallel"},
            {"ranks", asked.ranks},
            {"parameters", described(asked.parameters)},
            {"buffers", described(asked.buffers)},
            {"ties", ties},
            {"uses", asked.uses},
            {"steps", asked.steps()},
            {"backwards", asked.backwards},
            {"set_to_none", asked.set_to_none},
            {"late", asked.late},
            {"curve", scale_of(asked) * asked.curve},
            {"wide", kWide},
            {"rate", asked.rate},
            {"resume_at", asked.resume_at}};
  if (asked.keyword) made["keyword"] = true;
  if (asked.looks_at_memory) made["looks_at_memory"] = true;
  if (asked.evaluates) made["evaluates"] = true;
  // Whatever the seed of the case is, it is none that a class would choose.
  if (asked.seeds_torch) made["torch_seed"] = (asked.seed ^ 0x6A09E667F3BCC908) >> 1;
  if (asked.bucket_mb) made["bucket_mb"] = *asked.bucket_mb ? Json(**asked.bucket_mb) : Json();
  if (asked.sharded) made.update(optimizer_json(asked));
  return made;
}

// One parameter of one process under AdamW, momentum or plain descent.
struct Updated {
  double weight = 0, first = 0, second = 0, largest = 0;
  double error = 0;  // of real numbers: how far a right class may be from it
  int steps = 0;

  void take(const Training& asked, double rate, double gradient) {
    ++steps;
    if (asked.has(Option::maximize)) gradient = -gradient;
    if (asked.update == Update::adamw) {
      const double beta2 = beta2_of(asked);
      weight *= 1 - rate * kDecay;
      first = kBeta1 * first + (1 - kBeta1) * gradient;
      second = beta2 * second + (1 - beta2) * gradient * gradient;
      largest = asked.has(Option::amsgrad) ? std::max(largest, second) : second;
      const double mean = first / (1 - std::pow(kBeta1, steps)), square = largest / (1 - std::pow(beta2, steps));
      weight -= rate * mean / (std::sqrt(square) + eps_of(asked));
    } else if (asked.update == Update::momentum) {
      // As in torch, the first gradient is not dampened.
      first = kMomentum * first + (asked.has(Option::dampening) && steps > 1 ? 1 - kDampening : 1) * gradient;
      weight -= rate * (asked.has(Option::nesterov) ? gradient + kMomentum * first : first);
    } else {
      weight -= rate * gradient;
    }
  }
};

// The rate at which a step updates a parameter; nothing: it is in no group yet.
std::optional<double> rate_of(const Training& asked, int step, int parameter) {
  if (!asked.sharded) return asked.rate;
  double change = 1;
  for (int i = 0; i <= step && i < static_cast<int>(asked.rate_changes.size()); ++i) {
    change *= asked.rate_changes[static_cast<std::size_t>(i)];
  }
  for (const Group& group : asked.groups) {
    if (group.from <= step && std::ranges::count(group.members, parameter) > 0) return group.rate * change;
  }
  return std::nullopt;
}

// Of AdamW in fp32, each step rounds the update some dozen times and the weight twice. The mean may be small beside
// the gradients it is made of, by at most the root of the steps. With `betas` that forget, `amsgrad` keeps what the
// mean is divided by at no less than 0.7 of the largest gradient.
double allowed(const Training& asked, double weight) {
  if (asked.update != Update::adamw) return 0;
  const double steps = asked.steps();
  return steps * (32 * std::sqrt(steps) * asked.rate + 4 * (4 + std::abs(weight))) * kUnit;
}

// How far the mean of a gradient may be from the exact one: each use of a parameter rounds twice, each rank is one more
// term of the sum, and a class may scale before and after it (four times; a reciprocal rounds, too). Sums may be made
// in any order. What `error` a weight has goes through the curve.
double bound_of_gradient(const Training& asked, int step, int parameter, double size, double error) {
  const double uses = static_cast<double>(uses_of(asked, step, parameter)) * asked.backwards;
  return (2 * uses + asked.ranks + 4) * kUnit * size / asked.ranks + asked.curve * uses * error;
}

// How much further from the exact one a weight is when plain descent has taken a gradient that is off by `bound`. The
// rate and its product round, and so does the difference.
double error_of_step(double rate, double gradient, double bound, double weight) {
  return rate * bound + kUnit * (3 * rate * std::abs(gradient) + std::abs(weight));
}

}  // namespace

std::int64_t Parameter::count() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::int64_t Training::elements() const {
  return std::accumulate(parameters.begin(), parameters.end(), std::int64_t{0},
                         [](std::int64_t sum, const Parameter& one) { return sum + one.count(); });
}

std::int64_t Training::buffer_elements() const {
  return std::accumulate(buffers.begin(), buffers.end(), std::int64_t{0},
                         [](std::int64_t sum, const Parameter& one) { return sum + one.count(); });
}

std::string names_of(const Options& options) {
  std::vector<std::string_view> names;
  for (const Option one : options) names.push_back(name_of(one));
  return fmt::format("{}", fmt::join(names, ", "));
}

void showValue(Update update, std::ostream& stream) {
  constexpr std::array<std::string_view, 3> kNames{"SGD", "SGD with momentum", "AdamW"};
  stream << kNames[static_cast<std::size_t>(update)];
}

void showValue(const Options& options, std::ostream& stream) {
  stream << (options.empty() ? "none" : names_of(options));
}

bool Training::has(Option option) const { return std::ranges::count(options, option) > 0; }

bool Training::has_fp64() const { return std::ranges::count(parameters, DType::f64, &Parameter::dtype) > 0; }

bool Training::uses_in(int step, int parameter) const { return uses_of(*this, step, parameter) > 0; }

std::string Training::describe() const {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& one = parameters[i];
    std::string text = fmt::format("{} ({})", one.name, fmt::join(one.shape, ", "));
    if (one.dtype != DType::f32) text += fmt::format(" {}", to_string(one.dtype));
    if (!one.trains) text += " frozen";
    for (const Tie& tie : ties) {
      if (tie.to == static_cast<int>(i)) text += fmt::format(" = {}", tie.name);
    }
    words.push_back(std::move(text));
  }
  for (const Parameter& one : buffers)
    words.push_back(fmt::format("buffer {} ({})", one.name, fmt::join(one.shape, ", ")));
  std::string also = keyword ? "; forward() gets a keyword argument" : "";
  if (!options.empty()) also += fmt::format("; options of the optimizer: {}", names_of(options));
  return fmt::format("the module: {}{}", fmt::join(words, "; "), also);
}

float Trained::state_of(int rank, std::int64_t element) const {
  return state.at(static_cast<std::size_t>(rank * (elements + buffers) + element));
}

double Trained::gradient(int rank, int step, std::int64_t element) const {
  const auto at = static_cast<std::size_t>((rank * steps + step) * elements + element);
  return gradients.at(at) + (gradients_low.empty() ? 0.0 : gradients_low.at(at));
}

double Trained::weight(int rank, int step, std::int64_t element) const {
  const auto at = static_cast<std::size_t>((rank * steps + step) * elements + element);
  return weights.at(at) + (weights_low.empty() ? 0.0 : weights_low.at(at));
}

std::vector<Sent> Trained::sent(int rank) const { return sent_by(events, rank); }

double start_value(const Training& asked, int rank, std::int64_t element) {
  const int whose = asked.sharded ? 0 : rank;
  const std::int64_t width = asked.elements() + asked.buffer_elements();
  return drawn(asked, "start", static_cast<std::uint64_t>(whose * width + element));
}

double own_gradient(const Training& asked, int step, int rank, int parameter, std::int64_t element, double weight) {
  double sum = 0;
  for (int part = 0; part < asked.backwards; ++part) {
    sum += gradient_of(asked, step, part, rank, parameter, element, weight);
  }
  return sum;
}

Trained train(CallChannel& ranks, const Training& asked) {
  const std::int64_t n = asked.ranks, steps = asked.steps(), total = asked.elements(),
                     buffers = asked.buffer_elements();
  std::vector<float> start, batch;
  for (int rank = 0; rank < n; ++rank) {
    for (std::int64_t i = 0; i < total + buffers; ++i) start.push_back(static_cast<float>(start_value(asked, rank, i)));
  }
  for (int step = 0; step < steps; ++step) {
    for (int part = 0; part < asked.backwards; ++part) {
      for (int rank = 0; rank < n; ++rank) {
        for (const int use : {0, 1}) {
          for (std::int64_t i = 0; i < total; ++i) {
            batch.push_back(static_cast<float>(batch_value(asked, step, part, rank, use, i)));
          }
        }
      }
    }
  }
  Trained found{.ranks = n, .steps = steps, .elements = total, .buffers = buffers};
  const auto empty = [](std::int64_t count) {
    return std::vector<float>(static_cast<std::size_t>(count), std::numeric_limits<float>::quiet_NaN());
  };
  found.state = empty(n * (total + buffers));
  found.gradients = empty(n * steps * total);
  found.weights = empty(n * steps * total);
  found.events = empty(n * kSentRows * kSentFields);
  found.held = empty(n);
  const std::array<NamedInput, 2> inputs{
      {{"start", {start.data(), DType::f32, {n, total + buffers}}},
       {"batch", {batch.data(), DType::f32, {steps, asked.backwards, n, 2 * total}}}}};
  std::vector<NamedOutput> outputs{{{"state", {found.state.data(), DType::f32, {n, total + buffers}}},
                                    {"gradients", {found.gradients.data(), DType::f32, {n, steps, total}}},
                                    {"weights", {found.weights.data(), DType::f32, {n, steps, total}}},
                                    {"events", {found.events.data(), DType::f32, {n, kSentRows, kSentFields}}},
                                    {"held", {found.held.data(), DType::f32, {n, 1}}}}};
  if (asked.has_fp64()) {
    found.gradients_low = empty(n * steps * total);
    found.weights_low = empty(n * steps * total);
    outputs.push_back({"gradients_low", {found.gradients_low.data(), DType::f32, {n, steps, total}}});
    outputs.push_back({"weights_low", {found.weights_low.data(), DType::f32, {n, steps, total}}});
  }
  try {
    ranks.call("train", inputs, outputs, {{"case", json_text(case_json(asked))}});
  } catch (const Refusal& raised) {  // to train is all that is asked: there is no case that may be refused
    throw FoundFault(ErrorKind::check, raised.finding(), raised.what(), {}, raised.lacks());
  }
  return found;
}

Alone train_alone(const Training& asked) {
  Alone alone;
  std::vector<Updated> state(static_cast<std::size_t>(asked.elements()));
  for (std::size_t i = 0; i < state.size(); ++i) state[i].weight = start_value(asked, 0, static_cast<std::int64_t>(i));
  for (int step = 0; step < asked.steps(); ++step) {
    std::vector<double>& gradients =
        alone.gradients.emplace_back(state.size(), std::numeric_limits<double>::quiet_NaN());
    std::vector<double>& weights = alone.weights.emplace_back();
    std::vector<double>& gradient_bounds = alone.gradient_bounds.emplace_back(state.size());
    std::vector<double>& weight_bounds = alone.weight_bounds.emplace_back();
    for (int index = 0; index < static_cast<int>(asked.parameters.size()); ++index) {
      const Parameter& parameter = asked.parameters[static_cast<std::size_t>(index)];
      const std::optional<double> rate = rate_of(asked, step, index);
      for (std::int64_t i = parameter.first; i < parameter.first + parameter.count(); ++i) {
        Updated& one = state[static_cast<std::size_t>(i)];
        if (parameter.trains && asked.uses_in(step, index)) {
          double sum = 0;
          for (int rank = 0; rank < asked.ranks; ++rank) sum += own_gradient(asked, step, rank, index, i, one.weight);
          const double gradient = sum / asked.ranks, size = size_of_terms(asked, step, index, i, one.weight);
          const double bound = asked.real ? bound_of_gradient(asked, step, index, size, one.error) : 0;
          gradients[static_cast<std::size_t>(i)] = gradient;
          gradient_bounds[static_cast<std::size_t>(i)] = asked.close ? std::numeric_limits<double>::infinity() : bound;
          if (rate) one.take(asked, *rate, gradient);
          if (rate && asked.real) one.error += error_of_step(*rate, gradient, bound, one.weight);
        }
        weights.push_back(one.weight);
        weight_bounds.push_back(std::max(allowed(asked, one.weight), one.error));
        if (asked.close && parameter.trains) {
          const double close = asked.close->absolute + asked.close->relative * std::abs(one.weight);
          weight_bounds.back() = std::max(weight_bounds.back(), close);
        }
      }
    }
  }
  return alone;
}

}  // namespace syslab::data_parallel
