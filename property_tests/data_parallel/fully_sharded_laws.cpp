// Laws of full sharding. Its module is a chain of layers that the classes know how to shard, with gradients in closed
// form (tools/python/syslab_training.py, Chain): all numbers are exact.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "check/search.hpp"
#include "core/json_text.hpp"
#include "core/random.hpp"
#include "core/refusal.hpp"
#include "property_tests/data_parallel/drawn.hpp"
#include "property_tests/data_parallel/laws.hpp"
#include "property_tests/data_parallel/sent.hpp"
#include "property_tests/draw.hpp"
#include "property_tests/verdict.hpp"

namespace syslab::data_parallel::fully_sharded {
namespace {

constexpr double kRate = 0.25, kCurve = 1;

struct Layer {
  enum class Kind { embedding, linear, gain };
  Kind kind = Kind::linear;
  std::string name{};
  std::int64_t rows = 1, columns = 1;  // of the weight; a gain has rows alone
  std::int64_t first = 0;              // of its elements among all layers'
  std::int64_t batch_first = 0;        // of its numbers in a rank's batch: x, then c

  std::int64_t count() const { return rows * columns; }
  std::int64_t inputs() const { return kind == Kind::gain ? 0 : kind == Kind::embedding ? 1 : columns; }
  std::int64_t outputs() const { return kind == Kind::embedding ? columns : rows; }
};

struct Chain {
  int ranks = 2, steps = 1;
  std::uint64_t seed = 0;
  bool late = false;
  std::vector<Layer> layers;

