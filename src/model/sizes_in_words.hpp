// Sizes of a model in a form that goes with its name.
#pragma once

#include <string>

#include "model/config.hpp"

namespace syslab::model {

// "12 layers, d_model 768, 12 heads, d_ff 3072, vocabulary 10,000: 128,625,408 parameters"
std::string sizes_in_words(const ModelConfig& config);

}  // namespace syslab::model
