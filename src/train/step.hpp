// One training step, from tokens to updated weights:
//
//   for each part of the batch:  forward ─▶ loss and its gradient ─▶ backward (added to the parts before)
//   gradient norm ─▶ AdamW
//
//   TrainingStep step(model, {.optimizer = {…}}, batch, seq);
//   step.load(0, ids, targets);
//   step.run(learning_rate);
//   step.result().loss;           // waits
//
// Everything is queued on the model's stream. As a graph (Variant::graph) the whole of it is recorded at the second
// step, after one that has brought every library and allocation to where it stays, and replayed from then on.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "device/cuda/graph.hpp"
#include "device/event.hpp"
#include "model/transformer.hpp"
#include "train/optimizer.hpp"

namespace syslab::train {

struct StepOptions {
  OptimizerOptions optimizer;
  int parts = 1;                // gradients of so many batches are averaged before the update
  model::GradFinal grad_final;  // of the last part; not with Variant::graph
  // For steps that many ranks take together: this rank's share of the samples, by which its gradients are weighted, and
  // who makes the model's stream wait for the sum over all ranks before the norm and the update (with grad_final).
  double loss_weight = 1;
  std::function<void(device::Stream)> before_update;
  // Who takes the update in place of the optimizer over the model's arena, because moments or weights are elsewhere. It
  // is given the step's numbers and its losses, as Optimizer::queue() is. Empty: the optimizer does.
  std::function<void(Optimizer& optimizer, const ConstTensorView& losses)> update;
  // Each part overwrites the gradients and reports when they are final: for code that adds them up elsewhere.
  bool parts_apart = false;
};

struct StepResult {
  double loss = 0;  // mean over parts
  std::optional<double> gradient_norm;
  // Gradients or loss held an infinity or a NaN, and skipping was asked for: weights and moments are as before. Without
  // it the step is taken, and the caller must check the loss for NaN.
  bool skipped = false;
};

class TrainingStep {
 public:
  // Steps on batches of `batch` sequences of `seq` tokens, `parts` of them a step. Error(usage) for impossible sizes.
  TrainingStep(model::Transformer& model, const StepOptions& options, std::int64_t batch, std::int64_t seq);

  Optimizer& optimizer() { return optimizer_; }
  model::Tokens tokens(int part) const;

  // Brings a part's tokens to the device, in the stream's order; the spans may change on return. Ids outside the
  // vocabulary: Error(usage) with the first of them.
  void load(int part, std::span<const std::int64_t> ids, std::span<const std::int64_t> targets);

  // The whole step, with `loss_scale` of fp16. Of a graph, the recording or the replay.
  void run(double learning_rate, double loss_scale = 1.0);

  // The same by phases, for those who time them apart: begin(), then forward() and backward() of each part, update().
  void begin(double learning_rate, double loss_scale = 1.0);
  void forward(int part);
  void backward(int part);
  void update();

  // What forward() left for backward(): between the two, else nothing.
  const model::Activations* kept() const { return activations_ ? &*activations_ : nullptr; }

  // Of the last step. Waits for it.
  StepResult result();
  // The next run() records the graph again, for a caller that observes the capture. No effect in other variants.
  void record_again();
  // Why Variant::graph runs without one; empty: it does not.
  const std::string& why_no_graph() const { return why_no_graph_; }
  std::size_t graph_nodes() const { return graph_ ? graph_->nodes() : 0; }

 private:
  void queue();

  model::Transformer& model_;
  StepOptions options_;
  std::int64_t batch_, seq_;
  Optimizer optimizer_;
  device::Buffer tokens_, staged_;  // (parts, 2, batch, seq): ids, then targets
  device::Event copied_;
  model::Tensor losses_;  // (parts)
  std::optional<model::Activations> activations_;
  std::int64_t runs_ = 0;
  std::optional<device::Graph> graph_;
  std::string why_no_graph_;
};

}  // namespace syslab::train
