// Laws of full sharding. Its module is a chain of layers that the classes know how to shard, with gradients in closed
// form (src/python/syslab_training.py, Chain). All numbers are exact, but in trainings on `real` ones, of which each
// sum and product has a bound.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/random.hpp"
#include "core/refusal.hpp"
#include "core/text/json_text.hpp"
#include "property_tests/data_parallel/drawn.hpp"
#include "property_tests/data_parallel/laws.hpp"
#include "property_tests/data_parallel/rank_laws.hpp"
#include "property_tests/data_parallel/rounding.hpp"
#include "property_tests/data_parallel/sent.hpp"
#include "property_tests/data_parallel/streams.hpp"
#include "property_tests/data_parallel/training.hpp"
#include "property_tests/draw.hpp"
#include "property_tests/verdict.hpp"

namespace syslab::data_parallel::fully_sharded {
namespace {

constexpr double kRate = 0.25, kCurve = 1;
constexpr double kUnit = 0x1p-24;  // by which fp32 rounds at most

struct Layer {
  enum class Kind { embedding, linear, gain };
  Kind kind = Kind::linear;
  std::string name{};
  std::int64_t rows = 1, columns = 1;  // of the weight; a gain has rows alone
  std::int64_t first = 0;              // of its elements among all layers'
  std::int64_t batch_first = 0;        // of its numbers in a rank's batch: x, then c
  int shares = -1;                     // the layer before it whose weight it uses; −1: one of its own

  std::int64_t count() const { return rows * columns; }
  std::int64_t inputs() const { return kind == Kind::gain ? 0 : kind == Kind::embedding ? 1 : columns; }
  std::int64_t outputs() const { return kind == Kind::embedding ? columns : rows; }
};

struct Chain {
  int ranks = 2, steps = 1;
  std::uint64_t seed = 0;
  bool late = false;
  bool keyword = false;                 // the container is called with the batch as a keyword argument
  bool looks_at_memory = false;         // for whole weights anywhere in a rank's process
  bool real = false;                    // numbers that need all bits
  std::optional<DType> compute{};       // handed to the class; layers then compute in it
  bool or_without = false;              // if the class takes no such dtype, or torch has no products in it
  bool seeds_torch = false;             // the lab does, before the class is made, which must not do it again
  std::optional<Tolerance> official{};  // of `real`: what a hand-out's test allows of weights, where a bound is less
  double rate = kRate, curve = kCurve;
  std::vector<Layer> layers{};

