// The problems that an external attention implementation accepts, as declared by its author. Laws search exactly this
// domain.
//
//   Domain domain = parse_domain(Json{{"dtypes", {"fp32"}}, {"causal", false}, {"multiple_of", 16}}, "flash.py:Flash");
//   if (const auto outside = domain.outside(problem)) …  // "fp16 is not among its dtypes (fp32)"
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.hpp"
#include "core/text/json.hpp"

namespace syslab::attention {

struct Problem;

struct Domain {
  std::vector<DType> dtypes;            // empty: not declared
  std::vector<std::int64_t> head_dims;  // empty: not declared
  std::vector<bool> causal;             // accepted values of is_causal; empty: not declared
  std::int64_t multiple_of = 0;         // of both sequence lengths; 0: not declared
  std::int64_t max_seq = 0;             // 0: no limit
  bool square = false;                  // seq_q == seq_k
  bool deterministic = false;           // equal inputs give bitwise equal outputs

  bool declared = false;  // the author declared something
  // If true, undeclared properties take the usual values: fp32, full and causal, lengths from 16 on, head dimensions 16
  // to 128. If false and nothing is declared, it is tested like our own kernels.
  bool usual = false;
  // Whether the hand-out's tests call such an implementation with a causal mask: they do not for its PyTorch class.
  bool causal_in_handout = true;
  // Whether the hand-out asks of it what its tests draw, and no other shape: of its Triton class.
  bool as_tests_draw = false;
  // What a call can say: of a Python class (q, k, v, is_causal), in which neither another scale nor a mask that ends
  // with the last key has a place.
  bool call_has_options = true;
  // Whether gradients come from autograd, which may hand over what is not contiguous.
  bool by_autograd = false;
  bool has_streams = false;  // it runs on a GPU, in a process of its own

  bool bounded() const { return declared || usual; }
  std::int64_t shortest() const;                                     // shortest sequence length
  std::optional<std::string> outside(const Problem& problem) const;  // why it is outside; nothing if inside
};

// Keys: dtypes, head_dims, causal, multiple_of, max_seq, square, deterministic; a value, or an array if several are
// allowed; `causal: true` alone means both, since a causal implementation also supports full attention. Error(usage),
// beginning with `whose`, names the unknown key or value and the known ones.
Domain parse_domain(const Json& declared, std::string_view whose);

// In command-line form: dtype=fp32,bf16 head_dim=64 causal=false.
Json domain_json(const std::string& name, const std::vector<std::string>& values);
bool is_domain_axis(std::string_view name);

std::string to_string(const Domain& domain);  // "fp32; full mask; lengths that are multiples of 16"

}  // namespace syslab::attention
