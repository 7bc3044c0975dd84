// A small network of linear layers and ReLU under squared error, for tests and certificates: its work is queued on any
// stream, including a CPU queue, so that a missing wait shows; with values from draw_dyadic(), all its arithmetic is
// exact, so that results are compared bit for bit.
//
// NOTE: exact numbers. Weights are multiples of 1/2 in [−1, 1], inputs and terms of the rare parameter −1, 0 or 1,
// targets whole numbers up to 2, layers at most 3 and 6 wide, rows at most 16 in all and a power of two. Then every
// activation, every gradient and every partial sum over rows, in any order and for any distribution of rows over ranks,
// is a multiple of 2^−5 / rows below 2^18.5 / rows: less than the 24 bits of fp32. The update rounds weights back to
// the grid, so that this remains true; comparisons also look at the gradients, so what it rounds off is still checked.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/tensor.hpp"
#include "device/buffer.hpp"
#include "parallel/optimized_parameter.hpp"
#include "parallel/step_observer.hpp"
#include "planning/pieces.hpp"

namespace syslab::parallel {

struct ToyLayer {
  std::int64_t in = 1, out = 1;
  bool bias = false, frozen_bias = false;
  int tied_to = -1;  // an earlier layer of the same sizes; both share its weight
};

struct ToyModel {
  std::vector<ToyLayer> layers;  // ReLU between them, none after the last
  bool fixed = false;            // a frozen parameter that no layer reads, first of all
  int rare = -1;                 // place among the pieces of a parameter that only some rows use; −1: there is none
  std::int64_t padding = 0;      // elements between pieces
  std::int64_t alignment = 1;    // pieces begin at multiples of so many elements, and the arena ends at one
};

inline constexpr std::int64_t kRareElements = 3;

struct ToyBatch {
  std::int64_t rows = 0;
  std::vector<double> x, y;  // (rows, in of the first layer), (rows, out of the last)
  // The rare parameter's term in each row's loss: rare · parameter. (rows, kRareElements); empty if no row of this
  // rank's step uses it.
  std::vector<double> rare;
};

class ToyNetwork {
 public:
  // Everything is queued on `compute`, which outlives this. Error(usage) for layers that do not fit together.
  ToyNetwork(const ToyModel& model, device::Stream compute);
  ToyNetwork(const ToyNetwork&) = delete;
  ToyNetwork& operator=(const ToyNetwork&) = delete;
  ~ToyNetwork();  // waits for the stream

  const GradientPieces& pieces() const { return pieces_; }
  std::optional<int> rare_piece() const { return rare_piece_; }
  // (elements), fp32, where the stream's work runs: trained ones as their gradients lie in the arena, padding and all,
  // then the frozen ones.
  TensorView weights() const;
  TensorView gradients() const;  // the arena, fp32
  // As an optimizer is given them, in the order in which the network has them.
  std::vector<OptimizedParameter> parameters() const;

  void draw_dyadic(std::uint64_t seed);
  void set_weights(std::span<const float> weights);
  std::vector<float> read_weights();  // waits

  struct Watching {
    StepObserver* observer = nullptr;
    std::function<void(int piece)> piece_final;  // called when everything that writes a piece is queued
    // Where to write a piece's gradient, called before writing. Empty: in gradients().
    std::function<TensorView(int piece)> piece_place;
    // Called before a forward pass reads a piece's weights from weights(), where others may have written them. Empty:
    // only update() writes them.
    std::function<void(int piece)> piece_needed;
  };

  // Forward, and backward of scale · (½ Σ (output − y)² + Σ rare · parameter). `first` part of a step (gradients of its
  // parts are summed); `last` of them: then gradients come into the arena and are final.
  void pass(const ToyBatch& batch, double scale, bool first, bool last, const Watching& watching);
  // Fills an unwritten piece of the arena with values, as a step that used the parameter would have.
  void spoil(int piece);
  // Trained weights −= rate · gradient, rounded to multiples of 1/2 in [−1, 1] where `on_grid`.
  void update(double rate, bool on_grid);
  // The same for some ranges of the arena, each with its gradient: the update of one rank among many.
  struct Slice {
    std::int64_t first = 0;
    ConstTensorView gradient;
  };
  // `last`: of the slices of a step.
  void update(const std::vector<Slice>& slices, double rate, bool on_grid, bool last = true);
  // On a stream other than that of the passes: for pieces that are final while a backward pass is still running.
  void update(const std::vector<Slice>& slices, double rate, bool on_grid, bool last, device::Stream stream);

  // The arena's gradients as read by each step's updates; undefined outside their slices. Valid after the stream's work
  // is done.
  const std::vector<std::vector<float>>& history() const { return history_; }
  // Whether anything was rounded since the weights were drawn. Valid after the stream's work is done.
  bool inexact() const { return inexact_; }

 private:
  struct Parameter {
    std::string name;
    std::int64_t first = 0, elements = 0;  // of weights(), and of the arena if it is trained
    int piece = -1;                        // −1: frozen
  };
  struct Activations;

  int add_parameter(std::string name, std::int64_t elements);
  std::vector<Piece> place_pieces();
  void run(std::function<void()> work, const Watching& watching);
  void run_on(device::Stream stream, std::function<void()> work);
  void fetch(int parameter, const Watching& watching);
  void forward(std::size_t layer, Activations& kept) const;
  void move(std::int64_t first, std::int64_t end, double rate, bool on_grid);
  void loss_gradient(const ToyBatch& batch, double scale, Activations& kept);
  void bias_gradient(std::size_t layer, const Activations& kept, const Watching& watching);
  void weight_gradient(std::size_t layer, const Activations& kept, const Watching& watching);
  void input_gradient(std::size_t layer, Activations& kept) const;
  void finish_piece(int piece, bool uses_rare, const Watching& watching);
  double weight(int parameter, std::int64_t at) const {
    return weights_[static_cast<std::size_t>(parameters_[static_cast<std::size_t>(parameter)].first + at)];
  }

  ToyModel model_;
  device::Stream compute_;
  std::vector<Parameter> parameters_;
  std::vector<int> weight_of_, bias_of_;  // by layer: a parameter, −1: none
  std::int64_t arena_elements_ = 0;
  std::optional<int> rare_piece_;
  GradientPieces pieces_;
  std::vector<float> weights_;     // of the host, where the network computes
  std::vector<double> gradients_;  // likewise, by element of the arena
  std::vector<float> staged_;      // on their way to and from the arena
  device::Buffer weights_there_, arena_;
  std::vector<std::vector<float>> history_;
  std::atomic<bool> inexact_ = false;
};

}  // namespace syslab::parallel