  std::int64_t elements() const { return layers.back().first + layers.back().count(); }
  std::int64_t width() const { return layers.back().batch_first + layers.back().inputs() + layers.back().outputs(); }
  double scale() const { return ranks == 3 ? 3 : 1; }  // so that a third is exact
};

double number(const Chain& asked, std::string_view what, std::int64_t place, std::uint32_t end) {
  return RandomStream::derive(asked.seed, "full sharding", "", what).bits(static_cast<std::uint64_t>(place)) % end;
}

double start_value(const Chain& asked, std::int64_t element) { return number(asked, "start", element, 5) - 2; }

// Of a layer's x (place < inputs) or c.
double batch_value(const Chain& asked, int step, int rank, const Layer& layer, std::int64_t place) {
  const std::int64_t at = (std::int64_t{step} * 8 + rank) * asked.width() + layer.batch_first + place;
  if (place >= layer.inputs()) return asked.scale() * (number(asked, "batch", at, 5) - 2);
  if (layer.kind == Layer::Kind::embedding) return number(asked, "batch", at, static_cast<std::uint32_t>(layer.rows));
  return number(asked, "batch", at, 3) - 1;
}

void append(Chain& made, Layer layer) {
  if (!made.layers.empty()) {
    const Layer& last = made.layers.back();
    layer.first = last.first + last.count();
    layer.batch_first = last.batch_first + last.inputs() + last.outputs();
  }
  layer.name = fmt::format("layers.{}.weight", made.layers.size());
  made.layers.push_back(std::move(layer));
}

Chain drawn(int ranks, bool uneven) {
  Chain made;
  made.ranks = ranks;
  const auto linears = 1 + property::draw_below("further layers", 4);
  made.steps = static_cast<int>(1 + property::draw_below("further steps", 2));
  made.seed = property::draw_seed();
  const auto size = [&](std::int64_t place) { return static_cast<std::int64_t>(1 + number(made, "sizes", place, 4)); };
  const auto rows = [&](std::int64_t place) { return uneven ? size(place) + 1 : size(place) * ranks; };
  append(made, {.kind = Layer::Kind::embedding, .rows = rows(0), .columns = size(1)});
  for (std::int64_t i = 0; i < linears; ++i) {
    if (i % 2 == 0) append(made, {.kind = Layer::Kind::gain, .rows = size(10 * i + 12)});
    append(made, {.kind = Layer::Kind::linear, .rows = rows(10 * i + 10), .columns = size(10 * i + 11)});
  }
  return made;
}

std::string describe(const Chain& asked) {
  std::vector<std::string> words;
  for (const Layer& layer : asked.layers) {
    words.push_back(layer.kind == Layer::Kind::gain
                        ? fmt::format("{} ({}) of a norm", layer.name, layer.rows)
                        : fmt::format("{} ({}, {}) of {}", layer.name, layer.rows, layer.columns,
                                      layer.kind == Layer::Kind::embedding ? "an embedding" : "a linear layer"));
  }
  return fmt::format("the module: {}", fmt::join(words, "; "));
}

[[noreturn]] void fail(const Chain& asked, const std::string& why) { property::fail(why + "\n" + describe(asked)); }

Json case_json(const Chain& asked) {
  Json layers = Json::array();
  for (const Layer& layer : asked.layers) {
    const bool gain = layer.kind == Layer::Kind::gain;
    layers.push_back({{"name", layer.name},
                      {"kind", gain                                   ? "gain"
                               : layer.kind == Layer::Kind::embedding ? "embedding"
                                                                      : "linear"},
                      {"shape", gain ? Json{layer.rows} : Json{layer.rows, layer.columns}}});
  }
  return {{"way", "fully_sharded"}, {"ranks", asked.ranks}, {"layers", layers},
          {"steps", asked.steps},   {"late", asked.late},   {"curve", asked.scale() * kCurve},
          {"rate", kRate}};
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
    throw Error(ErrorKind::check, raised.what());
  }
  return found;
}

// Adds what a rank's batch contributes to the gradient of a layer.
void add_gradient(const Chain& asked, int step, int rank, const Layer& layer, const std::vector<double>& weights,
                  std::vector<double>& gradients) {
  const auto at = [&](std::int64_t row, std::int64_t column) {
    return static_cast<std::size_t>(layer.first + row * layer.columns + column);
  };
  const auto x = [&](std::int64_t i) { return batch_value(asked, step, rank, layer, i); };
  const auto slope = [&](std::int64_t output, double y) {
    return batch_value(asked, step, rank, layer, layer.inputs() + output) + asked.scale() * kCurve * y;
  };
  if (layer.kind == Layer::Kind::embedding) {
    const auto token = static_cast<std::int64_t>(x(0));
    for (std::int64_t i = 0; i < layer.columns; ++i) gradients[at(token, i)] += slope(i, weights[at(token, i)]);
    return;
  }
  for (std::int64_t row = 0; row < layer.rows; ++row) {
    const bool gain = layer.kind == Layer::Kind::gain;
    double y = gain ? weights[at(row, 0)] : 0;
    for (std::int64_t k = 0; k < layer.columns && !gain; ++k) y += weights[at(row, k)] * x(k);
    for (std::int64_t k = 0; k < layer.columns; ++k) gradients[at(row, k)] += slope(row, y) * (gain ? 1 : x(k));
  }
}

void demand_one_process(CallChannel& ranks, const Chain& asked) {
  const Found found = train(ranks, asked);
  std::vector<double> weights;
  for (std::int64_t i = 0; i < asked.elements(); ++i) weights.push_back(start_value(asked, i));
  for (int step = 0; step < asked.steps; ++step) {
    std::vector<double> gradients(weights.size());
    for (int rank = 0; rank < asked.ranks; ++rank) {
      for (const Layer& layer : asked.layers) add_gradient(asked, step, rank, layer, weights, gradients);
    }
    const std::vector<double> before = weights;
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= kRate * gradients[i] / asked.ranks;
    for (const Layer& layer : asked.layers) {
      for (std::int64_t i = 0; i < layer.count(); ++i) {
        const auto element = static_cast<std::size_t>(layer.first + i);
        for (int rank = 0; rank < asked.ranks; ++rank) {
          const auto place = static_cast<std::size_t>(rank * asked.steps + step) * weights.size() + element;
          if (found.weights[place] == static_cast<float>(weights[element])) continue;
          const double moved = found.weights[place] - before[element], wanted = weights[element] - before[element];
          fail(asked,
               fmt::format("'{}'[{}, {}], gathered on rank {} after step {}, is {}, in one process {}{}{}", layer.name,
                           i / layer.columns, i % layer.columns, rank, step, found.weights[place], weights[element],
                           moved == 0                      ? ": it is as it was before the step"
                           : moved == wanted * asked.ranks ? ": moved by the sum over ranks, not by the mean"
                           : moved == wanted / asked.ranks ? ": moved by the mean, divided once more"
                                                           : "",
                           asked.late ? forgotten_wait(sent_by(found.events, 0)) : ""));
        }
      }
    }
  }
}

void equals_one_process(CallChannel& ranks, check::Contract contract) {
  demand_one_process(ranks, drawn(draw_ranks(contract), false));
}

void waits(CallChannel& ranks, check::Contract contract) {
  Chain asked = drawn(draw_ranks(contract, 2), false);
  asked.late = true;
  demand_one_process(ranks, asked);
}

void uneven_rows(CallChannel& ranks, check::Contract contract) {
  demand_one_process(ranks, drawn(draw_ranks(contract, 2), true));
}

void holds_parts(CallChannel& ranks, check::Contract contract) {
  const Chain asked = drawn(draw_ranks(contract, 2), false);
  const Found found = train(ranks, asked);
  std::int64_t share = 0;
  for (const Layer& layer : asked.layers) share += layer.count() / (layer.kind == Layer::Kind::gain ? 1 : asked.ranks);
  for (int rank = 0; rank < asked.ranks; ++rank) {
    const float held = found.held[static_cast<std::size_t>(rank)];
    if (held <= static_cast<float>(share)) continue;
    fail(asked, fmt::format("between steps rank {} holds {} elements of parameters, its share of {} is {}", rank, held,
                            asked.elements(), share));
  }
}

struct Entry {
  const char* id;
  const char* statement;
  void (*body)(CallChannel&, check::Contract);
};

constexpr Entry kEntries[] = {
    {"fsdp.equals_one_process", "gathered weights are those of one process on the whole batch, to the bit",
     equals_one_process},
    {"fsdp.waits", "nothing that travels is read before it was waited for", waits},
    {"fsdp.holds_parts", "between steps a rank holds its part of each weight that is sharded, and no more",
     holds_parts},
    {"fsdp.uneven_rows", "rows need not divide evenly among ranks, and a rank may have none", uneven_rows},
};

}  // namespace

std::vector<check::Law> laws(std::shared_ptr<CallChannel> ranks) {
  std::vector<check::Law> list;
  for (const Entry& entry : kEntries) {
    list.push_back({entry.id, entry.statement, [&entry, ranks](const check::LawRequest& request) {
                      return check::search(entry.id, request,
                                           [&](check::Observation&) { entry.body(*ranks, request.contract); });
                    }});
  }
  return list;
}

std::vector<LawInfo> law_list() {
  std::vector<LawInfo> list;
  for (const Entry& entry : kEntries) {
    list.push_back({.id = entry.id, .statement = entry.statement});
  }
  return list;
}

}  // namespace syslab::data_parallel::fully_sharded
