// Steps of training from weights and tokens in files, told as tools/peers/transformer.py tells PyTorch's:
//
//   trajectory WEIGHTS TOKENS PRECISION VARIANT DEVICE LR MAX_NORM HANDOUT TO
//
// WEIGHTS and TOKENS are safetensors files; TO becomes a folder with final.safetensors and losses.txt, a line a step:
// loss and gradient norm. tests/e2e/trajectory.py compares the two.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "device/stream.hpp"
#include "model/weights/safetensors.hpp"
#include "tests/model/weights_in_file.hpp"
#include "train/step.hpp"

namespace syslab {
namespace {

std::vector<std::int64_t> integers(const model::SafetensorsReader& file, const char* name,
                                   std::vector<std::int64_t>& shape) {
  const model::FileTensor* tensor = file.find(name);
  if (tensor == nullptr) throw Error(ErrorKind::usage, fmt::format("no tensor '{}' in the tokens' file", name));
  shape = tensor->shape;
  std::vector<std::int64_t> values(tensor->bytes() / sizeof(std::int64_t));
  file.read(*tensor, 0, std::as_writable_bytes(std::span(values)));
  return values;
}

model::ModelConfig config_of(const model::SafetensorsReader& weights, std::int64_t context, model::Handout handout) {
  model::ModelConfig config;
  const model::FileTensor* embedding = weights.find("token_embeddings.weight");
  const model::FileTensor* gate = weights.find("layers.0.ffn.w1.weight");
  if (embedding == nullptr || gate == nullptr) throw Error(ErrorKind::usage, "these are no weights of the model");
  config.vocab = embedding->shape[0];
  config.d_model = embedding->shape[1];
  config.d_ff = gate->shape[0];
  config.layers = 0;
  while (weights.find(fmt::format("layers.{}.ln1.weight", config.layers)) != nullptr) ++config.layers;
  config.heads = std::stoll(weights.metadata().at("heads"));
  config.context = context;
  config.handout = handout;
  return config;
}

template <typename Kind>
Kind named(std::initializer_list<Kind> kinds, const std::string& name) {
  for (const Kind kind : kinds) {
    if (model::to_string(kind) == name) return kind;
  }
  throw Error(ErrorKind::usage, fmt::format("'{}' is nothing that this knows", name));
}

int run(const std::vector<std::string>& words) {
  const model::SafetensorsReader weights(words[0]), tokens(words[1]);
  std::vector<std::int64_t> shape;
  const std::vector<std::int64_t> inputs = integers(tokens, "inputs", shape);
  const std::vector<std::int64_t> targets = integers(tokens, "targets", shape);
  const model::ModelConfig config =
      config_of(weights, shape[2], named({model::Handout::y2025, model::Handout::y2026}, words[7]));

  const device::OwnedStream stream(words[4] == "cuda" ? device::Place{device::Kind::cuda, 0} : device::Place{});
  model::Transformer model(
      config,
      {.precision = model::parse_precision(words[2]),
       .variant = named({model::Variant::eager, model::Variant::fused, model::Variant::graph}, words[3])},
      stream);
  test::load_weights(model.parameters(), words[0]);
  model.refresh_weights_copy();

  train::StepOptions options;
  options.optimizer.adamw = train::adamw_options_of(config);
  options.optimizer.max_norm = std::stod(words[6]);
  train::TrainingStep step(model, options, shape[1], shape[2]);
  const auto count = static_cast<std::size_t>(shape[1] * shape[2]);
  std::filesystem::create_directories(words[8]);
  std::ofstream losses(words[8] + "/losses.txt");
  for (std::size_t i = 0; i < static_cast<std::size_t>(shape[0]); ++i) {
    step.load(0, std::span(inputs).subspan(i * count, count), std::span(targets).subspan(i * count, count));
    step.run(std::stod(words[5]));
    const train::StepResult result = step.result();
    losses << fmt::format("{:.17g} {:.17g}\n", result.loss, result.gradient_norm.value_or(0));
  }
  test::save_weights(model.parameters(), words[8] + "/final.safetensors");
  return 0;
}

}  // namespace
}  // namespace syslab

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() != 9) {
    std::fputs("trajectory WEIGHTS TOKENS PRECISION VARIANT DEVICE LR MAX_NORM HANDOUT TO\n", stderr);
    return 2;
  }
  try {
    return syslab::run(words);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
