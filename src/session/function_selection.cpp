#include "session/function_selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/json_text.hpp"
#include "core/user_file.hpp"
#include "registry/registry.hpp"
#include "worker/function_cases.hpp"
#include "worker/python_probe.hpp"

namespace syslab::cli {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorKind::usage, message); }

// The axes of the points, each with its values in the order in which they come.
std::vector<Axis> axes_of(const std::vector<Params>& points) {
  std::vector<Axis> axes;
  for (const auto& [name, unused] : points.front()) axes.push_back({name, {}, "of the file's cases", true, {}});
  for (const Params& point : points) {
    for (Axis& axis : axes) {
      const Value& value = point.at(axis.name);
      if (std::ranges::find(axis.values, value) == axis.values.end()) axis.values.push_back(value);
    }
  }
  return axes;
}

// A library's manifest.
Json read_manifest(const std::string& manifest) {
  constexpr std::uint64_t kLargest = 16U << 20;
  const std::string text = read_user_file(manifest, kLargest);
  if (const std::string fault = object_fault(text); !fault.empty()) {
    refuse(fmt::format("--inputs {}: the manifest is {}", manifest, fault));
  }
  return parse_json(text);
}

// --reference, else "reference" of the manifest, beside which a relative file is. The manifest is read in any case:
// what is wrong with it is said here.
std::string reference_of(const SelectionOptions& options, const std::string& manifest) {
  if (manifest.empty()) return options.reference;
  const Json json = read_manifest(manifest);
  if (!options.reference.empty()) return options.reference;
  const auto found = json.find("reference");
  if (found == json.end() || !found->is_string()) {
    refuse(fmt::format("--inputs {}: the manifest names no \"reference\", and --reference is not given", manifest));
  }
  const std::filesystem::path place = found->get<std::string>();
  return (std::filesystem::path(manifest).parent_path() / place).string();
}

// Where nobody says which cases there are: `cases` of the reference's file.
std::string cases_beside(const std::string& reference) {
  const std::size_t colon = reference.rfind(".py:");
  return colon == std::string::npos ? "" : reference.substr(0, colon) + ".py:cases";
}

}  // namespace

void select_function(const SelectionOptions& options, plan::Selection& selection) {
  std::vector<plan::MineSpec>& all = selection.mine;
  // As a run prints them: each names its reference and inputs itself.
  const bool complete = !all.empty() && std::ranges::all_of(all, &plan::MineSpec::is_function);
  if (options.reference.empty() && options.inputs.empty() && !complete) {
    if (options.backward) refuse("--backward is of functions: --mine, --reference and --inputs (docs/any-function.md)");
    for (const plan::MineSpec& mine : all) {
      if (!mine.is_symbol()) continue;
      refuse(
          fmt::format("--mine {}: what '{}' of a library takes is in its manifest: --inputs manifest.json "
                      "(docs/any-function.md)",
                      mine.name, mine.python_class));
    }
    if (std::ranges::count(selection.patterns, kFunctionExperiment) == 0) return;
    refuse(
        "function is about a function of yours: --mine NAME=file.py:function --reference file.py:function --inputs "
        "file.py:cases (docs/any-function.md)");
  }
  const std::string manifest = options.inputs.ends_with(".json") ? options.inputs : "";
  const std::string named = reference_of(options, manifest);
  const std::string given = options.inputs.empty() ? cases_beside(named) : options.inputs;
  if (!complete && (named.empty() || given.empty())) {
    refuse("--reference says what a function should return and --inputs which cases there are; write both");
  }
  if (all.empty()) refuse("--mine NAME=file.py:function says which function is compared with --reference");
  if (selection.patterns.empty()) selection.patterns = {std::string(kFunctionExperiment)};
  if (selection.patterns != std::vector{std::string(kFunctionExperiment)}) {
    refuse("--reference and --inputs are of the experiment function alone; leave the other names out");
  }
  const std::string reference = named.empty() ? all[0].reference : plan::parse_python_place("--reference", named);
  const std::string inputs = given.empty() ? all[0].inputs : plan::parse_python_place("--inputs", given);
  bool has_reference = false;
  for (plan::MineSpec& mine : all) {
    if (mine.python_class.empty()) {
      refuse(
          fmt::format("--mine {}: a function is in a Python file: {}=file.py:function; or in a library with a "
                      "manifest: {}=lib.so:symbol",
                      mine.name, mine.name, mine.name));
    }
    if (mine.is_symbol() && !inputs.ends_with(".json:manifest")) {
      refuse(fmt::format("--mine {}: what '{}' of a library takes is in its manifest: --inputs manifest.json",
                         mine.name, mine.python_class));
    }
    if (mine.is_function() && (mine.reference != reference || mine.inputs != inputs)) {
      refuse(fmt::format("--mine {} has another reference or other inputs than the rest", mine.name));
    }
    mine.reference = reference;
    mine.inputs = inputs;
    if (mine.name != plan::kReferenceName) continue;
    has_reference = true;
    if (mine.path + ":" + mine.python_class != reference) {
      refuse("--mine reference=…: that is what --reference is called; choose another name");
    }
  }
  if (!has_reference) all.push_back(plan::parse_mine(fmt::format("{}={}", plan::kReferenceName, reference)));
  all.back().reference = reference;
  all.back().inputs = inputs;
  for (plan::MineSpec& mine : all) mine.digest = plan::digest_of(mine);
  std::vector<Params> points = worker::function_cases(reference, inputs, options.backward);
  std::vector<Axis> axes = axes_of(points);
  selection.registry = selection.registry->with(kFunctionExperiment, std::move(axes), std::move(points));
}

}  // namespace syslab::cli
