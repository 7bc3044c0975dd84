#include "ops/attention/params.hpp"

#include <fmt/format.h>

namespace syslab::attention {
namespace {

std::int64_t or_as(std::int64_t value, std::int64_t other) { return value == 0 ? other : value; }

}  // namespace

Problem problem_from(const Params& params) {
  Problem problem;
  problem.batch = params.integer("batch");
  problem.heads_q = params.integer("heads");
  problem.heads_kv = or_as(params.integer("heads_kv"), problem.heads_q);
  problem.seq_q = params.integer("seq");
  problem.seq_k = or_as(params.integer("seq_k"), problem.seq_q);
  problem.head_dim = params.integer("head_dim");
  const auto dtype = parse_dtype(params.text("dtype"));
  if (!dtype) {
    throw Error(ErrorKind::usage, fmt::format("dtype '{}' is none of fp64, fp32, fp16, bf16", params.text("dtype")));
  }
  problem.dtype = *dtype;
  if (params.flag("causal")) {
    problem.mask = params.text("align") == "bottom_right" ? Mask::bottom_right : Mask::top_left;
  }
  validate(problem);
  return problem;
}

}  // namespace syslab::attention
