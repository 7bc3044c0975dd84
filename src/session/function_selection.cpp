#include "session/function_selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/files/user_file.hpp"
#include "core/text/json_text.hpp"
#include "registry/registry.hpp"
#include "worker/cases/function_cases.hpp"
#include "worker/judged/python_probe.hpp"

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

// What of functions was asked where no function is compared.
void refuse_leftovers(const SelectionOptions& options, const plan::Selection& selection) {
  if (options.backward) refuse("--backward is of functions: --mine, --reference and --inputs (docs/any-function.md)");
  for (const Submitted& mine : selection.mine) {
    if (!mine.is_symbol()) continue;
    refuse(
        fmt::format("--mine {}: what '{}' of a library takes is in its manifest: --inputs manifest.json "
                    "(docs/any-function.md)",
                    mine.name, mine.inside()));
  }
  if (std::ranges::count(selection.patterns, kFunctionExperiment) == 0) return;
  refuse(
      "function is about a function of yours: --mine NAME=file.py:function --reference file.py:function --inputs "
      "file.py:cases (docs/any-function.md)");
}

// As the command line names it. `complete`: each function of --mine names both itself.
Comparison asked_comparison(const SelectionOptions& options, bool complete) {
  const std::string manifest = options.inputs.ends_with(".json") ? options.inputs : "";
  const std::string named = reference_of(options, manifest);
  const std::string given = options.inputs.empty() ? cases_beside(named) : options.inputs;
  if (!complete && (named.empty() || given.empty())) {
    refuse("--reference says what a function should return and --inputs which cases there are; write both");
  }
  return {named, given};
}

// What it leaves open is as the first function has it.
Comparison comparison_of(const Comparison& asked, const Submitted& first) {
  return {asked.reference.empty() ? first.comparison()->reference
                                  : plan::parse_python_place("--reference", asked.reference),
          asked.inputs.empty() ? first.comparison()->inputs : plan::parse_python_place("--inputs", asked.inputs)};
}

void expect_function(const Submitted& mine, const Comparison& comparison) {
  if (mine.inside().empty()) {
    refuse(
        fmt::format("--mine {}: a function is in a Python file: {}=file.py:function; or in a library with a "
                    "manifest: {}=lib.so:symbol",
                    mine.name, mine.name, mine.name));
  }
  if (mine.is_symbol() && !comparison.inputs.ends_with(".json:manifest")) {
    refuse(fmt::format("--mine {}: what '{}' of a library takes is in its manifest: --inputs manifest.json", mine.name,
                       mine.inside()));
  }
  if (mine.is_function() && *mine.comparison() != comparison) {
    refuse(fmt::format("--mine {} has another reference or other inputs than the rest", mine.name));
  }
  if (mine.name == plan::kReferenceName && mine.path() + ":" + mine.inside() != comparison.reference) {
    refuse("--mine reference=…: that is what --reference is called; choose another name");
  }
}

// Each of them with what it is compared with, and the reference among them.
void compare_functions(const Comparison& comparison, std::vector<Submitted>& all) {
  for (const Submitted& mine : all) expect_function(mine, comparison);
  if (std::ranges::find(all, plan::kReferenceName, &Submitted::name) == all.end()) {
    all.push_back(plan::parse_mine(fmt::format("{}={}", plan::kReferenceName, comparison.reference)));
  }
  for (Submitted& mine : all) {
    mine = compared_with(std::move(mine), comparison);
    mine.digest = plan::digest_of(mine);
  }
}

}  // namespace

void select_function(const SelectionOptions& options, plan::Selection& selection) {
  // As a run prints them: each names its reference and inputs itself.
  const bool complete = !selection.mine.empty() && std::ranges::all_of(selection.mine, &Submitted::is_function);
  if (options.reference.empty() && options.inputs.empty() && !complete) return refuse_leftovers(options, selection);
  const Comparison asked = asked_comparison(options, complete);
  if (selection.mine.empty()) {
    refuse("--mine NAME=file.py:function says which function is compared with --reference");
  }
  if (selection.patterns.empty()) selection.patterns = {std::string(kFunctionExperiment)};
  if (selection.patterns != std::vector{std::string(kFunctionExperiment)}) {
    refuse("--reference and --inputs are of the experiment function alone; leave the other names out");
  }
  const Comparison comparison = comparison_of(asked, selection.mine.front());
  compare_functions(comparison, selection.mine);
  std::vector<Params> points = worker::function_cases(comparison.reference, comparison.inputs, options.backward);
  std::vector<Axis> axes = axes_of(points);
  selection.registry = selection.registry->with(kFunctionExperiment, std::move(axes), std::move(points));
}

}  // namespace syslab::cli
