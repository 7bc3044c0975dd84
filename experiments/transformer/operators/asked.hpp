// The operators of the model by name, each of a size that a case asks for.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "check/law.hpp"
#include "contract/law.hpp"
#include "contract/operation.hpp"
#include "core/value.hpp"
#include "ops/foreign.hpp"
#include "registry/experiment.hpp"

namespace syslab::operators {

struct Asked {
  std::int64_t rows = 1, dim = 1;
  DType dtype = DType::f32;
  std::string pass;  // "forward", "backward", "both"
  std::uint64_t seed = 0;
};

using ops::ForeignImplementation;

struct Operator {
  std::string name;
  std::vector<std::string> passes;                        // that there are
  std::vector<registry::Implementation> implementations;  // but for the oracle
  // Why a rung cannot take it, or nothing; and the call.
  std::function<std::optional<std::string>(const Asked&, const std::string& rung)> refusal;
  std::function<Operation(const Asked&, const std::string& rung)> operation;
  std::vector<LawInfo> law_list;
  std::function<std::vector<check::Law>(const std::string& rung)> laws;
  // The same of somebody's own; empty where none can join.
  std::function<std::optional<std::string>(const Asked&, const ForeignImplementation&)> refusal_of_mine;
  std::function<Operation(const Asked&, const ForeignImplementation&)> operation_of_mine;
  std::function<std::vector<check::Law>(const ForeignImplementation&)> laws_of_mine;

  bool has_rung(std::string_view rung) const;
};

const std::vector<Operator>& all();
// Of a closed axis: it is there.
const Operator& find(std::string_view name);
// The operator whose law it is: "rope.keeps_norms" is rope's.
const Operator& of_law(std::string_view law);
// Error(usage) for sizes below 1.
Asked asked_from(const Params& params);

}  // namespace syslab::operators
