// A training step on random tokens, set up to be run over and over: what benchmarks time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "contract/measured_step.hpp"
#include "train/batches.hpp"
#include "train/step.hpp"

namespace syslab::train {

// How far a step goes.
enum class Mode { forward, forward_backward, train };
std::string_view to_string(Mode mode);   // "forward", "forward_backward", "train"
Mode parse_mode(std::string_view text);  // Error(usage) with the nearest name

// Weights of a benchmark: with the deviations of model/initialise.hpp, drawn on their device, uncut, so that nobody has
// to wait for the host to draw three billion.
void draw_weights(model::Transformer& model, std::uint64_t seed);
// The same numbers for an arena that a model does not have itself; of the weights alone, not of their copy.
void draw_weights(model::ParameterArena& arena, const model::Kernels& kernels, std::uint64_t seed);

struct WorkloadOptions {
  model::ModelConfig config;
  model::TransformerOptions model;
  Mode mode = Mode::train;
  std::int64_t batch = 4, seq = 512;
  int sm = 80;  // compute capability of the GPU, where memory is predicted: attention's rung depends on it
  OptimizerOptions optimizer;
};

// What the mode needs of the arena: no gradients without a backward pass, no moments without an update.
model::TransformerOptions needed(const WorkloadOptions& options);

class Workload : public StepWorkload {
 public:
  // Holds gradients and moments where the mode needs them, whatever the options of the model say. Tokens and weights
  // come from `seed`, weights as draw_weights() says.
  Workload(const WorkloadOptions& options, device::Stream stream, std::uint64_t seed);

  model::Transformer& model() { return model_; }
  TrainingStep& training() { return step_; }

  void refresh() override;
  void run() override;  // as far as the mode goes, as the phases do
  void forward() override;
  void backward() override;
  void update() override;

  bool goes_back() const override { return options_.mode != Mode::forward; }

  // The following wait for the last step.
  double loss() override;
  // Nothing, or why the last step's outcome cannot be right: a loss that is NaN, with the first tensor that holds
  // a NaN.
  std::optional<std::string> what_is_wrong() override;

  // Forward passes of a block in a step, those of recomputation (model/recompute.hpp) among them; 0 before the first
  // step. Of a graph: what was recorded.
  double block_forwards() const { return block_forwards_; }

  std::size_t graph_nodes() const override { return step_.graph_nodes(); }  // of Variant::graph, once recorded
  std::string why_no_graph() const override { return step_.why_no_graph(); }
  std::vector<RungTaken> rungs_taken() const override;

 private:
  WorkloadOptions options_;
  model::Transformer model_;
  TrainingStep step_;
  RandomBatches source_;
  std::uint64_t seed_;
  Batch drawn_;  // memory of the last batch
  std::uint64_t number_ = 0;
  double block_forwards_ = 0;
};

}  // namespace syslab::train
