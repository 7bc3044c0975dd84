// What somebody's implementation of attention promises to take, as its author declares it. A law searches all of it;
// what lies outside is not promised.
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
#include "core/json.hpp"

namespace syslab::attention {

struct Problem;

struct Domain {
  std::vector<DType> dtypes;            // empty: not declared
  std::vector<std::int64_t> head_dims;  // empty: not declared
  std::vector<bool> causal;             // values of is_causal; empty: not declared
  std::int64_t multiple_of = 0;         // of both sequence lengths; 0: not declared
  std::int64_t max_seq = 0;             // 0: none
  bool square = false;                  // seq_q == seq_k
  bool deterministic = false;           // equal inputs give bitwise equal outputs

  bool declared = false;  // its author said something
  // What is not declared is searched as is usual: fp32, full and causal, lengths from 16 on, head dimensions 16 to 128.
  // Where it is false and nothing is declared, all is asked that our own kernels are asked.
  bool usual = false;
  // Whether the hand-out's tests call such an implementation with a causal mask: not its PyTorch class.
  bool causal_in_handout = true;

  bool bounded() const { return declared || usual; }
  std::int64_t shortest() const;                                     // of its sequence lengths
  std::optional<std::string> outside(const Problem& problem) const;  // why it is not promised; nothing when it is
};

// Keys: dtypes, head_dims, causal, multiple_of, max_seq, square, deterministic; a value or an array where several are
// possible; `causal` alone true is both, since who knows the mask knows attention without it. Error(usage), beginning
// with `whose`, says which key or value is not known and what would be.
Domain parse_domain(const Json& declared, std::string_view whose);

// The words that the command line has for them: dtype=fp32,bf16 head_dim=64 causal=false.
Json domain_json(const std::string& name, const std::vector<std::string>& values);
bool is_domain_axis(std::string_view name);

std::string to_string(const Domain& domain);  // "fp32; full mask; lengths that are multiples of 16"

}  // namespace syslab::attention