  std::int64_t elements() const {
    std::int64_t end = 0;
    for (const Layer& layer : layers) end = std::max(end, layer.first + layer.count());
    return end;
  }
  std::int64_t width() const { return layers.back().batch_first + layers.back().inputs() + layers.back().outputs(); }
  double scale() const { return ranks == 3 && !real ? 3 : 1; }  // so that a third is exact
  // Of a layer; nothing rounds where numbers are not real.
  Rounding rounding() const { return real ? rounding_in(compute.value_or(DType::f32)) : Rounding{}; }
};

double number(const Chain& asked, std::string_view what, std::int64_t place, std::uint32_t end) {
  return stream_of(asked.seed, "full sharding", what).bits(static_cast<std::uint64_t>(place)) % end;
}

// Of fp32, from −size to size.
double real_number(const Chain& asked, std::string_view what, std::int64_t place, double size) {
  const RandomStream& stream = stream_of(asked.seed, "full sharding", what);
  return double{static_cast<float>(size * (2 * double{stream.uniform(static_cast<std::uint64_t>(place))} - 1))};
}

// Real weights are small next to their gradients, so that the tolerance of a hand-out's test, which is relative, does
// not hide how gradients were rounded.
double start_value(const Chain& asked, std::int64_t element) {
  constexpr double kSize = 1.0 / 32;
  return asked.real ? real_number(asked, "start", element, kSize) : number(asked, "start", element, 5) - 2;
}

// Of a layer's x (place < inputs) or c.
double batch_value(const Chain& asked, int step, int rank, const Layer& layer, std::int64_t place) {
  constexpr double kSlope = 0.25, kInput = 1;  // gradients are as large as in the hand-out's test
  const std::int64_t at = (std::int64_t{step} * 8 + rank) * asked.width() + layer.batch_first + place;
  if (place >= layer.inputs()) {
    return asked.real ? real_number(asked, "batch", at, kSlope) : asked.scale() * (number(asked, "batch", at, 5) - 2);
  }
  if (layer.kind == Layer::Kind::embedding) return number(asked, "batch", at, static_cast<std::uint32_t>(layer.rows));
  return asked.real ? real_number(asked, "batch", at, kInput) : number(asked, "batch", at, 3) - 1;
}

void append(Chain& made, Layer layer) {
  if (!made.layers.empty()) {
    const Layer& last = made.layers.back();
    layer.first = layer.shares < 0 ? made.elements() : made.layers[static_cast<std::size_t>(layer.shares)].first;
    layer.batch_first = last.batch_first + last.inputs() + last.outputs();
  }
  layer.name = fmt::format("layers.{}.weight", made.layers.size());
  made.layers.push_back(std::move(layer));
}

// The hand-out's own model has weights of (128, 64), and trains for 3 steps.
constexpr std::int64_t kLargeColumns = 37, kLargeRows = 64, kMostRanks = 4;
constexpr int kOfficialSteps = 3, kMostSteps = 12;

enum class Rows { even, uneven, many };
enum class Late { some, all };

// `many`: so many rows for each rank that padding is small next to them.
Chain drawn(int ranks, Rows how, Late late = Late::some) {
  constexpr std::int64_t kMany = 2 * kMostPadding;
  Chain made;
  made.ranks = ranks;
  const auto linears = 1 + property::draw_below("further layers", 4);
  made.steps = static_cast<int>(1 + property::draw_below("further steps", 2));
  made.seed = property::draw_seed();
  made.late = late == Late::all || property::draw<bool>("late", {false, true});
  const auto size = [&](std::int64_t place) { return static_cast<std::int64_t>(1 + number(made, "sizes", place, 4)); };
  const auto rows = [&](std::int64_t place) {
    return how == Rows::uneven ? size(place) + 1 : size(place) * ranks * (how == Rows::many ? kMany : 1);
  };
  append(made, {.kind = Layer::Kind::embedding, .rows = rows(0), .columns = size(1)});
  for (std::int64_t i = 0; i < linears; ++i) {
    if (i % 2 == 0) append(made, {.kind = Layer::Kind::gain, .rows = size(10 * i + 12)});
    append(made, {.kind = Layer::Kind::linear, .rows = rows(10 * i + 10), .columns = size(10 * i + 11)});
  }
  return made;
}

// The same where some chains end in a large layer, or train for many steps.
Chain drawn_far(int ranks, Rows how, check::Contract contract, Late late = Late::some) {
  Chain made = drawn(ranks, how, late);
  if (property::draw<bool>("a large layer", {false, false, false, true})) {
    const std::int64_t rows = kLargeRows / kMostRanks * ranks + (how == Rows::uneven ? 1 : 0);
    append(made, {.kind = Layer::Kind::gain, .rows = kLargeRows});
    append(made, {.kind = Layer::Kind::linear, .rows = rows, .columns = kLargeColumns});
  }
  if (property::draw<int>("many steps", {0, 0, 0, 0, 0, 1}) == 1) {
    made.steps = contract == check::Contract::handout ? kOfficialSteps : kMostSteps;
    made.curve = 0;  // weights that feed back would need more bits than fp32 has
  }
  return made;
}

std::string never_drawn() {
  return fmt::format(
      "weights of more than {} elements (except where sizes of parts are asked), trainings of more than {} steps",
      (kLargeRows + 1) * kLargeColumns, kMostSteps);
}

std::string describe(const Chain& asked) {
  std::vector<std::string> words;
  for (const Layer& layer : asked.layers) {
    const char* const kind = layer.kind == Layer::Kind::embedding ? "an embedding" : "a linear layer";
    const std::string is =
        layer.shares < 0 ? "" : fmt::format(" = {}", asked.layers[static_cast<std::size_t>(layer.shares)].name);
    words.push_back(layer.kind == Layer::Kind::gain
                        ? fmt::format("{} ({}) of a norm", layer.name, layer.rows)
                        : fmt::format("{} ({}, {}) of {}{}", layer.name, layer.rows, layer.columns, kind, is));
  }
  const std::string in = asked.compute ? fmt::format(", compute_dtype {}", to_string(*asked.compute)) : "";
  const std::string_view also = asked.keyword ? "; forward() gets a keyword argument" : "";
  return fmt::format("the module: {}{}{}", fmt::join(words, "; "), in, also);
}

[[noreturn]] void fail(const Chain& asked, const Wrong& wrong) {
  property::fail(wrong.said + "\n" + describe(asked), FindingKind::wrong_value, {}, {.cause = wrong.cause});
}

Json case_json(const Chain& asked) {
  Json layers = Json::array();
  for (const Layer& layer : asked.layers) {
    const bool gain = layer.kind == Layer::Kind::gain;
    layers.push_back({{"name", layer.name},
                      {"kind", gain                                   ? "gain"
                               : layer.kind == Layer::Kind::embedding ? "embedding"
                                                                      : "linear"},
                      {"shape", gain ? Json{layer.rows} : Json{layer.rows, layer.columns}},
                      {"shares", layer.shares}});
  }
  Json made{{"way", "fully_sharded"}, {"ranks", asked.ranks}, {"layers", layers},
            {"steps", asked.steps},   {"late", asked.late},   {"curve", asked.scale() * asked.curve},
            {"rate", asked.rate}};
  if (asked.keyword) made["keyword"] = true;
  if (asked.looks_at_memory) made["looks_at_memory"] = true;
  if (asked.compute) made["compute_dtype"] = std::string(to_string(*asked.compute));
  if (asked.or_without) made["or_without"] = true;
  // Whatever the seed of the case is, it is none that a class would choose.
  if (asked.seeds_torch) made["torch_seed"] = (asked.seed ^ 0x6A09E667F3BCC908) >> 1;
  return made;
}

struct Found {
  std::vector<float> weights, held, events;
};

Found train(CallChannel& ranks, const Chain& asked) {
  const std::int64_t n = asked.ranks, total = asked.elements();
  std::vector<float> start, batch;
  for (int rank = 0; rank < asked.ranks; ++rank) {
    for (std::int64_t i = 0; i < total; ++i) start.push_back(static_cast<float>(start_value(asked, i)));
  }
  for (int step = 0; step < asked.steps; ++step) {
    for (int rank = 0; rank < asked.ranks; ++rank) {
      for (const Layer& layer : asked.layers) {
        for (std::int64_t i = 0; i < layer.inputs() + layer.outputs(); ++i) {
          batch.push_back(static_cast<float>(batch_value(asked, step, rank, layer, i)));
        }
      }
    }
  }
  const auto empty = [](std::int64_t count) {
    return std::vector<float>(static_cast<std::size_t>(count), std::numeric_limits<float>::quiet_NaN());
  };
  Found found{empty(n * asked.steps * total), empty(n), empty(n * kSentRows * kSentFields)};
  const std::array<NamedInput, 2> inputs{{{"start", {start.data(), DType::f32, {n, total}}},
                                          {"batch", {batch.data(), DType::f32, {asked.steps, n, asked.width()}}}}};
  const std::array<NamedOutput, 3> outputs{{{"weights", {found.weights.data(), DType::f32, {n, asked.steps, total}}},
                                            {"events", {found.events.data(), DType::f32, {n, kSentRows, kSentFields}}},
                                            {"held", {found.held.data(), DType::f32, {n, 1}}}}};
  try {
    ranks.call("train", inputs, outputs, {{"case", json_text(case_json(asked))}});
  } catch (const Refusal& raised) {
    throw FoundFault(ErrorKind::check, raised.finding(), raised.what(), {}, raised.lacks());
  }
  return found;
}

// By element: what it is in one process, and how far a right class may be from it.
struct Weight {
  double value = 0, error = 0;
};

// The gradient of an output y: the loss has c · y + curve / 2 · y². It rounds three times where it goes back through a
// layer's dtype.
Bounded slope_of(const Chain& asked, double c, const Bounded& y) {
  const double curve = asked.scale() * asked.curve, size = std::abs(c) + curve * y.size;
  return {c + curve * y.value, size, asked.real ? curve * y.error + 3 * asked.rounding().of(size) : 0};
}

// Adds what a rank's batch contributes to the gradient of a layer.
void add_gradient(const Chain& asked, int step, int rank, const Layer& layer, const std::vector<Weight>& weights,
                  std::vector<Bounded>& gradients) {
  const Rounding by = asked.rounding();
  const auto at = [&](std::int64_t row, std::int64_t column) {
    return static_cast<std::size_t>(layer.first + row * layer.columns + column);
  };
  const auto x = [&](std::int64_t i) { return batch_value(asked, step, rank, layer, i); };
  const auto slope = [&](std::int64_t output, const Bounded& y) {
    return slope_of(asked, batch_value(asked, step, rank, layer, layer.inputs() + output), y);
  };
  if (layer.kind == Layer::Kind::embedding) {
    const auto token = static_cast<std::int64_t>(x(0));
    for (std::int64_t i = 0; i < layer.columns; ++i) {
      const std::size_t place = at(token, i);
      add_to_gradient(gradients[place], slope(i, as_read(weights[place].value, weights[place].error, by)), 1, by);
    }
    return;
  }
  for (std::int64_t row = 0; row < layer.rows; ++row) {
    const bool gain = layer.kind == Layer::Kind::gain;
    const Weight& first = weights[at(row, 0)];
    Bounded y = gain ? as_read(first.value, first.error, by) : Bounded{};
    for (std::int64_t k = 0; k < layer.columns && !gain; ++k) {
      const Weight& one = weights[at(row, k)];
      add_product(y, one.value, one.error, x(k), layer.columns, by);
    }
    const Bounded g = slope(row, y);
    for (std::int64_t k = 0; k < layer.columns; ++k) add_to_gradient(gradients[at(row, k)], g, gain ? 1 : x(k), by);
  }
}

// A step of plain descent on the mean over ranks.
void take_step(const Chain& asked, const std::vector<Bounded>& gradients, std::vector<Weight>& weights) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double gradient = gradients[i].value / asked.ranks;
    const double bound = error_of_mean(gradients[i], asked.ranks, asked.rounding());
    weights[i].value -= asked.rate * gradient;
    if (!asked.real) continue;
    weights[i].error += asked.rate * bound + kUnit * (3 * asked.rate * std::abs(gradient) + std::abs(weights[i].value));
  }
}

