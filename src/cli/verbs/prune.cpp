// prune: a new database with the runs that are worth keeping. The old one stays as it is: nothing is ever deleted.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/verbs/verbs.hpp"
#include "core/error.hpp"
#include "core/ids.hpp"
#include "core/text/text.hpp"
#include "session/selection.hpp"
#include "session/stored_case.hpp"
#include "session/stored_run.hpp"

namespace syslab::cli {
namespace {

namespace fs = std::filesystem;

struct Candidate {
  std::string uid, verb, started_at, label;
  bool pinned = false;
  double age_s = 0;
  bool kept = false;
  std::string needed_by = {};  // a kept run with comparisons that this one is part of
};

std::vector<Candidate> candidates(const store::Store& store) {
  const store::ResultSet found = store.query(
      "SELECT uid, verb, started_at, coalesce(label, ''), uid IN (SELECT run_uid FROM pin),"
      "       (julianday('now') - julianday(started_at)) * 86400.0"
      "  FROM run ORDER BY started_at DESC, uid DESC");
  std::vector<Candidate> runs;
  for (const auto& row : found.rows) {
    runs.push_back({.uid = row[0].text,
                    .verb = row[1].text,
                    .started_at = row[2].text,
                    .label = row[3].text,
                    .pinned = row[4].integer != 0,
                    .age_s = row[5].real});
  }
  return runs;
}

// Runs with comparisons that use attempts of another run, or that repeat another run's, each with that other run.
std::vector<std::pair<std::string, std::string>> needs(const store::Store& store) {
  const store::ResultSet found = store.query(
      "SELECT r.uid, o.uid FROM comparison c JOIN run r ON r.id = c.run_id"
      "  JOIN comparison_attempt x ON x.comparison_id = c.id JOIN attempt a ON a.id = x.attempt_id"
      "  JOIN run o ON o.id = a.run_id WHERE o.id <> r.id"
      " UNION SELECT r.uid, o.uid FROM comparison c JOIN run r ON r.id = c.run_id"
      "  JOIN comparison f ON f.uid = c.confirms JOIN run o ON o.id = f.run_id WHERE o.id <> r.id");
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const auto& row : found.rows) pairs.emplace_back(row[0].text, row[1].text);
  return pairs;
}

// A verdict needs its data: what a kept run's comparisons refer to is kept with it.
void keep_what_is_needed(std::vector<Candidate>& runs, const std::vector<std::string>& dropped,
                         const store::Store& store) {
  const auto pairs = needs(store);
  const auto find = [&](const std::string& uid) { return std::ranges::find(runs, uid, &Candidate::uid); };
  for (bool more = true; more;) {
    more = false;
    for (const auto& [run, needed] : pairs) {
      if (!find(run)->kept || find(needed)->kept) continue;
      if (std::ranges::find(dropped, needed) != dropped.end()) {
        throw Error(ErrorKind::usage, fmt::format("run {} is part of a comparison of run {}, which is kept; drop that "
                                                  "one, too, or neither",
                                                  needed, run));
      }
      find(needed)->kept = more = true;
      find(needed)->needed_by = run;
    }
  }
}

// `runs` is sorted newest first. Runs that are named, recent or pinned stay; without any rule all stay.
void choose(std::vector<Candidate>& runs, const PruneOptions& options, const store::Store& store) {
  std::vector<std::string> named, dropped;
  const auto resolve = [&](const std::vector<std::string>& from, std::vector<std::string>& into) {
    for (const std::string& text : from) {
      into.push_back(find_run_or_pin(store, text).uid);
    }
  };
  resolve(options.runs, named);
  resolve(options.drop, dropped);
  const bool any_rule = options.keep || !options.younger_than.empty() || !named.empty();
  const double youngest_s =
      options.younger_than.empty() ? 0 : Seconds(duration_option("--younger-than", options.younger_than)).count();
  std::size_t place = 0;
  for (Candidate& run : runs) {
    const bool is_named = std::ranges::find(named, run.uid) != named.end();
    const bool is_dropped = std::ranges::find(dropped, run.uid) != dropped.end();
    if (is_dropped && run.pinned) {
      throw Error(ErrorKind::usage, fmt::format("run {} is pinned; a pinned run is kept", run.uid));
    }
    if (is_dropped && is_named) {
      throw Error(ErrorKind::usage, fmt::format("run {} is in --run and in --drop; leave it out of one", run.uid));
    }
    run.kept = run.pinned ||
               (!is_dropped && (!any_rule || is_named || place < options.keep.value_or(0) || run.age_s < youngest_s));
    ++place;
  }
  keep_what_is_needed(runs, dropped, store);
}

// Written in the same folder under an unused name, and linked to its final name once complete, so that a file created
// there meanwhile is not overwritten.
void write_copy(const fs::path& source, const fs::path& target, const std::vector<std::string>& runs, bool samples) {
  const fs::path partial = fmt::format("{}.{}.partial", target.string(), new_uuid7());
  const auto clean = [&] {
    std::error_code ignored;
    for (const char* end : {"", "-wal", "-shm", "-journal"}) fs::remove(partial.string() + end, ignored);
  };
  try {
    {
      store::Store copy = store::Store::open(partial, store::Mode::create);
      copy.merge(source, {.runs = runs, .samples = samples, .keep_arrivals = true});
    }
    fs::create_hard_link(partial, target);
  } catch (...) {
    clean();
    throw;
  }
  clean();
}

Json candidate_json(const Candidate& run) {
  return {{"run", run.uid},       {"verb", run.verb}, {"started_at", run.started_at}, {"label", run.label},
          {"pinned", run.pinned}, {"kept", run.kept}, {"needed_by", run.needed_by}};
}

}  // namespace

Exit execute(const Context& context, const PruneOptions& options) {
  require_database(context);
  const fs::path source = context.global.database, target = options.output;
  if (!target.empty() && fs::symlink_status(target).type() != fs::file_type::not_found) {
    throw Error(ErrorKind::usage, fmt::format("'{}' is there already; prune writes a new file", target.string()));
  }
  std::vector<Candidate> runs;
  {
    const store::Store store = store::Store::open(source, store::Mode::read_only);
    runs = candidates(store);
    choose(runs, options, store);
  }
  std::vector<std::string> kept;
  Json list = Json::array();
  for (const Candidate& run : runs) {
    if (run.kept) kept.push_back(run.uid);
    list.push_back(candidate_json(run));
    if (!context.console.json()) {
      context.console.print(fmt::format("{}  {}  {:8} {}{}{}{}\n", run.kept ? "keep" : "drop", run.uid, run.verb,
                                        run.started_at, run.pinned ? "  pinned" : "",
                                        run.needed_by.empty() ? "" : "  part of a comparison of " + run.needed_by,
                                        run.label.empty() ? "" : "  " + run.label));
    }
  }
  if (!target.empty()) write_copy(source, target, kept, options.samples);
  if (context.console.json()) {
    context.console.print_document({{"runs", list}, {"output", options.output}});
  } else if (target.empty()) {
    context.console.note("nothing was written: --output FILE makes the new database");
  } else {
    context.console.print(fmt::format("{}: {} of {}, {} instead of {}\n", target.string(),
                                      counted(static_cast<std::int64_t>(kept.size()), "run"), runs.size(),
                                      format_bytes(fs::file_size(target)), format_bytes(fs::file_size(source))));
  }
  return Exit::well;
}

}  // namespace syslab::cli
