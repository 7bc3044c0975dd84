#include "model/sizes_in_words.hpp"

#include <fmt/format.h>

namespace syslab::model {
namespace {

// "128,625,408", of what is not negative
std::string grouped(std::int64_t value) {
  return value < 1000 ? fmt::format("{}", value) : fmt::format("{},{:03}", grouped(value / 1000), value % 1000);
}

}  // namespace

std::string sizes_in_words(const ModelConfig& config) {
  return fmt::format("{} layers, d_model {}, {} heads, d_ff {}, vocabulary {}: {} parameters", config.layers,
                     config.d_model, config.heads, config.d_ff, grouped(config.vocab),
                     grouped(parameter_count(config)));
}

}  // namespace syslab::model
