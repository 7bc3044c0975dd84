#include "experiments/transformer/operators/asked.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "ops/adamw/operation.hpp"
#include "ops/cross_entropy/operation.hpp"
#include "ops/elementwise/operation.hpp"
#include "ops/embedding/operation.hpp"
#include "ops/global_norm/operation.hpp"
#include "ops/rms_norm/operation.hpp"
#include "ops/rope/operation.hpp"
#include "ops/swiglu/operation.hpp"
#include "registry/ladder.hpp"

namespace syslab::operators {
namespace {

using Refusal = std::optional<std::string>;

Pass direction_of(const Asked& asked) { return asked.pass == "backward" ? Pass::backward : Pass::forward; }

Pass pass_of(const Asked& asked) {
  return asked.pass == "both" ? Pass::both : asked.pass == "backward" ? Pass::backward : Pass::forward;
}

rms_norm::Problem norm_of(const Asked& asked) {
  return {.rows = asked.rows, .dim = asked.dim, .x_dtype = asked.dtype, .y_dtype = asked.dtype, .add = true};
}
// Rows are tokens, in sequences of 512 where these divide them; heads of 64 where they divide a row.
rope::Problem rotation_of(const Asked& asked) {
  const std::int64_t seq = asked.rows % 512 == 0 ? 512 : asked.rows, head = asked.dim % 64 == 0 ? 64 : asked.dim;
  return {.batch = asked.rows / seq,
          .heads = asked.dim / head,
          .seq = seq,
          .head_dim = head,
          .layout = rope::Layout::halves,
          .x_dtype = asked.dtype,
          .y_dtype = asked.dtype};
}
swiglu::Problem gate_of(const Asked& asked) { return {.rows = asked.rows, .dim = asked.dim, .dtype = asked.dtype}; }
cross_entropy::Problem loss_of(const Asked& asked) {
  return {.rows = asked.rows, .classes = asked.dim, .dtype = asked.dtype};
}
embedding::Problem lookup_of(const Asked& asked) {
  constexpr std::int64_t kVocabulary = 10000;
  return {.rows = asked.rows, .vocab = kVocabulary, .dim = asked.dim, .x_dtype = asked.dtype};
}
// Weights are fp32; in half precision with a copy of it.
adamw::Problem step_of(const Asked& asked) {
  adamw::Problem problem{.elements = asked.rows * asked.dim};
  if (asked.dtype != DType::f32) problem.copy_dtype = asked.dtype;
  return problem;
}
global_norm::Problem gradient_of(const Asked& asked) { return {asked.rows * asked.dim, asked.dtype}; }

template <typename Ladder>
std::vector<registry::Implementation> without_oracle(const Ladder& ladder) {
  std::vector<registry::Implementation> shown = registry::implementations_of(ladder);
  std::erase_if(shown, [](const registry::Implementation& one) { return one.role == Role::reference; });
  return shown;
}

std::vector<Operator> made() {
  // Experiments register before main, so what this uses must not be globals of this file.
  const std::vector<std::string> one{"forward"}, two{"forward", "backward"}, three{"forward", "backward", "both"};
  return {{"rms_norm", two, without_oracle(rms_norm::ladder()),
           [](const Asked& asked, const std::string& rung) {
             return rms_norm::find_rung(rung).supports(norm_of(asked), direction_of(asked));
           },
           [](const Asked& asked, const std::string& rung) {
             return rms_norm::operation(norm_of(asked), direction_of(asked), rms_norm::find_rung(rung));
           }},
          {"rope", two, without_oracle(rope::ladder()),
           [](const Asked& asked, const std::string& rung) -> Refusal {
             if (rotation_of(asked).head_dim % 2 != 0) return "RoPE turns pairs: dim must be even";
             return rope::find_rung(rung).supports(rotation_of(asked), direction_of(asked));
           },
           [](const Asked& asked, const std::string& rung) {
             return rope::operation(rotation_of(asked), direction_of(asked), rope::find_rung(rung));
           }},
          {"swiglu", two, without_oracle(swiglu::ladder()),
           [](const Asked& asked, const std::string& rung) {
             return swiglu::find_rung(rung).supports(gate_of(asked), direction_of(asked));
           },
           [](const Asked& asked, const std::string& rung) {
             return swiglu::operation(gate_of(asked), direction_of(asked), swiglu::find_rung(rung));
           }},
          {"cross_entropy", three, without_oracle(cross_entropy::ladder()),
           [](const Asked& asked, const std::string& rung) {
             return cross_entropy::find_rung(rung).supports(loss_of(asked));
           },
           [](const Asked& asked, const std::string& rung) {
             return cross_entropy::operation(loss_of(asked), pass_of(asked), cross_entropy::find_rung(rung),
                                             asked.seed);
           }},
          {"embedding", two, without_oracle(embedding::ladder()),
           [](const Asked& asked, const std::string& rung) {
             return embedding::find_rung(rung).supports(lookup_of(asked));
           },
           [](const Asked& asked, const std::string& rung) {
             return embedding::operation(lookup_of(asked), direction_of(asked), embedding::find_rung(rung), asked.seed);
           }},
          {"elementwise", one, without_oracle(elementwise::ladder()),
           [](const Asked&, const std::string&) { return Refusal{}; },
           [](const Asked& asked, const std::string& rung) {
             return elementwise::add_operation({asked.rows, asked.dim}, asked.dtype, asked.dtype,
                                               elementwise::find_rung(rung));
           }},
          {"adamw", one, without_oracle(adamw::ladder()),
           [](const Asked& asked, const std::string& rung) { return adamw::find_rung(rung).supports(step_of(asked)); },
           [](const Asked& asked, const std::string& rung) {
             return adamw::operation(step_of(asked), {}, 10, adamw::find_rung(rung));
           }},
          {"global_norm", one, without_oracle(global_norm::ladder()),
           [](const Asked& asked, const std::string& rung) {
             return global_norm::find_rung(rung).supports(gradient_of(asked));
           },
           [](const Asked& asked, const std::string& rung) {
             return global_norm::operation(gradient_of(asked), 1.0, global_norm::find_rung(rung));
           }}};
}

}  // namespace

const std::vector<Operator>& all() {
  static const std::vector<Operator> kAll = made();
  return kAll;
}

const Operator& find(std::string_view name) {
  const auto found = std::ranges::find(all(), name, &Operator::name);
  if (found == all().end()) throw Error(ErrorKind::internal, fmt::format("there is no operator '{}'", name));
  return *found;
}

Asked asked_from(const Params& params) {
  Asked asked{.rows = params.integer("rows"), .dim = params.integer("dim"), .pass = params.text("pass")};
  asked.dtype = parse_dtype(params.text("dtype")).value();
  if (asked.rows < 1 || asked.dim < 1) {
    throw Error(ErrorKind::usage,
                fmt::format("rows is {} and dim is {}; at least 1 of each is wanted", asked.rows, asked.dim));
  }
  return asked;
}

}  // namespace syslab::operators
