#include "ops/attention/params.hpp"

#include <fmt/format.h>

namespace syslab::attention {
namespace {

std::int64_t or_as(std::int64_t value, std::int64_t other) { return value == 0 ? other : value; }

}  // namespace

std::vector<Axis> param_list() {
  const auto text = [](const char* value) -> Value { return std::string(value); };
  const auto number = [](std::int64_t value) -> Value { return value; };
  return {
      {"batch", {number(1)}, "leading dimension"},
      {"heads", {number(8)}, "query heads"},
      {"heads_kv", {number(0)}, "key/value heads, a divisor of heads; 0: as heads"},
      {"seq", {number(256), number(1024)}, "queries"},
      {"seq_k", {number(0)}, "keys; 0: as seq"},
      {"head_dim", {number(64)}, "width of a head, 1…256"},
      {"dtype", {text("fp32")}, "storage of tensors and gradients", true, {text("bf16"), text("fp16"), text("fp64")}},
      {"causal", {false, true}, "a query sees no later key", true},
      {"align", {text("top_left")}, "where the causal diagonal starts", true, {text("bottom_right")}},
  };
}

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
