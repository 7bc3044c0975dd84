#include "claim/programs.hpp"

#include <algorithm>
#include <string>

#include "claim/quoted.hpp"
#include "worker/cases/command_params.hpp"

namespace syslab::claim {
namespace {

using Kind = Alteration::Kind;

constexpr const char* kDataOfPrograms = "normal";
constexpr std::uint64_t kSeedOfPrograms = 0;

}  // namespace

bool is_of_programs(const File& file) {
  const std::string command(worker::kCommandExperiment);
  return !file.faster.command.empty() || !file.slower.command.empty() ||
         std::ranges::find(file.question.experiments, command) != file.question.experiments.end() ||
         std::ranges::any_of(file.cases, [&](const Case& one) { return one.experiment == command; });
}

void take_inputs_of_programs(Question& question) {
  question.data = kDataOfPrograms;
  question.seed = kSeedOfPrograms;
}

void add_invented_inputs(std::vector<Alteration>& found, const File& file) {
  if (!is_of_programs(file)) return;
  const Question& question = file.question;
  if (question.data != kDataOfPrograms) {
    found.push_back({Kind::derived, "question/data", in_quotes(question.data),
                     in_quotes(kDataOfPrograms) + ", as for all programs"});
  }
  if (question.seed != kSeedOfPrograms) {
    found.push_back({Kind::derived, "question/seed", std::to_string(question.seed),
                     std::to_string(kSeedOfPrograms) + ", as for all programs"});
  }
  for (const std::string& experiment : question.experiments) {
    if (experiment == worker::kCommandExperiment) continue;
    found.push_back({Kind::derived, "question/experiments", in_quotes(experiment),
                     in_quotes(worker::kCommandExperiment) + " alone, as for all programs"});
  }
}

}  // namespace syslab::claim
