#include "session/stored_evidence.hpp"

#include <nlohmann/json.hpp>

#include "contract/status.hpp"
#include "core/build_info.hpp"
#include "measure/protocol.hpp"
#include "plan/predict.hpp"
#include "runner/environment.hpp"

namespace syslab::cli {
namespace {

std::string digest_of(const plan::PlannedCase& planned, const plan::Plan& plan) {
  std::string digest, sources;
  for (const Submitted& mine : plan::joining(plan.mine, *planned.experiment)) {
    if (mine.name == planned.implementation) digest = mine.digest;
    sources += mine.sources;
  }
  return digest.empty() ? "" : digest + sources;
}

}  // namespace

StoredEvidence::Key StoredEvidence::key_of(const plan::PlannedCase& planned, const plan::Plan& plan) {
  const std::string asked = plan::duration_key(planned), digest = digest_of(planned, plan);
  if (planned.task == plan::Task::law) return {asked, "", 0, digest};
  return {asked, planned.experiment->protocol, measure::kMeasuringVersion, digest};
}

StoredEvidence::StoredEvidence(const store::Store& store, Nanoseconds timeout) {
  const std::string machine = runner::comparability_key(runner::environment_facts());
  const BuildInfo& here = build_info();
  const store::ResultSet found = store.query(
      "SELECT c.uid, i.name, p.world_size, coalesce(p.law, ''), "
      "       iif(p.task = 'law', '', r.protocol ->> '$.name'),"
      "       iif(i.is_mine, i.digest || coalesce(r.protocol ->> '$.mine_sources', ''), ''), e.status, "
      "v.comparability_key,"
      "       coalesce(b.facts ->> '$.git_sha', ''), coalesce(b.facts ->> '$.git_diff', ''),"
      "       coalesce(r.protocol ->> '$.timeout_ns', 0), coalesce(r.protocol ->> '$.memory_limit_bytes', 0),"
      "       iif(p.task = 'law', 0, coalesce(r.protocol ->> '$.version', 1)),"
      "       r.uid NOT IN (SELECT run_uid FROM arrival WHERE NOT trusted) AS measured_here"
      "  FROM attempt a"
      "  JOIN run r ON r.id = a.run_id AND r.verb IN ('run', 'check')"
      "   AND coalesce(r.protocol ->> '$.data', 'normal') = 'normal'"
      "  JOIN environment v ON v.id = r.environment_id"
      "  JOIN build b ON b.id = r.build_id"
      "  JOIN plan_case p ON p.run_id = a.run_id AND p.seq = a.plan_seq"
      "  JOIN case_def c ON c.id = p.case_id"
      "  JOIN implementation i ON i.id = p.implementation_id"
      "  JOIN attempt_event e ON e.attempt_id = a.id"
      "   AND (e.status IN ('ok', 'oom', 'check_failed', 'timeout', 'crashed', 'error')"
      "        OR e.status = 'unsupported' AND p.task = 'law'"
      "           AND NOT EXISTS (SELECT 1 FROM check_result k WHERE k.attempt_id = a.id AND k.outcome = 'gave_up'))",
      {});
  for (const auto& row : found.rows) {
    const std::string asked = plan::duration_key(row[0].text, row[1].text, row[2].integer, row[3].text);
    const Key one{asked, row[4].text, row[12].integer, row[5].text};
    const Status status = parse_status(row[6].text);
    // A law that an implementation does not have to keep is looked at, too: nobody asks for it again. One that gave up
    // is not: it found no input that was not refused.
    const bool of_ours = row[13].integer != 0;
    if (status == Status::ok || status == Status::unsupported) {
      if (of_ours) well_.insert(one);
      shown_well_.insert(one.of_any_version());
    }
    // A limit that somebody chose tells nothing of the machine.
    const bool limited = status == Status::oom && row[11].integer != 0;
    const bool of_machine = of_ours && row[7].text == machine;
    if (status == Status::oom && !limited) {
      if (of_machine) out_of_memory_.insert({asked, "", 0, row[5].text});
      shown_out_of_memory_.insert({asked, "", 0, row[5].text});
    }
    const bool same = of_machine && row[8].text == here.git_sha && row[9].text == here.git_diff;
    const bool gets_longer = status == Status::timeout && Nanoseconds(row[10].integer) < timeout;
    if (status != Status::ok && status != Status::unsupported && same && !gets_longer && !limited) failed_.insert(one);
  }
}

bool StoredEvidence::holds(const plan::PlannedCase& planned, const plan::Plan& plan) const {
  return well_.contains(key_of(planned, plan)) || ran_out(planned, plan, out_of_memory_);
}

bool StoredEvidence::shows(const plan::PlannedCase& planned, const plan::Plan& plan) const {
  return shown_well_.contains(key_of(planned, plan).of_any_version()) || ran_out(planned, plan, shown_out_of_memory_);
}

bool StoredEvidence::ran_out(const plan::PlannedCase& planned, const plan::Plan& plan,
                             const std::set<Key>& out_of_memory) {
  return planned.experiment->oom_is_an_answer &&
         out_of_memory.contains({plan::duration_key(planned), "", 0, digest_of(planned, plan)});
}

bool StoredEvidence::failed_here(const plan::PlannedCase& planned, const plan::Plan& plan) const {
  return failed_.contains(key_of(planned, plan));
}

}  // namespace syslab::cli
