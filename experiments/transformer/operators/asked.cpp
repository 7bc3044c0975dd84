#include "experiments/transformer/operators/asked.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "core/error.hpp"
#include "ops/adamw/foreign.hpp"
#include "ops/adamw/operation.hpp"
#include "ops/cross_entropy/foreign.hpp"
#include "ops/cross_entropy/operation.hpp"
#include "ops/elementwise/operation.hpp"
#include "ops/embedding/foreign.hpp"
#include "ops/embedding/operation.hpp"
#include "ops/global_norm/foreign.hpp"
#include "ops/global_norm/operation.hpp"
#include "ops/rms_norm/foreign.hpp"
#include "ops/rms_norm/operation.hpp"
#include "ops/rope/foreign.hpp"
#include "ops/rope/operation.hpp"
#include "ops/swiglu/foreign.hpp"
#include "ops/swiglu/operation.hpp"
#include "property_tests/adamw/laws.hpp"
#include "property_tests/cross_entropy/laws.hpp"
#include "property_tests/elementwise/laws.hpp"
#include "property_tests/embedding/laws.hpp"
#include "property_tests/global_norm/laws.hpp"
#include "property_tests/rms_norm/laws.hpp"
#include "property_tests/rope/laws.hpp"
#include "property_tests/swiglu/laws.hpp"
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

// What our own kernels promise beyond the formulas, and nobody else is asked for: how they are captured in graphs, add
// to what is there, keep an order of sums, and treat ids and targets that are none.
constexpr std::array kOfOurs = std::to_array<std::string_view>(
    {"adamw.a_skipped_step_touches_nothing", "adamw.the_copy_is_p_rounded", "cross_entropy.a_target_out_of_range_shows",
     "embedding.accumulates", "embedding.other_tokens_do_not_matter", "embedding.ids_outside_count_nowhere"});

// `supports(rung, asked)` and `operate(rung, asked)` take a rung of the ladder or somebody's own.
template <typename Rung, typename Supports, typename Operate>
Operator made_of(std::string name, std::vector<std::string> passes, std::span<const Rung> ladder,
                 const Rung& (*find)(std::string_view), std::vector<check::Law> (*laws)(const Rung&),
                 std::vector<LawInfo> law_list, Supports supports, Operate operate) {
  Operator made{.name = std::move(name), .passes = std::move(passes), .implementations = without_oracle(ladder)};
  made.refusal = [=](const Asked& asked, const std::string& rung) -> Refusal { return supports(find(rung), asked); };
  made.operation = [=](const Asked& asked, const std::string& rung) { return operate(find(rung), asked); };
  made.laws = [=](const std::string& rung) { return laws(find(rung)); };
  made.law_list = std::move(law_list);
  for (LawInfo& law : made.law_list) {
    if (std::ranges::count(kOfOurs, law.id) > 0) law.bound = LawInfo::Bound::ours;
  }
  return made;
}

template <typename Rung, typename Supports, typename Operate>
Operator joined_by_mine(Operator made, Rung (*foreign)(const ForeignImplementation&),
                        std::vector<check::Law> (*laws)(const Rung&), Supports supports, Operate operate) {
  made.refusal_of_mine = [=](const Asked& asked, const ForeignImplementation& mine) -> Refusal {
    return supports(foreign(mine), asked);
  };
  made.operation_of_mine = [=](const Asked& asked, const ForeignImplementation& mine) {
    return operate(foreign(mine), asked);
  };
  made.laws_of_mine = [=](const ForeignImplementation& mine) { return laws(foreign(mine)); };
  return made;
}

template <typename Rung, typename Supports, typename Operate>
Operator made_with_mine(std::string name, std::vector<std::string> passes, std::span<const Rung> ladder,
                        const Rung& (*find)(std::string_view), std::vector<check::Law> (*laws)(const Rung&),
                        std::vector<LawInfo> law_list, Rung (*foreign)(const ForeignImplementation&), Supports supports,
                        Operate operate) {
  return joined_by_mine(
      made_of(std::move(name), std::move(passes), ladder, find, laws, std::move(law_list), supports, operate), foreign,
      laws, supports, operate);
}

// Experiments register before main, so what these use must not be globals of this file.
std::vector<std::string> one_pass() { return {"forward"}; }
std::vector<std::string> two_passes() { return {"forward", "backward"}; }

Operator made_rms_norm() {
  using rms_norm::Rung;
  return made_with_mine<Rung>(
      "rms_norm", two_passes(), rms_norm::ladder(), rms_norm::find_rung, rms_norm::laws, rms_norm::law_list(),
      rms_norm::foreign_rung,
      [](const Rung& rung, const Asked& asked) { return rung.supports(norm_of(asked), direction_of(asked)); },
      [](const Rung& rung, const Asked& asked) {
        return rms_norm::operation(norm_of(asked), direction_of(asked), rung);
      });
}

