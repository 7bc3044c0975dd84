#include "property_tests/data_parallel/drawn.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

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

Training draw_training(int ranks, const Wanted& wanted) {
  Training made;
  made.ranks = ranks;
  const auto layers = static_cast<int>(
      wanted.fewest_layers + property::draw_below("further layers", wanted.most_layers - wanted.fewest_layers + 1));
  const auto steps = static_cast<int>(1 + property::draw_below("further steps", wanted.most_steps));
  made.seed = property::draw_seed();
  if (wanted.frozen) append(made.parameters, {"layers.0.fixed", {2}, DType::f32, false});
  for (int layer = 0; layer < layers * (wanted.equal_sizes ? ranks : 1); ++layer) add_layer(made, layer, wanted);
  if (wanted.tied) {
    const int to = wanted.frozen ? 1 : 0;
    made.ties.push_back({fmt::format("layers.{}.weight", layers), to});
  }
  for (int step = 0; step < steps; ++step) made.uses.push_back(uses_of_step(made, step, wanted.frozen ? 1 : 0, wanted));
  made.set_to_none.assign(static_cast<std::size_t>(steps), true);
  return made;
}

check::LawResult search_of_ranks(const char* id, const check::LawRequest& request, bool beyond,
                                 const std::function<void(check::Contract)>& body) {
  const auto search_in = [&](const check::LawRequest& asked) {
    return check::search(id, asked, [&](check::Observation&) { body(asked.contract); });
  };
  check::LawResult found = search_in(request);
  if (!beyond) check::look_in_promised(request, found, search_in);
  return found;
}

void demand_none(const Training& asked, const std::optional<Wrong>& wrong) {
  if (!wrong) return;
  property::fail(wrong->said + "\n" + asked.describe(), FindingKind::wrong_value, {}, {.cause = wrong->cause});
}

}  // namespace syslab::data_parallel
