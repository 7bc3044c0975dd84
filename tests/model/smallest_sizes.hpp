// Sizes of a model at which something is one: what is expected there may be exactly 0.
#pragma once

#include "tests/model/model_fixture.hpp"

namespace syslab::model {

struct Sizes {
  const char* name;
  std::int64_t vocab = 101, context = 12, layers = 2, heads = 4, d_ff = 128, d_model = 64;

  ModelConfig config() const {
    ModelConfig made = tiny_config();
    made.vocab = vocab, made.context = context, made.layers = layers, made.heads = heads, made.d_ff = d_ff;
    made.d_model = d_model;
    return made;
  }
};

inline constexpr Sizes kOneToken{.name = "one token", .vocab = 1};
inline constexpr Sizes kOnePosition{.name = "one position", .context = 1};
inline constexpr Sizes kSizes[] = {
    {.name = "ordinary"},
    kOneToken,
    kOnePosition,
    {.name = "one token at one position", .vocab = 1, .context = 1},
    {.name = "one layer of one head, one unit", .layers = 1, .heads = 1, .d_ff = 1},
    {.name = "two tokens at two positions", .vocab = 2, .context = 2},
    {.name = "one of everything", .vocab = 1, .context = 1, .layers = 1, .heads = 1, .d_ff = 1, .d_model = 2},
};

}  // namespace syslab::model