Operator made_rope() {
  using rope::Rung;
  return made_with_mine<Rung>(
      "rope", two_passes(), rope::ladder(), rope::find_rung, rope::laws, rope::law_list(), rope::foreign_rung,
      [](const Rung& rung, const Asked& asked) -> Refusal {
        if (rotation_of(asked).head_dim % 2 != 0) return "RoPE turns pairs: dim must be even";
        return rung.supports(rotation_of(asked), direction_of(asked));
      },
      [](const Rung& rung, const Asked& asked) {
        return rope::operation(rotation_of(asked), direction_of(asked), rung);
      });
}

Operator made_swiglu() {
  using swiglu::Rung;
  return made_with_mine<Rung>(
      "swiglu", two_passes(), swiglu::ladder(), swiglu::find_rung, swiglu::laws, swiglu::law_list(),
      swiglu::foreign_rung,
      [](const Rung& rung, const Asked& asked) { return rung.supports(gate_of(asked), direction_of(asked)); },
      [](const Rung& rung, const Asked& asked) {
        return swiglu::operation(gate_of(asked), direction_of(asked), rung);
      });
}

Operator made_cross_entropy() {
  using cross_entropy::Rung;
  return made_with_mine<Rung>(
      "cross_entropy", {"forward", "backward", "both"}, cross_entropy::ladder(), cross_entropy::find_rung,
      cross_entropy::laws, cross_entropy::law_list(), cross_entropy::foreign_rung,
      [](const Rung& rung, const Asked& asked) { return rung.supports(loss_of(asked)); },
      [](const Rung& rung, const Asked& asked) {
        return cross_entropy::operation(loss_of(asked), pass_of(asked), rung, asked.seed);
      });
}

Operator made_embedding() {
  using embedding::Rung;
  return made_with_mine<Rung>(
      "embedding", two_passes(), embedding::ladder(), embedding::find_rung, embedding::laws, embedding::law_list(),
      embedding::foreign_rung, [](const Rung& rung, const Asked& asked) { return rung.supports(lookup_of(asked)); },
      [](const Rung& rung, const Asked& asked) {
        return embedding::operation(lookup_of(asked), direction_of(asked), rung, asked.seed);
      });
}

Operator made_elementwise() {
  using elementwise::Rung;
  return made_of<Rung>(
      "elementwise", one_pass(), elementwise::ladder(), elementwise::find_rung, elementwise::laws,
      elementwise::law_list(), [](const Rung&, const Asked&) { return Refusal{}; },
      [](const Rung& rung, const Asked& asked) {
        return elementwise::add_operation({asked.rows, asked.dim}, asked.dtype, asked.dtype, rung);
      });
}

Operator made_adamw() {
  using adamw::Rung;
  return made_with_mine<Rung>(
      "adamw", one_pass(), adamw::ladder(), adamw::find_rung, adamw::laws, adamw::law_list(), adamw::foreign_rung,
      [](const Rung& rung, const Asked& asked) { return rung.supports(step_of(asked)); },
      [](const Rung& rung, const Asked& asked) { return adamw::operation(step_of(asked), {}, 10, rung); });
}

Operator made_global_norm() {
  using global_norm::Rung;
  return made_with_mine<Rung>(
      "global_norm", one_pass(), global_norm::ladder(), global_norm::find_rung, global_norm::laws,
      global_norm::law_list(), global_norm::foreign_rung,
      [](const Rung& rung, const Asked& asked) { return rung.supports(gradient_of(asked)); },
      [](const Rung& rung, const Asked& asked) { return global_norm::operation(gradient_of(asked), 1.0, rung); });
}

std::vector<Operator> made() {
  std::vector<Operator> list{made_rms_norm(),  made_rope(),        made_swiglu(), made_cross_entropy(),
                             made_embedding(), made_elementwise(), made_adamw(),  made_global_norm()};
  for (Operator& one : list) {
    if (one.laws_of_mine) continue;  // else none but ours can join
    for (LawInfo& law : one.law_list) law.bound = LawInfo::Bound::ours;
  }
  return list;
}

}  // namespace

const std::vector<Operator>& all() {
  static const std::vector<Operator> kAll = made();
  return kAll;
}

bool Operator::has_rung(std::string_view rung) const {
  return std::ranges::any_of(implementations, [&](const registry::Implementation& it) { return it.name == rung; });
}

const Operator& of_law(std::string_view law) { return find(law.substr(0, law.find('.'))); }

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
