#include "registry/experiment.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/rank_error.hpp"
#include "registry/validate.hpp"

namespace syslab::registry {

Values pow2(int low_exponent, int high_exponent) {
  if (low_exponent < 0 || high_exponent > 62 || low_exponent > high_exponent) {
    throw Error(ErrorKind::internal,
                fmt::format("pow2({}, {}): exponents must rise within 0 … 62", low_exponent, high_exponent));
  }
  Values values;
  for (int exponent = low_exponent; exponent <= high_exponent; ++exponent)
    values.emplace_back(std::int64_t{1} << exponent);
  return values;
}

const Axis* Experiment::find_axis(std::string_view name) const {
  const auto found = std::find_if(axes.begin(), axes.end(), [name](const Axis& axis) { return axis.name == name; });
  return found == axes.end() ? nullptr : &*found;
}

std::vector<NamedFile> Experiment::files_named_by(const Params& params) const {
  std::vector<NamedFile> named;
  for (const Axis& axis : axes) {
    if (params.has(axis.name) && axis.names_file(params.at(axis.name))) {
      named.push_back({axis.name, to_string(params.at(axis.name))});
    }
  }
  return named;
}

const LawInfo* Experiment::find_law(std::string_view id) const {
  const auto found = std::ranges::find(laws, id, &LawInfo::id);
  return found == laws.end() ? nullptr : &*found;
}

bool Experiment::has_laws_of_handout() const { return std::ranges::any_of(laws, &LawInfo::asked_by_handout); }

const Implementation* Experiment::find_implementation(std::string_view name) const {
  const auto found = std::find_if(implementations.begin(), implementations.end(),
                                  [name](const Implementation& it) { return it.name == name; });
  return found == implementations.end() ? nullptr : &*found;
}

bool Experiment::starts_ranks(std::string_view implementation) const {
  const Implementation* const known = find_implementation(implementation);
  return known != nullptr ? known->beside_classes : mine_on_ranks;
}

std::chrono::milliseconds Experiment::limit_of_waits(const Params& params) const {
  if (limit_axis.empty()) return kLimitOfWaits;
  return std::chrono::milliseconds(params.integer(limit_axis));
}

Builder& Builder::version(std::string text) {
  experiment_.version = std::move(text);
  return *this;
}

Builder& Builder::title(std::string text) {
  experiment_.title = std::move(text);
  return *this;
}

Builder& Builder::question(std::string text) {
  experiment_.question = std::move(text);
  return *this;
}

Builder& Builder::analogue(std::string text) {
  experiment_.analogue = std::move(text);
  return *this;
}

Builder& Builder::protocol(std::string name) {
  experiment_.protocol = std::move(name);
  return *this;
}

Builder& Builder::alias(std::string name) {
  experiment_.aliases.push_back(std::move(name));
  return *this;
}

Builder& Builder::tags(std::vector<std::string> names) {
  experiment_.tags.insert(experiment_.tags.end(), names.begin(), names.end());
  return *this;
}

Builder& Builder::problem(std::string handout, std::string problem, int points) {
  experiment_.problems.push_back({std::move(handout), std::move(problem), points});
  return *this;
}

Builder& Builder::axes(std::vector<Axis> list) {
  for (Axis& one : list) experiment_.axes.push_back(std::move(one));
  return *this;
}

Builder& Builder::axis(std::string name, Values values, std::string help) {
  experiment_.axes.push_back({std::move(name), std::move(values), std::move(help), false, {}});
  return *this;
}

Builder& Builder::closed_axis(std::string name, Values values, std::string help, Values also) {
  experiment_.axes.push_back({std::move(name), std::move(values), std::move(help), true, std::move(also)});
  return *this;
}

Builder& Builder::file_axis(std::string name, Values declared, std::string help) {
  Axis axis{std::move(name), std::move(declared), std::move(help), false, {}};
  axis.kind = AxisKind::file;
  experiment_.axes.push_back(std::move(axis));
  return *this;
}

Builder& Builder::limits_waits_by(std::string axis) {
  experiment_.limit_axis = std::move(axis);
  return *this;
}

Builder& Builder::world_sizes(Values values) {
  experiment_.ranks.values = std::move(values);
  experiment_.ranks.closed = false;
  return *this;
}

Builder& Builder::preset(std::string name, Preset preset) {
  if (!experiment_.presets.emplace(name, std::move(preset)).second) {
    throw Error(ErrorKind::internal,
                fmt::format("experiment '{}': preset '{}' is declared twice", experiment_.id, name));
  }
  return *this;
}

Builder& Builder::evidence(Evidence evidence) {
  experiment_.evidence.push_back(std::move(evidence));
  return *this;
}

Builder& Builder::all_evidence(std::vector<Evidence> list) {
  for (Evidence& one : list) evidence(std::move(one));
  return *this;
}

Builder& Builder::implementation(Implementation implementation) {
  experiment_.implementations.push_back(std::move(implementation));
  return *this;
}

Builder& Builder::implementations(std::vector<Implementation> implementations) {
  for (Implementation& one : implementations) implementation(std::move(one));
  return *this;
}

Builder& Builder::chosen(std::string_view implementation, std::string_view because) {
  experiment_.chosen.push_back({std::string(implementation), std::string(because)});
  return *this;
}

Builder& Builder::metric(std::string name, std::string unit, std::string help) {
  experiment_.metrics.push_back({std::move(name), std::move(unit), std::move(help)});
  return *this;
}

Builder& Builder::metrics(std::vector<Metric> list) {
  for (Metric& one : list) experiment_.metrics.push_back(std::move(one));
  return *this;
}

Builder& Builder::laws(std::vector<LawInfo> laws) {
  experiment_.laws.insert(experiment_.laws.end(), laws.begin(), laws.end());
  return *this;
}

Builder& Builder::laws_of(std::function<bool(std::string_view, std::string_view)> is_law_of) {
  experiment_.is_law_of = std::move(is_law_of);
  return *this;
}

Builder& Builder::skip_if(std::string reason,
                          std::function<bool(const Params&, std::string_view implementation)> applies) {
  experiment_.skips.push_back({std::move(reason), std::move(applies)});
  return *this;
}

Builder& Builder::refuses(
    std::function<std::optional<std::string>(const Params&, std::string_view implementation)> why) {
  experiment_.refusal = std::move(why);
  return *this;
}

Builder& Builder::expects(std::function<void(const Params&)> what) {
  if (!experiment_.expectation) {
    experiment_.expectation = std::move(what);
  } else {
    experiment_.expectation = [before = std::move(experiment_.expectation),
                               what = std::move(what)](const Params& params) {
      before(params);
      what(params);
    };
  }
  return *this;
}

Builder& Builder::accepts_mine() {
  experiment_.accepts_mine = true;
  return *this;
}

Builder& Builder::accepts_mine_for_laws(std::string timed_by) {
  experiment_.accepts_mine = true;
  experiment_.times_mine = false;
  experiment_.timed_by = std::move(timed_by);
  return *this;
}

Builder& Builder::accepts_classes_on_ranks() {
  experiment_.accepts_mine = experiment_.times_mine = experiment_.mine_on_ranks = true;
  return *this;
}

Builder& Builder::oom_is_an_answer() {
  experiment_.oom_is_an_answer = true;
  return *this;
}

Builder& Builder::flops(std::function<double(const Params&)> formula) {
  experiment_.flops = std::move(formula);
  return *this;
}

Builder& Builder::bytes(std::function<double(const Params&)> formula) {
  experiment_.bytes = std::move(formula);
  return *this;
}

Builder& Builder::memory(std::function<double(const Params&, std::string_view)> formula) {
  experiment_.memory_bytes = std::move(formula);
  return *this;
}

Builder& Builder::runs(std::function<void(worker::CaseContext&)> body) {
  experiment_.run = std::move(body);
  return *this;
}

Builder::operator Experiment() const {
  validate(experiment_);
  return experiment_;
}

}  // namespace syslab::registry
