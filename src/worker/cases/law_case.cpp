#include "worker/cases/law_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/text/json_text.hpp"
#include "core/text/text.hpp"
#include "worker/cases/own_time.hpp"
#include "worker/judged/lacks.hpp"

namespace syslab::worker {
namespace {

// docs/worker-wire.md, "Records"
constexpr const char *kLawSeconds = "law_seconds", *kFirstCallSeconds = "first_call_seconds", *kLacks = "lacks",
                     *kApplies = "applies";

const check::Law& find_law(const std::vector<check::Law>& laws, const std::string& id) {
  std::vector<std::string> ids;
  for (const check::Law& law : laws) {
    if (law.id == id) return law;
    ids.push_back(law.id);
  }
  throw Error(ErrorKind::usage, unknown_name("law", id, ids));
}

// What the law was not asked for want of, or failed for, as far as a process of ours has found it to be so.
std::optional<Lack> lacking(const CaseRequest& asked, const check::LawResult& result) {
  if (!result.lacks || result.lacks->is_established() || !asked.mine) return result.lacks;
  return established(*result.lacks, asked.mine->path());
}

}  // namespace

CheckRecord check_record(const check::Law& law, check::Contract contract, const check::LawResult& result) {
  CheckRecord record;
  record.name = law.id;
  record.outcome = result.outcome;
  record.cases_run = result.cases_run;
  record.shrinks_tried = result.shrinks_tried;
  record.shrinks_taken = result.shrinks_taken;
  record.seed = std::to_string(result.seed);
  record.reproduce = result.reproduce;
  if (!result.counterexample.empty()) record.counterexample_json = json_text(Json(result.counterexample));
  record.message = result.message;
  record.worst_error = result.worst_error;
  record.tolerance = result.tolerance;
  record.contract = contract;
  record.finding = result.finding;
  return record;
}

void run_law(CaseContext& context, const std::vector<check::Law>& laws) {
  const CaseRequest& asked = context.request();
  const check::Law& law = find_law(laws, asked.law);
  check::LawRequest request;
  if (context.params().has("contract")) request.contract = check::parse_contract(context.params().text("contract"));
  request.seed = asked.seed;
  request.max_success = asked.law_cases;
  request.search_time = asked.law_time;
  OwnTime time([&context] { return context.channel_pid(); });
  const Nanoseconds first_calls_before = context.first_calls();
  const auto in_first_calls = [&] { return context.first_calls() - first_calls_before; };
  request.most_time = asked.law_limit;
  request.spent = [&] { return std::max(Nanoseconds{}, time.spent() - in_first_calls()); };
  request.reproduce = asked.reproduce;
  request.replay_tries = 300;
  // Starting a process again takes time, and laws after laws meet the same crash: the first few are made small.
  constexpr int kMostShrunk = 3;
  static int crashes = 0;
  request.revives = context.revives() && crashes < kMostShrunk;

  context.progress(0, fmt::format("searching {}", law.id));
  const check::LawResult result = law.search(request);
  if (result.outcome == check::Outcome::error) ++crashes;
  context.emit(check_record(law, request.contract, result));
  // Looking at what is promised is beside the law's own search: laws after it keep their shares.
  const Nanoseconds own = std::max(Nanoseconds{}, request.spent() - Nanoseconds(result.looking_in_promised));
  Json facts{{kLawSeconds, Seconds(own).count()}};
  if (const auto lack = lacking(asked, result); lack && lack->is_established()) facts[kLacks] = to_json(*lack);
  if (!result.applies) facts[kApplies] = false;
  if (in_first_calls() > Nanoseconds{}) facts[kFirstCallSeconds] = Seconds(in_first_calls()).count();
  context.emit(FactRecord{json_text(facts)});
  if (!result.error_map.empty()) context.emit(ArtifactRecord{"error_map", "application/json", result.error_map});
  switch (result.outcome) {
    case check::Outcome::passed:
      return;
    case check::Outcome::falsified:
    case check::Outcome::error:
      throw CheckFailed(result.message);
    case check::Outcome::gave_up:
      throw Unsupported(fmt::format("gave up after {} cases: {}", result.cases_run, result.message));
    case check::Outcome::not_run:
      throw Unsupported("not searched: " + result.message);
  }
}

void require_class_for_ranks(const CaseContext& context) {
  const CaseRequest& asked = context.request();
  if (!asked.mine->runs_in_python()) {
    throw Error(ErrorKind::usage,
                fmt::format("{} takes --mine NAME=file.py:Class; syslab.h has nothing of ranks", asked.experiment));
  }
}

}  // namespace syslab::worker
