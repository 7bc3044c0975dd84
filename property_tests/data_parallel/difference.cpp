// What is wrong with what a class trained, where it is first, and what it looks like.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "property_tests/data_parallel/training.hpp"

namespace syslab::data_parallel {
namespace {

constexpr double kUnit = 0x1p-24;  // by which fp32 rounds at most

// 0 is to the bit, and NaN is close to nothing.
bool is_close(double found, double expected, double bound, DType dtype) {
  if (bound > 0) return std::abs(found - expected) <= bound;
  return found == (dtype == DType::f64 ? expected : double{static_cast<float>(expected)});
}

// What an error looks like that is too large for fp32, of something of this size.
std::string_view coarser(double error, double size) {
  constexpr double kFp16 = 0x1p-10, kBf16 = 0x1p-7;  // each rounds by half of that at most
  if (error <= kFp16 * size) return "as if it had been rounded to fp16";
  return error <= kBf16 * size ? "as if it had been rounded to bf16" : "";
}

std::string place_in(const Parameter& parameter, std::int64_t element) {
  std::vector<std::int64_t> index(parameter.shape.size());
  for (std::size_t axis = index.size(); axis-- > 0; element /= parameter.shape[axis]) {
    index[axis] = element % parameter.shape[axis];
  }
  return index.empty() ? fmt::format("'{}'", parameter.name)
                       : fmt::format("'{}'[{}]", parameter.name, fmt::join(index, ", "));
}

// Of a parameter in fp64, whether all of its gradient is what fp32 leaves of it.
template <typename Expected>
bool is_as_fp32(const Parameter& parameter, const Trained& found, const Expected& expected, int rank, int step) {
  if (parameter.dtype != DType::f64) return false;
  for (std::int64_t i = parameter.first; i < parameter.first + parameter.count(); ++i) {
    if (std::abs(found.gradient(rank, step, i) - expected(i)) > 4 * kUnit * std::abs(expected(i))) return false;
  }
  return true;
}

// What a wrong gradient of a whole parameter looks like, for whoever has to find out why.
Likeness likeness(const Training& asked, const Trained& found, const Alone& alone, int rank, int step, int index) {
  const Parameter& parameter = asked.parameters[static_cast<std::size_t>(index)];
  const auto all = [&](const auto& expected) {
    for (std::int64_t i = parameter.first; i < parameter.first + parameter.count(); ++i) {
      const double bound = alone.gradient_bounds[static_cast<std::size_t>(step)][static_cast<std::size_t>(i)];
      if (!is_close(found.gradient(rank, step, i), expected(i), asked.ranks * bound, parameter.dtype)) return false;
    }
    return true;
  };
  const auto weight = [&](std::int64_t i) {
    return step == 0 ? start_value(asked, 0, i)
                     : alone.weights[static_cast<std::size_t>(step - 1)][static_cast<std::size_t>(i)];
  };
  const auto mean = [&](std::int64_t i) {
    return alone.gradients[static_cast<std::size_t>(step)][static_cast<std::size_t>(i)];
  };
  if (std::isnan(found.gradient(rank, step, parameter.first))) return {"there is none"};
  if (all([](std::int64_t) { return 0; })) return {"all of it is 0"};
  const auto own = [&](std::int64_t i) { return own_gradient(asked, step, rank, index, i, weight(i)); };
  if (asked.ranks > 1 && all(own)) return {"that is this rank's own, not reduced or read before it was waited for"};
  if (asked.ranks > 1 && all([&](std::int64_t i) { return own(i) / asked.ranks; })) {
    constexpr std::string_view kRest = "without the other ranks': not reduced, or divided before it was waited for";
    return {fmt::format("that is this rank's own over {}, {}", asked.ranks, kRest),
            fmt::format("that is this rank's own over the number of ranks, {}", kRest)};
  }
  if (asked.ranks > 1 && all([&](std::int64_t i) { return mean(i) * asked.ranks; })) {
    return {fmt::format("that is the sum over ranks, not divided by {}", asked.ranks),
            "that is the sum over ranks, not divided by their number"};
  }
  if (asked.ranks > 1 && all([&](std::int64_t i) { return mean(i) / asked.ranks; })) {
    return {fmt::format("divided by {} once too often", asked.ranks), "divided by the number of ranks once too often"};
  }
  for (const int fixed : {2, 3, 4, 8}) {
    if (!all([&](std::int64_t i) { return mean(i) * asked.ranks / fixed; })) continue;
    return {fmt::format("that is the sum over ranks divided by {}, and there {}", fixed,
                        asked.ranks == 1 ? "is 1 rank" : fmt::format("are {} ranks", asked.ranks)),
            "that is the sum over ranks divided by a number that is not theirs"};
  }
  if (!asked.real) return {is_as_fp32(parameter, found, mean, rank, step) ? "as if it had been rounded to fp32" : ""};
  double error = 0, size = 0;
  for (std::int64_t i = parameter.first; i < parameter.first + parameter.count(); ++i) {
    error = std::max(error, std::abs(found.gradient(rank, step, i) - mean(i)));
    size = std::max(size, std::abs(mean(i)));
  }
  return {std::string(coarser(error, size))};
}

// A weight of a step that is what it would be if the optimizer had been made without one option, or without all.
std::string without_options(const Training& asked, const Trained& found, int rank, int step, const Parameter& one) {
  const auto is = [&](const Options& options) {
    Training other = asked;
    other.options = options;
    const Alone alone = train_alone(other);
    for (std::int64_t i = one.first; i < one.first + one.count(); ++i) {
      const auto at = static_cast<std::size_t>(step), place = static_cast<std::size_t>(i);
      const double expected = alone.weights[at][place], bound = alone.weight_bounds[at][place];
      if (!is_close(found.weight(rank, step, i), expected, bound, one.dtype)) return false;
    }
    return true;
  };
  std::vector<Options> dropped;
  for (const Option option : asked.options) dropped.push_back({option});
  if (asked.options.size() > 1) dropped.push_back(asked.options);
  for (const Options& some : dropped) {
    Options kept = asked.options;
    std::erase_if(kept, [&](Option option) { return std::ranges::count(some, option) > 0; });
    if (is(kept)) return fmt::format("as if the wrapped optimizer had not been given {}", names_of(some));
  }
  return {};
}

std::string explained(double bound) {
  return bound == 0 ? "" : fmt::format(", of which {:.2g} may be rounding", bound);
}

}  // namespace

std::optional<Wrong> difference_in_state(const Training& asked, const Trained& found, bool buffers) {
  std::vector<Parameter> all = asked.parameters;
  if (buffers) all = asked.buffers;
  std::int64_t at = buffers ? asked.elements() : 0;
  for (const Parameter& one : all) {
    for (std::int64_t i = 0; i < one.count(); ++i, ++at) {
      for (int rank = 0; rank < asked.ranks; ++rank) {
        const double expected = start_value(asked, 0, at);
        if (found.state_of(rank, at) == static_cast<float>(expected)) continue;
        return fmt::format(
            "rank {} begins with {}{} = {}, rank 0 had {} when the container was made: it must share its {}", rank,
            one.trains ? "" : "the frozen ", place_in(one, i), found.state_of(rank, at), expected,
            buffers ? "buffers" : "parameters, also those that do not train");
      }
    }
  }
  return std::nullopt;
}

std::optional<Wrong> difference(const Training& asked, const Trained& found) {
  const Alone alone = train_alone(asked);
  for (int step = 0; step < asked.steps(); ++step) {
    const auto at = static_cast<std::size_t>(step);
    for (int index = 0; index < static_cast<int>(asked.parameters.size()); ++index) {
      const Parameter& parameter = asked.parameters[static_cast<std::size_t>(index)];
      for (std::int64_t i = 0; i < parameter.count() && !asked.sharded; ++i) {
        const std::int64_t element = parameter.first + i;
        const double expected = alone.gradients[at][static_cast<std::size_t>(element)];
        for (int rank = 0; rank < asked.ranks && !std::isnan(expected); ++rank) {
          const double gradient = found.gradient(rank, step, element);
          const double bound = alone.gradient_bounds[at][static_cast<std::size_t>(element)];
          if (is_close(gradient, expected, bound, parameter.dtype)) continue;
          return Wrong(fmt::format("the gradient of {} on rank {} in step {} is {}, in one process {}{}",
                                   place_in(parameter, i), rank, step, gradient, expected, explained(bound)),
                       likeness(asked, found, alone, rank, step, index));
        }
      }
    }
    for (const Parameter& parameter : asked.parameters) {
      for (std::int64_t i = 0; i < parameter.count(); ++i) {
        const std::int64_t element = parameter.first + i;
        const double expected = alone.weights[at][static_cast<std::size_t>(element)];
        for (int rank = 0; rank < asked.ranks; ++rank) {
          const double weight = found.weight(rank, step, element);
          const double bound = alone.weight_bounds[at][static_cast<std::size_t>(element)];
          if (is_close(weight, expected, bound, parameter.dtype)) continue;
          const double before =
              step == 0 ? start_value(asked, 0, element) : alone.weights[at - 1][static_cast<std::size_t>(element)];
          std::string like;
          if (is_close(weight, before, 0, parameter.dtype)) {
            like = "it is as it was before the step";
          } else if (asked.real) {
            like = coarser(std::abs(weight - expected), std::abs(expected - before));
          } else {
            like = without_options(asked, found, rank, step, parameter);
          }
          return Wrong(fmt::format("{}{} on rank {} after step {} is {}, in one process {}{}",
                                   parameter.trains ? "" : "the frozen ", place_in(parameter, i), rank, step, weight,
                                   expected, explained(bound)),
                       Likeness{like});
        }
      }
    }
  }
  return std::nullopt;
}

}  // namespace syslab::data_parallel