bool is_right(const Chain& asked, float found, const Weight& expected) {
  if (!asked.real) return found == static_cast<float>(expected.value);
  double bound = expected.error;
  if (const auto& official = asked.official) {
    bound = std::max(bound, official->absolute + official->relative * std::abs(expected.value));
  }
  return std::abs(found - expected.value) <= bound;
}

// What a step that is wrong looks like.
Likeness likeness(const Chain& asked, double moved, double wanted) {
  if (moved == 0) return {"it is as it was before the step"};
  const auto is = [&](double other) { return std::abs(moved - other) <= (asked.real ? 1e-3 * std::abs(other) : 0); };
  if (asked.ranks > 1 && is(wanted * asked.ranks)) return {"moved by the sum over ranks, not by the mean"};
  if (asked.ranks > 1 && is(wanted / asked.ranks)) return {"moved by the mean, divided once more"};
  constexpr double kBf16 = 0x1p-6;  // twice of what two roundings to it do
  const bool rounds = asked.real && !asked.compute && std::abs(moved - wanted) <= kBf16 * std::abs(wanted);
  return {rounds ? "as if its gradient had been rounded to fewer bits than fp32 has" : ""};
}

void demand_one_process(CallChannel& ranks, const Chain& asked) {
  const Found found = train(ranks, asked);
  std::vector<Weight> weights;
  for (std::int64_t i = 0; i < asked.elements(); ++i) weights.push_back({start_value(asked, i)});
  for (int step = 0; step < asked.steps; ++step) {
    std::vector<Bounded> gradients(weights.size());
    for (int rank = 0; rank < asked.ranks; ++rank) {
      for (const Layer& layer : asked.layers) add_gradient(asked, step, rank, layer, weights, gradients);
    }
    const std::vector<Weight> before = weights;
    take_step(asked, gradients, weights);
    for (const Layer& layer : asked.layers) {
      for (std::int64_t i = 0; i < layer.count() && layer.shares < 0; ++i) {
        const auto element = static_cast<std::size_t>(layer.first + i);
        for (int rank = 0; rank < asked.ranks; ++rank) {
          const auto place = static_cast<std::size_t>(rank * asked.steps + step) * weights.size() + element;
          if (is_right(asked, found.weights[place], weights[element])) continue;
          Wrong wrong(fmt::format("'{}'[{}, {}], gathered on rank {} after step {}, is {}, in one process {}",
                                  layer.name, i / layer.columns, i % layer.columns, rank, step, found.weights[place],
                                  weights[element].value),
                      likeness(asked, found.weights[place] - before[element].value,
                               weights[element].value - before[element].value));
          if (asked.late) add_forgotten_wait(wrong, sent_by(found.events, 0));
          fail(asked, wrong);
        }
      }
    }
  }
}

