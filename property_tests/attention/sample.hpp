// One drawn problem of attention with its inputs, and the values from which a rung's problems are drawn.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "check/law.hpp"
#include "ops/attention/attention.hpp"
#include "ops/attention/domain.hpp"
#include "property_tests/tensors.hpp"

namespace syslab::attention {

// What is put under laws: a rung of ours, held to derived bounds, which says by `supports` what it takes; or somebody's
// own, with what it promises to the hand-out's tolerance.
struct Candidate : Rung {
  std::optional<Domain> domain;
};

void showValue(Mask mask, std::ostream& stream);

// Beyond the usual tile counts: few queries with so many keys, or the other way round.
inline constexpr std::int64_t kLongestSequence = 4096;

// What a law asks of its problems beyond the contract. Empty lists: whatever the contract has.
struct Wants {
  Pass pass = Pass::forward;
  std::vector<DType> dtypes;
  std::vector<Mask> masks;
  std::int64_t least_batch = 1, least_heads_kv = 1, least_seq_k = 1;
  std::int64_t most_seq = kLongestSequence, most_dim = 256;
  bool moderate = false;    // scores of order one only
  bool long_both = false;   // of somebody's own, now and then many queries with many keys: who asks looks at some rows
  bool long_often = false;  // of those, lengths of about 1000 more often: who asks looks at no number
  bool any_width = false;   // of somebody's own on the CPU that declares none, widths that are no powers of two as well
  bool repeatable = false;  // asked for the same bits, where a call can say so
  bool long_values = false;   // of the forward pass: under --contract full also V, and so O, far above 1
  bool small_values = false;  // under --contract full also V, or for gradients V or dO, far below 1
};

// The values that a contract, a law's wants and a rung's `supports` leave, simplest first.
struct Menu {
  std::vector<DType> dtypes;
  std::vector<Mask> masks;
  std::vector<std::int64_t> seq_q, seq_k, head_dim, heads_kv, heads_per_kv, batch;
  std::vector<float> scale, gain;
  std::vector<property::Layout> layouts;
  std::vector<std::int64_t> repeatable = {0};  // `deterministic` of a library's options
  // Where seq_q is one of these, there are as many keys, or one of the other's: now and then, and of none of seq_q
  // else.
  std::vector<std::int64_t> long_q, long_k;
  bool long_often = false;
  // Lengths of keys beyond the usual tile counts, drawn with few queries in one sample of kOfFarKeys.
  std::vector<std::int64_t> far_k;
  bool long_values = false, small_values = false;  // drawn as well as usual ones
  bool square = false;                             // the rung takes seq_q = seq_k only
  // Now and then the shape that the hand-out's tests draw, which is too large for other samples.
  bool tests_shape = false;
  bool backward = false;  // the rung has a backward pass
};

// Nothing, and the reason, if the rung supports none of it.
struct MenuOrReason {
  std::optional<Menu> menu;
  std::string reason;
};
MenuOrReason menu_for(const Candidate& rung, check::Contract contract, const Wants& wants);

// What no draw from the menu ever is, in a caller's words: "fp16; S > 257; D other than 16, 32, 64, 128". `language`:
// of a rung. Libraries in C are handed DLPack tensors.
std::string left_out(const Menu& menu, std::string_view language);

// What --contract full draws for somebody's own beside the usual menu: "grouped heads, strided tensors, any D and S".
std::string added_by_full(const Candidate& rung, const Wants& wants);

struct Sample {
  Problem problem;
  property::Layout layout_in = property::Layout::contiguous, layout_out = property::Layout::contiguous;
  // Of these, in turn, layouts of tensors that lie otherwise than their neighbour of the same shape: a kernel that
  // indexes V with the strides of K is right as long as both lie alike. Empty: all lie as layout_in and layout_out.
  std::vector<property::Layout> mixed = {};
  // How far a tensor's layout is from its group's in `mixed`.
  property::Layout apart(property::Layout base, std::size_t steps) const;
  std::uint64_t seed = 0;
  float value_gain = 1.0F;            // of V, and so of O, dQ and dK
  float gradient_gain = 1.0F;         // of dO, and so of dQ, dK and dV
  std::vector<double> q, k, v, dout;  // row-major, each representable in problem.dtype

  Shape query_shape() const { return {problem.batch, problem.heads_q, problem.seq_q, problem.head_dim}; }
  Shape key_shape() const { return {problem.batch, problem.heads_kv, problem.seq_k, problem.head_dim}; }
  Shape lse_shape() const { return {problem.batch, problem.heads_q, problem.seq_q}; }
  double unit_of_scores() const { return static_cast<double>(value_gain) * gradient_gain; }  // of dS, so of dQ and dK
  bool long_both() const;  // too much to compute all of it by the oracle
};

// The head of keys that a query head reads, both counted through all batch entries.
inline std::int64_t key_head_of(const Problem& p, std::int64_t head) {
  return head / p.heads_q * p.heads_kv + head % p.heads_q / (p.heads_q / p.heads_kv);
}

// Draws with RapidCheck, inside a law's body. Discards the case where `rung` does not support the combination, unless
// that is not to be asked.
Sample draw_sample(const Rung& rung, const Menu& menu, Pass pass, bool supported_only = true);
// Fresh values for a problem, from the sample's seed and `salt`.
std::vector<double> query_values(const Sample& sample, std::string_view salt, float gain = 1.0F);
std::vector<double> key_values(const Sample& sample, std::string_view salt, float gain = 1.0F);

}  // namespace syslab::attention
