// The sizes of a transformer LM, available by name, and the numbers derived from them.
//
//   const ModelConfig config = find_model("small");        // the hand-out's
//   parameter_count(config);                               // 128,625,408
//
// Structure: tokens → embedding → layers × (RMSNorm, attention, RMSNorm, SwiGLU) → RMSNorm → LM head, untied, no
// biases.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace syslab::model {

// The year of the course. What differs: RoPE's output layout (2025 interleaves the pairs again, 2026 puts all first
// halves before all second ones), AdamW's decay (2025 after the update, 2026 before it) and what "xl" means.
enum class Handout { y2025, y2026 };

std::string_view to_string(Handout handout);  // "2025"

struct ModelConfig {
  std::int64_t vocab = 10000, context = 512;
  std::int64_t d_model = 0, d_ff = 0, layers = 0, heads = 0;
  std::optional<double> rope_theta = 10000.0;  // none: no rotation at all
  Handout handout = Handout::y2026;

  std::int64_t head_dim() const { return d_model / heads; }
  bool operator==(const ModelConfig&) const = default;
};

// "vocab 10000, context 512, d_model 768, d_ff 3072, 12 layers, 12 heads, rope_theta 10000, hand-out 2026"
std::string to_string(const ModelConfig& config);

// Error(usage) naming the first invalid size, its value and the requirement: sizes below 1 or with more parameter bytes
// than 63 bits can count, heads that do not divide d_model, an odd head dimension with RoPE, a theta that is not
// positive.
void validate(const ModelConfig& config);

struct NamedModel {
  std::string name;
  std::string description;  // one line
  ModelConfig config;
};

// small, medium, large, xl25, xl26, 10B (vocabulary 10,000, context 512), 8B (the leaderboard of 2026), cpu10m and
// tiny.
std::span<const NamedModel> named_models();

// The named model, laid out as `handout` says; without one, xl25 as 2025 and the others as 2026. "2.7B" is xl26; "xl"
// is xl25 or xl26 by the hand-out and an Error(usage) without one, as is an unknown name, with the nearest.
ModelConfig find_model(std::string_view name, std::optional<Handout> handout = std::nullopt);

// Of a valid config. P = 2Vd + L(4d² + 3df + 2d) + d.
std::int64_t parameter_count(const ModelConfig& config);
std::int64_t block_parameter_count(const ModelConfig& config);
std::int64_t forward_product_count(const ModelConfig& config);  // matrix products, 9L + 1; a full step has 27L + 3

// Operations of matrix products, a multiplication and an addition being two; `batch` sequences of `sequence` tokens:
//   2·BT·L(4d² + 3df) + 4·L·B·T²·d + 2·BT·d·V
// `causal` counts half of the middle term, for attention that skips what is masked. Backward is twice forward.
double forward_flops(const ModelConfig& config, std::int64_t batch, std::int64_t sequence, bool causal = false);
double backward_flops(const ModelConfig& config, std::int64_t batch, std::int64_t sequence, bool causal = false);

}  // namespace syslab::model
