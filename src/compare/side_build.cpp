#include "compare/side_build.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "compare/kept_builds.hpp"
#include "compare/revisions.hpp"
#include "core/build_info.hpp"
#include "core/error.hpp"
#include "core/files/hash.hpp"
#include "core/files/machine_code.hpp"
#include "core/text/json_text.hpp"
#include "measure/protocol.hpp"
#include "session/capture.hpp"
#include "session/command_selection.hpp"
#include "session/function_selection.hpp"
#include "worker/wire/wire.hpp"

namespace syslab::cli {
namespace {

Json answer(const std::string& path, const std::vector<std::string>& words) {
  std::vector<std::string> argv{path};
  argv.insert(argv.end(), words.begin(), words.end());
  argv.emplace_back("--json");
  const std::optional<std::string> text = output_of(argv);
  return text ? json_or_discarded(*text) : Json();
}

std::set<std::string> names_in(const Json& list) {
  std::set<std::string> names;
  for (const Json& it : list) names.insert(it.value("name", std::string()));
  return names;
}

// Axes of functions come from the user's file, and those of commands from the command line. Both builds get them with
// the case, and no build can list them.
bool takes_axes_from_user(const std::string& experiment) {
  return experiment == kFunctionExperiment || experiment == kCommandExperiment;
}

// `planned` was made from this program's registry, so the other build is compared with it.
void hold_against(const SideBuild& build, char side, const plan::PlannedCase& planned,
                  std::vector<std::string>& differences) {
  if (!build.is_other()) return;
  const std::string& id = planned.experiment->id;
  const DescribedExperiment& experiment = build.experiments.at(id);
  if (experiment.version.empty()) {
    differences.push_back(fmt::format("experiment {}: side {} does not have it", id, side));
    return;
  }
  if (experiment.version != planned.experiment->version) {
    differences.push_back(fmt::format("version of {}: {} on side {}, {} here", id, experiment.version, side,
                                      planned.experiment->version));
  }
  const bool ours = planned.experiment->find_implementation(planned.implementation) != nullptr;
  if (ours && !experiment.implementations.contains(planned.implementation)) {
    differences.push_back(fmt::format("implementation {}: side {} does not have it", planned.implementation, side));
  }
  for (const auto& [axis, value] : planned.params) {
    if (!takes_axes_from_user(id) && !experiment.axes.contains(axis)) {
      differences.push_back(fmt::format("axis {}: side {} does not have it", axis, side));
    }
  }
}

}  // namespace

std::string program_of(const Console& console, const std::string& build) {
  std::error_code ignored;
  if (build.empty() || (!is_full_name(build) && std::filesystem::is_regular_file(build, ignored))) return build;
  const std::optional<std::string> repository = repository_of(".");
  const std::optional<std::string> commit = repository ? commit_of(*repository, build) : std::nullopt;
  if (!commit) {
    throw Error(ErrorKind::usage,
                fmt::format("build '{}': there is no such file{}; name a syslab program, or a revision of its "
                            "repository from within it",
                            build, repository ? ", and no such revision of " + *repository : ""));
  }
  const Built built = KeptBuilds(console, recipe_of_syslab(*repository)).build(*commit);
  if (built.interrupted) throw Error(ErrorKind::comm, "interrupted while revision " + build + " was built");
  if (!built.failed.empty()) throw Error(ErrorKind::usage, fmt::format("revision {} {}", build, built.failed));
  return built.path;
}

SideBuild this_build() {
  SideBuild build;
  build.facts = json_text(to_json(build_info()));
  build.wire_version = worker::kWireVersion;
  build.measuring_version = measure::kMeasuringVersion;
  return build;
}

SideBuild ask_build(const std::string& path, const std::vector<std::string>& experiments) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) {
    throw Error(ErrorKind::usage, fmt::format("build '{}': there is no such file; name a syslab program", path));
  }
  SideBuild build;
  build.path = path;
  const std::string program = fs::absolute(path).lexically_normal().string();
  build.worker_command = {program, "worker"};
  const Json told = answer(program, {"env"});
  if (!told.is_object() || !told.contains("build")) {
    throw Error(ErrorKind::usage, fmt::format("build '{}' cannot be run here: `{} env --json` gives no answer of a "
                                              "syslab; is it an executable for this machine?",
                                              path, path));
  }
  build.facts = json_text(told["build"]);
  build.wire_version = told.value("worker_protocol", 0);
  build.measuring_version = told.value("measuring_version", 1);
  build.digest = sha256_hex_of_file(program);
  build.code = machine_code_digest(program, told["build"].value("git_sha", std::string()));
  for (const std::string& id : experiments) {
    const Json told_of_it = answer(program, {"describe", id});
    DescribedExperiment& experiment = build.experiments[id];
    if (!told_of_it.is_object()) continue;
    experiment.version = told_of_it.value("version", std::string());
    experiment.implementations = names_in(told_of_it.value("implementations", Json::array()));
    experiment.axes = names_in(told_of_it.value("axes", Json::array()));
  }
  return build;
}

std::vector<std::string> differing(const SideBuild& a, const plan::PlannedCase& case_a, const SideBuild& b,
                                   const plan::PlannedCase& case_b) {
  std::vector<std::string> differences;
  const auto protocol = [](const SideBuild& build) {
    return build.wire_version == 0 ? std::string("unknown") : std::to_string(build.wire_version);
  };
  if (a.wire_version != b.wire_version) {
    differences.push_back(fmt::format("wire format: {} on side A, {} on side B", protocol(a), protocol(b)));
  }
  if (a.measuring_version != b.measuring_version) {
    differences.push_back(
        fmt::format("version of the protocols: {} on side A, {} on side B", a.measuring_version, b.measuring_version));
  }
  hold_against(a, 'A', case_a, differences);
  hold_against(b, 'B', case_b, differences);
  return differences;
}

std::string revision_of(const std::string& facts) {
  const Json json = json_or_discarded(facts);
  if (!json.is_object()) return "unknown";
  return json.value("git_sha", std::string("unknown")) + (json.value("git_dirty", false) ? "+changes" : "");
}

}  // namespace syslab::cli