void equals_one_process(CallChannel& ranks, check::Contract contract) {
  Chain asked = drawn_far(draw_ranks(contract), Rows::even, contract);
  asked.keyword = property::draw<bool>("keyword argument", {false, true});
  demand_one_process(ranks, asked);
}

// At the rate of the hand-out's test, and with its tolerance under its contract.
Chain as_real(Chain asked, check::Contract contract, const Tolerance& official) {
  constexpr double kOfficialRate = 0.01;
  asked.real = true;
  asked.curve = kCurve;  // in long trainings, too: there is a bound
  asked.rate = kOfficialRate;
  if (contract == check::Contract::handout) asked.official = official;
  return asked;
}

void real_numbers(CallChannel& ranks, check::Contract contract) {
  demand_one_process(ranks, as_real(drawn_far(draw_ranks(contract), Rows::even, contract), contract, {1e-6, 1e-4}));
}

template <DType dtype>
void computes_in(CallChannel& ranks, check::Contract contract) {
  Chain asked = as_real(drawn(draw_ranks(contract), Rows::even), contract, {1e-4, 1e-4});
  asked.compute = dtype;
  demand_one_process(ranks, asked);
}

// The last layer, linear, uses the embedding's weight.
void tied(CallChannel& ranks, check::Contract contract) {
  Chain asked = drawn(draw_ranks(contract, 2), Rows::even);
  append(asked,
         {.kind = Layer::Kind::linear, .rows = asked.layers[0].rows, .columns = asked.layers[0].columns, .shares = 0});
  demand_one_process(ranks, asked);
}

