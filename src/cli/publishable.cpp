#include "cli/publishable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/text/json_text.hpp"
#include "core/text/text.hpp"
#include "session/stored_object.hpp"
#include "session/stored_run.hpp"
#include "store/cells.hpp"

namespace syslab::cli {
namespace {

constexpr std::size_t kFewestLaunches =
    3;  // fresh processes for each case, so that the interval includes the differences between launches
constexpr double kWide = 0.01;  // half-width of an interval, relative to the time

class Judge {
 public:
  Judge(const store::Store& store, const store::StoredRun& run)
      : store_(store), run_(run), id_(store::integer_cell(run.id)) {}

  std::vector<Finding> findings() {
    origin();
    build();
    protocol();
    ends();
    checks();
    launches();
    noise();
    width();
    return std::move(findings_);
  }

 private:
  store::ResultSet ask(const std::string& sql) const { return store_.query(sql, {id_}); }
  std::int64_t count(const std::string& sql) const { return ask(sql).rows.at(0).at(0).integer; }
  void fine(std::string subject, std::string found) {
    findings_.push_back({std::move(subject), std::move(found), "", Level::fine});
  }
  void say(Level level, std::string subject, std::string found, std::string remedy) {
    findings_.push_back({std::move(subject), std::move(found), std::move(remedy), level});
  }

  void origin() {
    if (count("SELECT NOT measured_here FROM v_run WHERE run_id = ?1") == 0) return;
    say(Level::bad, "origin", "self-reported: it was merged or imported, and not measured here",
        "measure again, or `syslab merge --trust FILE` if you vouch for it");
  }

  void build() {
    const StoredObject facts(
        "build.facts",
        ask("SELECT b.facts FROM run r JOIN build b ON b.id = r.build_id WHERE r.id = ?1").rows.at(0)[0].text);
    const std::string revision = facts.value("git_sha", std::string("unknown"));
    const std::string type = facts.value("build_type", std::string());
    if (facts.value("git_dirty", false)) {
      say(Level::bad, "revision", fmt::format("built from {} with changes that are in no commit", revision),
          "commit, build, and measure again");
    } else if (revision == "unknown") {
      say(Level::bad, "revision", "nobody knows which revision it was built from", "build from a git checkout");
    } else {
      fine("revision", revision);
    }
    if (type == "debug" || type == "debugoptimized") {
      say(Level::bad, "build type", type, "meson setup build --buildtype=release, and measure again");
    }
  }

  void protocol() {
    const StoredObject protocol("run.protocol", run_.protocol_json);
    const std::string name = protocol.value("name", std::string());
    const std::string data = protocol.value("data", std::string("normal"));
    if (name == "quick") {
      say(Level::bad, "protocol", "quick: made to see that things work", "measure with --protocol kernel");
    } else {
      fine("protocol", name);
    }
    if (data != "normal") {
      say(Level::doubtful, "inputs", fmt::format("{}: they change power, and so clocks", data),
          "say so beside every number, or measure with --data normal");
    }
  }

  void ends() {
    const std::int64_t missing = count(
        "SELECT count(*) FROM plan_case p WHERE p.run_id = ?1 AND NOT EXISTS (SELECT 1 FROM v_attempt t WHERE t.run_id "
        "= p.run_id AND t.plan_seq = p.seq AND t.status NOT IN ('running', 'aborted'))");
    const std::int64_t failed = count(
        "SELECT count(DISTINCT plan_seq) FROM v_attempt WHERE run_id = ?1 AND status IN ('timeout', 'crashed', "
        "'error')");
    if (missing > 0) {
      say(Level::bad, "cases", fmt::format("{} of the plan never finished", missing), "syslab resume " + run_.uid);
    }
    if (failed > 0) {
      say(Level::bad, "cases", fmt::format("{} crashed, failed or timed out", failed),
          "mend them, or publish their rows, too: `report` shows them");
    }
    if (missing == 0 && failed == 0) fine("cases", "every planned case came to its end");
  }

  void checks() {
    const std::int64_t wrong =
        count("SELECT count(DISTINCT plan_seq) FROM v_attempt WHERE run_id = ?1 AND status = 'check_failed'");
    if (wrong > 0) {
      say(Level::bad, "checks", fmt::format("{} wrong", counted(wrong, "case")),
          "a wrong kernel has no time to publish");
    } else {
      fine("checks", "whatever was measured was checked, and nothing was wrong");
    }
  }

  void launches() {
    const auto times = stored_times(store_, run_.id);
    if (times.empty()) {
      say(Level::bad, "launches", "no case was timed", "syslab run NAME");
      return;
    }
    const auto few = std::count_if(times.begin(), times.end(),
                                   [](const auto& it) { return it.second.launch_medians.size() < kFewestLaunches; });
    if (few > 0) {
      say(Level::bad, "launches",
          fmt::format("{} of {} in fewer than {} fresh processes: no interval knows how launches differ", few,
                      counted(static_cast<std::int64_t>(times.size()), "case"), kFewestLaunches),
          "syslab run … --launches 3, or syslab compare");
    } else {
      fine("launches", fmt::format("at least {} a case", kFewestLaunches));
    }
  }

  // Labels given while measuring, by the number of attempts that have each.
  void noise() {
    const store::ResultSet labels =
        ask("SELECT j.atom, count(DISTINCT t.attempt_id) FROM v_attempt t, json_tree(t.facts) j "
            "WHERE t.run_id = ?1 AND j.path LIKE '%.noise' AND j.atom IS NOT NULL GROUP BY j.atom ORDER BY 2 DESC");
    for (const auto& row : labels.rows) {
      const bool contended = row[0].text == "contended";
      say(contended ? Level::bad : Level::doubtful, "noise",
          fmt::format("{}: {}", row[0].text, counted(row[1].integer, "attempt")),
          contended ? "something else ran on the machine; measure again when it is idle"
                    : "look at the samples (docs/schema.md, query 8) before you quote the median");
    }
    if (labels.rows.empty()) fine("noise", "no attempt is labelled noisy");
  }

  void width() {
    const std::int64_t cases =
        store_
            .query(
                "SELECT count(*) FROM v_attempt t JOIN metric m ON m.attempt_id = t.attempt_id AND m.name = 'time' "
                "WHERE t.run_id = ?1 AND t.status = 'ok' AND (m.ci_high - m.ci_low) > ?2 * m.value",
                {id_, store::real_cell(2 * kWide)})
            .rows.at(0)[0]
            .integer;
    if (cases > 0) {
      say(Level::doubtful, "precision",
          fmt::format("{} with a 95 % interval wider than ±{:g} %", counted(cases, "time"), 100 * kWide),
          "print the intervals; call nothing faster by less");
    } else {
      fine("precision", fmt::format("every time is known to ±{:g} %", 100 * kWide));
    }
  }

  const store::Store& store_;
  const store::StoredRun& run_;
  store::Cell id_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> judge_for_publication(const store::Store& store, const store::StoredRun& run) {
  return Judge(store, run).findings();
}

}  // namespace syslab::cli
