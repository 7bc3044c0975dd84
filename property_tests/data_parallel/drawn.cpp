#include "property_tests/data_parallel/drawn.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <ostream>
#include <span>

#include "check/search.hpp"
#include "core/random.hpp"
#include "property_tests/draw.hpp"
#include "property_tests/verdict.hpp"

namespace syslab::data_parallel {
namespace {

// A choice that follows from the seed, so that a module shrinks with its number of layers alone.
std::uint32_t choice(std::uint64_t seed, std::uint64_t place, std::uint32_t end) {
  return RandomStream::derive(seed, "data parallel", "", "module").bits(place) % end;
}

// The hand-outs' own model has a weight of (50, 10), and trains for 5 steps by DDP and for 10 by a sharded optimizer.
constexpr std::int64_t kOfficialShape[]{50, 10}, kLargeShape[]{33, 71};
constexpr std::int64_t kKernelShape[]{3, 2, 3, 2}, kCubeShape[]{2, 3, 4};
constexpr int kOfficialSteps = 5, kMostSteps = 12;

// What a module has besides its layers.
enum class Forms { none, single, scalar, cube, kernel, large, all };

void showValue(Forms forms, std::ostream& stream) {
  constexpr std::array kNames{"none", "(1)", "()", "three dimensions", "four dimensions", "large", "all"};
  stream << kNames[static_cast<std::size_t>(forms)];
}

void append(std::vector<Parameter>& list, Parameter one) {
  if (!list.empty()) one.first = list.back().first + list.back().count();
  list.push_back(std::move(one));
}

void add_layer(Training& made, int layer, const Wanted& wanted) {
  const auto place = static_cast<std::uint64_t>(8 * layer);
  const auto size = [&](std::uint64_t which) -> std::int64_t {
    constexpr std::int64_t kSizes[]{1, 2, 3, 4, 5, 7, 12};
    return wanted.equal_sizes ? 4 : kSizes[choice(made.seed, place + which, 7)] + (wanted.strided ? 1 : 0);
  };
  constexpr std::int64_t kLarge = 64;
  const std::int64_t out = size(0) * (wanted.large ? kLarge : 1), in = size(1) + (wanted.large ? 3 : 0);
  const DType dtype = wanted.mixed && layer % 2 == 1 ? DType::f64 : DType::f32;
  append(
      made.parameters,
      {.name = fmt::format("layers.{}.weight", layer), .shape = {out, in}, .dtype = dtype, .strided = wanted.strided});
  if (!wanted.equal_sizes && choice(made.seed, place + 2, 2) == 1) {
    append(made.parameters, {fmt::format("layers.{}.bias", layer), {out}, dtype, !(wanted.frozen && layer % 2 == 1)});
  }
  if (wanted.empty && layer == 0) append(made.parameters, {fmt::format("layers.{}.nothing", layer), {0}});
  if (wanted.buffers) append(made.buffers, {fmt::format("layers.{}.mean", layer), {out}});
}

void add_forms(Training& made, int layer, Forms forms, check::Contract contract) {
  const auto add = [&](Forms which, const char* name, std::span<const std::int64_t> shape) {
    if (forms != which && forms != Forms::all) return;
    append(made.parameters, {.name = fmt::format("layers.{}.{}", layer, name), .shape = {shape.begin(), shape.end()}});
  };
  if (contract == check::Contract::handout) return add(Forms::large, "large", kOfficialShape);
  constexpr std::int64_t kSingle[]{1};
  add(Forms::single, "single", kSingle);
  add(Forms::scalar, "scalar", {});
  add(Forms::cube, "cube", kCubeShape);
  add(Forms::kernel, "kernel", kKernelShape);
  add(Forms::large, "large", kLargeShape);
}

Forms draw_forms(check::Contract contract) {
  if (contract == check::Contract::handout)
    return property::draw("other parameters", std::vector{Forms::none, Forms::large});
  return property::draw("other parameters", std::vector{Forms::none, Forms::single, Forms::scalar, Forms::cube,
                                                        Forms::kernel, Forms::large, Forms::all});
}

// A quarter of trainings that may be long are.
int draw_steps(const Wanted& wanted, check::Contract contract) {
  const std::int64_t most =
      contract == check::Contract::handout ? (wanted.sharded ? 2 * kOfficialSteps : kOfficialSteps) : kMostSteps;
  std::vector<std::int64_t> further(static_cast<std::size_t>(wanted.most_steps - wanted.fewest_steps + 1));
  std::iota(further.begin(), further.end(), wanted.fewest_steps - 1);
  if (wanted.many_steps && most > wanted.most_steps) further.push_back(most - 1);
  return static_cast<int>(1 + property::draw("further steps", further));
}

std::vector<int> uses_of_step(const Training& made, int step, int first, const Wanted& wanted) {
  std::vector<int> uses(made.parameters.size() - static_cast<std::size_t>(first));
  std::iota(uses.begin(), uses.end(), first);
  const auto place = static_cast<std::uint64_t>(1000 + 100 * step);
  if (wanted.unused && uses.size() > 1) {
    // At least one stays: a step without a gradient has no backward pass.
    std::erase_if(uses, [&](int one) {
      return one != uses.back() && choice(made.seed, place + static_cast<std::uint64_t>(one), 3) == 0;
    });
  }
  for (const Tie& tie : made.ties) uses.push_back(tie.to);
  if (wanted.reordered) {
    for (std::size_t i = uses.size(); i > 1; --i) {
      std::swap(uses[i - 1], uses[choice(made.seed, place + 50 + i, static_cast<std::uint32_t>(i))]);
    }
  }
  return uses;
}

}  // namespace

int draw_ranks(check::Contract contract, int fewest) {
  std::vector<int> counts{2, 1, 3, 4};
  if (contract == check::Contract::handout) counts = {2};
  std::erase_if(counts, [&](int count) { return count < fewest; });
  return property::draw("ranks", counts);
}

Training draw_training(int ranks, const Wanted& wanted, check::Contract contract) {
  Training made;
  made.ranks = ranks;
  const auto layers = static_cast<int>(
      wanted.fewest_layers + property::draw_below("further layers", wanted.most_layers - wanted.fewest_layers + 1));
  const int steps = draw_steps(wanted, contract);
  made.seed = property::draw_seed();
  if (wanted.frozen) append(made.parameters, {"layers.0.fixed", {2}, DType::f32, false});
  for (int layer = 0; layer < layers * (wanted.equal_sizes ? ranks : 1); ++layer) add_layer(made, layer, wanted);
  if (wanted.forms) add_forms(made, layers + 1, draw_forms(contract), contract);
  if (wanted.tied) {
    const int to = wanted.frozen ? 1 : 0;
    made.ties.push_back({fmt::format("layers.{}.weight", layers), to});
  }
  for (int step = 0; step < steps; ++step) made.uses.push_back(uses_of_step(made, step, wanted.frozen ? 1 : 0, wanted));
  made.set_to_none.assign(static_cast<std::size_t>(steps), true);
  made.late = wanted.late || property::draw<bool>("late", {false, true});
  // Weights that feed back would need more bits than fp32 has when they have been halved and halved again.
  if (steps > wanted.most_steps) made.curve = 0;
  return made;
}

std::string never_drawn(std::string_view otherwise) {
  const auto count = [](const auto& shape) {
    return std::accumulate(std::begin(shape), std::end(shape), std::int64_t{1}, std::multiplies<>());
  };
  return fmt::format("parameters of more than {} elements{} or {} dimensions, trainings of more than {} steps",
                     std::max(count(kLargeShape), count(kOfficialShape)), otherwise, std::size(kKernelShape),
                     kMostSteps);
}

check::LawResult search_of_ranks(const char* id, const check::LawRequest& request, bool beyond,
                                 const std::function<void(check::Contract)>& body, const std::string& limits) {
  const auto search_in = [&](const check::LawRequest& asked) {
    return check::search(id, asked, [&](check::Observation&) { body(asked.contract); });
  };
  check::LawResult found = search_in(request);
  if (!beyond) check::look_in_promised(request, found, search_in);
  if (found.outcome == check::Outcome::passed && request.contract != check::Contract::handout && !limits.empty()) {
    found.finding.never_drawn = limits;
  }
  return found;
}

void demand_none(const Training& asked, const std::optional<Wrong>& wrong) {
  if (!wrong) return;
  property::fail(wrong->said + "\n" + asked.describe(), FindingKind::wrong_value, {}, {.cause = wrong->cause});
}

}  // namespace syslab::data_parallel