void waits(CallChannel& ranks, check::Contract contract) {
  demand_one_process(ranks, drawn_far(draw_ranks(contract, 2), Rows::even, contract, Late::all));
}

void uneven_rows(CallChannel& ranks, check::Contract contract) {
  demand_one_process(ranks, drawn_far(draw_ranks(contract, 2), Rows::uneven, contract));
}

void holds_parts(CallChannel& ranks, check::Contract contract) {
  Chain asked = drawn(draw_ranks(contract, 2), Rows::many);
  asked.looks_at_memory = asked.or_without = true;
  if (property::draw<bool>("compute_dtype bf16", {false, true})) asked.compute = DType::bf16;
  const Found found = train(ranks, asked);
  std::int64_t share = 0, padding = 0;
  for (const Layer& layer : asked.layers) {
    const bool sharded = layer.kind != Layer::Kind::gain;
    share += layer.count() / (sharded ? asked.ranks : 1);
    padding += sharded ? kMostPadding : 0;  // parts may be aligned
  }
  for (int rank = 0; rank < asked.ranks; ++rank) {
    const float held = found.held[static_cast<std::size_t>(rank)];
    if (held <= static_cast<float>(share + padding)) continue;
    fail(asked, fmt::format("between steps rank {} holds {} elements of parameters, its share of {} is {}, with at "
                            "most {} of padding",
                            rank, held, asked.elements(), share, padding));
  }
}

// A container that seeds torch makes other random numbers repeat, such as those of dropout.
void keeps_random_numbers(CallChannel& ranks, check::Contract contract) {
  Chain asked = drawn(draw_ranks(contract), Rows::even);
  asked.seeds_torch = true;
  static_cast<void>(train(ranks, asked));  // raises; what comes out is other laws'
}

// Laws of what is handed in alone: ours computes in the model's precision, and uses each matrix once.
constexpr RankLaw kEntries[] = {
    {"fsdp.equals_one_process",
     "gathered weights are those of one process on the whole batch, to the bit; keyword arguments reach the module",
     equals_one_process},
    {"fsdp.real_numbers", "numbers that need all bits of fp32 keep them: the same within what fp32 rounds",
     real_numbers},
    {"fsdp.fp16", "with compute_dtype fp16 the same within what layers round that compute in it",
     computes_in<DType::f16>, LawInfo::Bound::handed_in},
    {"fsdp.bf16", "with compute_dtype bf16 the same within what layers round that compute in it",
     computes_in<DType::bf16>, LawInfo::Bound::handed_in, kBeyond},
    {"fsdp.tied_weights", "a weight that two layers use has the gradient of both", tied, LawInfo::Bound::handed_in,
     kBeyond},
    {"fsdp.waits", "nothing that travels is read before it was waited for", waits},
    {"fsdp.holds_parts", "between steps a rank holds its part of each weight that is sharded, padding aside",
     holds_parts},
    {"fsdp.uneven_rows", "rows need not divide evenly among ranks, and a rank may have none", uneven_rows,
     LawInfo::Bound::all, kBeyond},
    {"fsdp.keeps_random_numbers", "making a container and training with it does not seed torch's random numbers",
     keeps_random_numbers, LawInfo::Bound::handed_in, kBeyond},
};

// The hand-out's tests compare with one process, on real numbers and in fp16 too, and look at waits.
bool asked_by_handout(const RankLaw& entry) {
  return entry.body == equals_one_process || entry.body == real_numbers || entry.body == computes_in<DType::f16> ||
         entry.body == waits;
}

}  // namespace

std::vector<check::Law> laws(std::shared_ptr<CallChannel> ranks) {
  return laws_of_ranks(kEntries, asked_by_handout, std::move(ranks), never_drawn());
}

std::vector<LawInfo> law_list() { return infos_of_ranks(kEntries, asked_by_handout); }

}  // namespace syslab::data_parallel::fully_sharded
