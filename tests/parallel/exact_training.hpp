// A training job whose numbers are exact, for laws about its state: a few tensors, gradients that are sums over rows,
// and an AdamW whose weights are brought back to a grid. By one process that does everything; exact_ranks.hpp has the
// ranks that divide the state in any way.
//
// NOTE: exact numbers. Weights are multiples of 1/2 in [−1, 1], and so is the least part of what a row adds to a
// gradient, at most 2; of at most 8 rows every sum, in any order, is exact in fp32. The update is elementwise: of equal
// gradients and moments it makes equal bits wherever it runs. A gradient is a multiple of 1/2 up to 16: half precision
// holds it and every sum of its parts, so that gradients that travel rounded have the same bits.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "certify/certificate.hpp"
#include "parallel/grouped_adamw.hpp"
#include "tests/parallel/state_piece.hpp"

namespace syslab::property {

using parallel::RowBlock;
using parallel::Sharding;
using test::StatePiece;
using test::StatePlane;

struct ExactTensor {
  std::string name;
  std::int64_t rows = 1, width = 1;  // of one row: replicated where all is sharded
  std::int64_t elements() const { return rows * width; }
};

struct ExactModel {
  std::uint64_t seed = 1;
  std::vector<ExactTensor> tensors;  // in the order in which gradients become final; the first has two rows or more
  unsigned cuts = 0;                 // bit t: tensor t does not travel together with the next one
  bool grouped = false;              // the optimizer begins with one tensor, others join it one by one; else with all

  int size() const { return static_cast<int>(tensors.size()); }
  float initial(int tensor, std::int64_t element) const;
};

struct ExactStep {
  std::int64_t number = 0, rows = 1;
  int parts = 1;
  std::vector<std::int64_t> users;  // by tensor: so many of the first rows use it
};

// The bits of a state, where all of it is: by plane and tensor. Of tensors that have not joined: nothing.
struct ExactState {
  std::int64_t step = 0;
  std::vector<std::int64_t> group_steps;
  int joined = 0;
  std::array<std::vector<std::vector<float>>, 3> planes;

  // Nothing, or where a rank's pieces differ.
  std::string difference(const ExactModel& model, const std::vector<StatePiece>& pieces) const;
};

// AdamW by groups; then weights go to the grid.
class SnappedAdamW {
 public:
  using Options = adamw::Options;
  static std::string text_of(const Options& options) { return parallel::GroupedAdamW::text_of(options); }

  explicit SnappedAdamW(device::Stream stream);
  void add_group(std::span<const parallel::OptimizedParameter> parameters, const Options& options);
  void step(device::Stream stream);
  // One tensor of the only group, in a step that is counted behind the last: of who takes no step() at all.
  void step_one(int number, device::Stream stream) const;
  void count_step() { ++counted_; }
  std::size_t state_bytes() const { return inner_.state_bytes(); }
  TensorView moment(test::Moment moment, int group, int number) const { return inner_.moment(moment, group, number); }

 private:
  parallel::GroupedAdamW inner_;
  Options options_;  // of the last group
  std::int64_t counted_ = 0;
  std::vector<TensorView> weights_;
  std::vector<ConstTensorView> gradients_;
};

// Each tensor by itself, with the optimizer's kernel and nothing else of the optimizer.
class ExactAlone {
 public:
  explicit ExactAlone(const ExactModel& model) : model_(model) { join(); }
  void join();  // the next tensor
  void take(const ExactStep& step);
  const ExactState& state() const { return state_; }

 private:
  const ExactModel& model_;
  ExactState state_;
};

// What one process and ranks make of these alike.
namespace exact {

inline std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }
TensorView view_of(std::vector<float>& values);

// So large that most weights leave their place on the grid, and another for every group.
adamw::Options options_of(int group);

// What these rows have to do with a tensor's gradient, written or added to `out`.
void add_gradient(const ExactModel& model, const ExactStep& step, int tensor, const RowBlock& rows,
                  const float* weights, float* out, bool add);

}  // namespace exact

}  // namespace syslab::property
