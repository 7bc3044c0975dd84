#include "model/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.hpp"
#include "core/text/text.hpp"

namespace syslab::model {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorKind::usage, "impossible model: " + why); }

ModelConfig sizes(std::int64_t d_model, std::int64_t d_ff, std::int64_t layers, std::int64_t heads,
                  Handout handout = Handout::y2026) {
  return {.d_model = d_model, .d_ff = d_ff, .layers = layers, .heads = heads, .handout = handout};
}

// With these, 8 bytes a parameter are counted in 63 bits: 8 · 2^16 · 7 · 2^40 < 2^63.
constexpr std::int64_t kLargestSize = std::int64_t{1} << 20, kMostLayers = std::int64_t{1} << 16;

}  // namespace

std::string_view to_string(Handout handout) { return handout == Handout::y2025 ? "2025" : "2026"; }

std::string to_string(const ModelConfig& config) {
  return fmt::format("vocab {}, context {}, d_model {}, d_ff {}, {} layers, {} heads, rope_theta {}, hand-out {}",
                     config.vocab, config.context, config.d_model, config.d_ff, config.layers, config.heads,
                     config.rope_theta ? fmt::format("{}", *config.rope_theta) : "none", to_string(config.handout));
}

void validate(const ModelConfig& config) {
  const auto require_size = [](std::string_view name, std::int64_t value, std::int64_t largest = kLargestSize) {
    if (value < 1 || value > largest) {
      refuse(fmt::format("{} is {}; it must be between 1 and {}", name, value, largest));
    }
  };
  require_size("vocab", config.vocab);
  require_size("context", config.context);
  require_size("d_model", config.d_model);
  require_size("d_ff", config.d_ff);
  require_size("layers", config.layers, kMostLayers);
  require_size("heads", config.heads);
  if (config.d_model % config.heads != 0) {
    refuse(fmt::format("{} heads do not divide d_model {} ({} would be left over); choose heads that divide it",
                       config.heads, config.d_model, config.d_model % config.heads));
  }
  if (!config.rope_theta) return;
  if (config.head_dim() % 2 != 0) {
    refuse(
        fmt::format("the head dimension {} (d_model {} / {} heads) is odd, and RoPE rotates pairs; choose other sizes "
                    "or no rope_theta",
                    config.head_dim(), config.d_model, config.heads));
  }
  if (!(*config.rope_theta > 0) || !std::isfinite(*config.rope_theta)) {
    refuse(fmt::format("rope_theta is {}; it must be a positive number, or none for no RoPE", *config.rope_theta));
  }
}

std::span<const NamedModel> named_models() {
  static const std::vector<NamedModel> kModels = [] {
    ModelConfig eight_billion = sizes(4096, 11008, 34, 32);
    eight_billion.vocab = 151936;
    eight_billion.context = 32768;
    ModelConfig cpu = sizes(256, 1024, 5, 4);
    cpu.context = 256;
    ModelConfig tiny = sizes(64, 128, 2, 4);
    tiny.vocab = 101;
    tiny.context = 32;
    return std::vector<NamedModel>{
        {"small", "129 M parameters, 12 layers of 768", sizes(768, 3072, 12, 12)},
        {"medium", "423 M parameters, 24 layers of 1024", sizes(1024, 4096, 24, 16)},
        {"large", "969 M parameters, 36 layers of 1280", sizes(1280, 5120, 36, 20)},
        {"xl25", "2.00 G parameters, 48 layers of 1600: the xl of 2025", sizes(1600, 6400, 48, 25, Handout::y2025)},
        {"xl26", "3.41 G parameters, 32 layers of 2560: the xl of 2026, the 2.7B of 2025", sizes(2560, 10240, 32, 32)},
        {"10B", "12.8 G parameters, 50 layers of 4608", sizes(4608, 12288, 50, 36)},
        {"8B", "8.13 G parameters, 34 layers of 4096, vocabulary 151,936, context 32,768: the leaderboard of 2026",
         eight_billion},
        {"cpu10m", "10.4 M parameters, 5 layers of 256, context 256: what a CPU trains", cpu},
        {"tiny", "95 k parameters, 2 layers of 64, vocabulary 101, context 32: what tests compare", tiny},
    };
  }();
  return kModels;
}

ModelConfig find_model(std::string_view name, std::optional<Handout> handout) {
  std::string_view wanted = name == "2.7B" ? "xl26" : name;
  if (name == "xl") {
    if (!handout) {
      throw Error(ErrorKind::usage,
                  "model 'xl' is another one in each hand-out; say which year, or xl25 (48 layers of 1600) or xl26 (32 "
                  "layers of 2560)");
    }
    wanted = *handout == Handout::y2025 ? "xl25" : "xl26";
  }
  const std::span<const NamedModel> models = named_models();
  const auto found = std::find_if(models.begin(), models.end(), [&](const NamedModel& m) { return m.name == wanted; });
  if (found == models.end()) {
    std::vector<std::string> names;
    for (const NamedModel& model : models) names.push_back(model.name);
    names.insert(names.end(), {"xl", "2.7B"});
    throw Error(ErrorKind::usage, unknown_name("model", name, names));
  }
  ModelConfig config = found->config;
  if (handout) config.handout = *handout;
  return config;
}

std::int64_t block_parameter_count(const ModelConfig& config) {
  return config.d_model * (4 * config.d_model + 3 * config.d_ff + 2);
}

std::int64_t parameter_count(const ModelConfig& config) {
  return 2 * config.vocab * config.d_model + config.layers * block_parameter_count(config) + config.d_model;
}

std::int64_t forward_product_count(const ModelConfig& config) { return 9 * config.layers + 1; }

double forward_flops(const ModelConfig& config, std::int64_t batch, std::int64_t sequence, bool causal) {
  const auto b = static_cast<double>(batch), t = static_cast<double>(sequence), d = static_cast<double>(config.d_model),
             f = static_cast<double>(config.d_ff), layers = static_cast<double>(config.layers),
             v = static_cast<double>(config.vocab);
  const double linear = 2 * b * t * layers * (4 * d * d + 3 * d * f);
  const double attention = 4 * layers * b * t * t * d * (causal ? 0.5 : 1.0);
  return linear + attention + 2 * b * t * d * v;
}

double backward_flops(const ModelConfig& config, std::int64_t batch, std::int64_t sequence, bool causal) {
  return 2 * forward_flops(config, batch, sequence, causal);
}

}  // namespace syslab::model
