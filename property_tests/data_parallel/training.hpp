// A small training that ranks of somebody's class do together (src/python/syslab_training.py), and the same by one
// process. Its numbers are whole or halves of halves, so that every gradient and weight is exact, in any order of sums:
// a mean over three ranks is one of multiples of three. Two kinds of training round, and have a bound: that of AdamW,
// and one on `real` numbers, which need all bits of fp32.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/call_channel.hpp"
#include "core/dtype.hpp"
#include "core/text/json.hpp"
#include "property_tests/data_parallel/sent.hpp"

namespace syslab::data_parallel {

struct Parameter {
  std::string name;
  std::vector<std::int64_t> shape;
  DType dtype = DType::f32;
  bool trains = true;
  std::int64_t first = 0;  // of its elements among all parameters'
  bool strided = false;    // a matrix whose columns lie next to each other, not its rows

  std::int64_t count() const;
};

// A second name of a parameter; a step that uses it twice uses it once by each.
struct Tie {
  std::string name;
  int to = 0;
};

// Of a sharded optimizer: parameters with a rate of their own, there from this step on.
struct Group {
  std::vector<int> members;
  double rate = 0.25;
  int from = 0;
};

enum class Update { sgd, momentum, adamw };
void showValue(Update update, std::ostream& stream);

// Keyword arguments of torch's optimizer that only some trainings pass. `betas` has a second one that forgets quickly,
// so that `amsgrad` matters; `eps` is large.
enum class Option { nesterov, dampening, maximize, amsgrad, betas, eps };
using Options = std::vector<Option>;
std::string names_of(const Options& options);
void showValue(const Options& options, std::ostream& stream);

// As torch.allclose() has it: an element may be off by absolute + relative · its size.
struct Tolerance {
  double absolute = 0, relative = 0;
};

struct Training {
  bool sharded = false;  // a sharded optimizer on equal gradients; else data parallel under SGD
  int ranks = 2;
  std::uint64_t seed = 0;
  std::vector<Parameter> parameters, buffers;
  std::vector<Tie> ties;
  std::vector<std::vector<int>> uses;  // by step: parameters, in the order of the forward pass
  int backwards = 1;                   // of a step, each finished
  std::vector<bool> set_to_none;       // by step
  bool late = false;                   // what travels is there only once it was waited for
  double curve = 1;                    // a gradient is the batch's number + curve · the weight
  double rate = 0.25;
  bool real = false;                 // numbers that need all bits of fp32, in place of exact ones
  std::optional<Tolerance> close;    // of `real`: what a hand-out's test allows of weights, and it looks at no gradient
  std::vector<double> rate_changes;  // by step: what a schedule multiplies the rates by before it; empty: there is none
  bool seeds_torch = false;          // the lab does, before the class is made, which must not do it again
  int resume_at = -1;                // the step before which a new container loads the state
  std::optional<std::optional<double>> bucket_mb;  // handed to the class, if it takes one
  bool evaluates = false;                          // after the last step, in eval() mode
  bool keyword = false;                            // the container is called with the batch as a keyword argument
  Update update = Update::sgd;                     // of a sharded optimizer, as all that follows
  Options options;
  std::vector<Group> groups;
  bool as_groups = false, closure = false, checks_zero_grad = false;
  bool looks_at_memory = false;  // for other ranks' state outside of optimizer.state, behind the last step

  int steps() const { return static_cast<int>(uses.size()); }
  std::int64_t elements() const;         // of all parameters
  std::int64_t buffer_elements() const;  // of all buffers
  bool uses_in(int step, int parameter) const;
  bool has_fp64() const;
  bool has(Option option) const;
  std::string describe() const;  // the module and what else was drawn, in a line
};

// What all ranks ended with.
struct Trained {
  std::int64_t ranks = 0, steps = 0, elements = 0, buffers = 0;
  std::vector<float> state, gradients, weights, events, held;
  std::vector<float> gradients_low, weights_low;  // of fp64: what fp32 cannot hold besides; empty: all are fp32

  float state_of(int rank, std::int64_t element) const;
  double gradient(int rank, int step, std::int64_t element) const;  // NaN: there is none
  double weight(int rank, int step, std::int64_t element) const;
  std::vector<Sent> sent(int rank) const;
  double held_elements(int rank) const { return held.at(static_cast<std::size_t>(rank)); }
};

// Error(check) when the class raised or ranks waited for each other in vain.
Trained train(CallChannel& ranks, const Training& asked);

// What a rank starts with, of its parameters and then its buffers.
double start_value(const Training& asked, int rank, std::int64_t element);
// What a rank alone would have as a gradient of a step, from these weights.
double own_gradient(const Training& asked, int step, int rank, int parameter, std::int64_t element, double weight);

struct Alone {
  std::vector<std::vector<double>> gradients, weights;  // by step
  // How far a right class may be from them; 0: to the bit.
  std::vector<std::vector<double>> gradient_bounds, weight_bounds;
};
Alone train_alone(const Training& asked);

// The first difference, if any, with where it is and what it looks like.
std::optional<Wrong> difference_in_state(const Training& asked, const Trained& found, bool buffers);
std::optional<Wrong> difference(const Training& asked, const Trained& found);

}  // namespace syslab::data_parallel
