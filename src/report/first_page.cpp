#include "report/first_page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/contains.hpp"
#include "core/text/text.hpp"
#include "report/deliverables.hpp"

namespace syslab::report {
namespace {

// "2 × NVIDIA H200 (AMD EPYC 9654, 96 cores), Intel Core i7, 8 cores, 2026-11-21 to 2026-11-23"; of several machines
// with the same kind of CPU "2 × NVIDIA H200 (32 cores), NVIDIA H100 (16 cores, flash_benchmarking alone), all with AMD
// EPYC 9654, …"
std::string machines_of(const store::Store& store) {
  const store::ResultSet found = store.query(
      "WITH machine AS (SELECT environment_id, coalesce(cpu_model, 'a machine without a name') AS model,"
      " (facts ->> '$.cpu.cores') || ' cores' AS cores, iif(json_array_length(facts, '$.gpu') > 1,"
      " json_array_length(facts, '$.gpu') || ' × ', '') || gpu_name AS gpus FROM v_environment)"
      "SELECT coalesce(gpus || ' (' || model || coalesce(', ' || cores, '') || ')', model || coalesce(', ' || cores, "
      "'')), count(*),"
      " min(min(substr(r.started_at, 1, 10))) OVER (), max(max(substr(r.started_at, 1, 10))) OVER (), min(model),"
      " coalesce(gpus || coalesce(' (' || cores || ')', ''), 'a CPU of ' || cores, ''),"
      " iif(count(DISTINCT experiment) = 1, max(experiment), NULL)"
      " FROM run r JOIN machine USING (environment_id)"
      " LEFT JOIN (SELECT DISTINCT p.run_id, c.experiment FROM plan_case p JOIN case_def c ON c.id = p.case_id"
      "            WHERE EXISTS (SELECT 1 FROM attempt a WHERE a.run_id = p.run_id AND a.plan_seq = p.seq)) ON run_id "
      "= r.id"
      " GROUP BY 1 ORDER BY count(DISTINCT r.id) DESC, 1");
  if (found.rows.empty()) return {};
  const std::string model = found.rows[0][4].text;
  const bool alike = found.rows.size() > 1 && std::ranges::all_of(found.rows, [&](const auto& row) {
                       return row[4].text == model && !row[5].text.empty();
                     });
  std::vector<std::string> machines;
  for (const auto& row : found.rows) {
    std::string machine = row[alike ? 5 : 0].text;
    // What only one experiment ran on says nothing of the others.
    if (found.rows.size() > 1 && row[6].type == store::Cell::Type::text) {
      const std::string alone = "`" + row[6].text + "` alone)";
      if (machine.ends_with(')')) {
        machine.replace(machine.size() - 1, 1, ", " + alone);
      } else {
        machine += " (" + alone;
      }
    }
    machines.push_back(std::move(machine));
  }
  if (alike) machines.push_back("all with " + model);
  const std::string first = found.rows[0][2].text, last = found.rows[0][3].text;
  return fmt::format("Measured on {}, {}.", fmt::join(machines, ", "), first == last ? first : first + " to " + last);
}

// " 2 of 5 runs are self-reported.", or nothing.
std::string self_reported(const store::Store& store) {
  const std::vector<store::Cell> row =
      store.query("SELECT count(*) FILTER (WHERE NOT measured_here), count(*) FROM v_run").rows.at(0);
  if (row[0].integer == 0) return {};
  return fmt::format(" {} of {} {} self-reported.", row[0].integer, counted(row[1].integer, "run"),
                     row[0].integer == 1 ? "is" : "are");
}

// Imported times of PyTorch's own are a peer's, nobody's solution.
bool holds_own_implementation(const store::Store& store) {
  return !store.query("SELECT 1 FROM v_newest WHERE is_mine AND implementation NOT GLOB 'pytorch_*' LIMIT 1")
              .rows.empty();
}

// As they wish to be called (--author), of what was handed in.
std::string authors_of(const store::Store& store) {
  std::vector<std::string> authors;
  for (const auto& row :
       store.query("SELECT DISTINCT author FROM v_newest WHERE is_mine AND author <> implementation ORDER BY author")
           .rows) {
    authors.push_back(row[0].text);
  }
  return fmt::format("{}", fmt::join(authors, ", "));
}

// "fsdp", or "nsys_profile (a, c)" where other parts have an answer.
std::string name_of_open(const Answered& problem) {
  if (static_cast<int>(problem.open.size()) == problem.parts) return problem.problem;
  return fmt::format("{} ({})", problem.problem, fmt::join(problem.open, ", "));
}

std::string title_of(const std::string& problem) {
  const auto found = std::ranges::find(handout_problems(), problem, &Problem::id);
  return found == handout_problems().end() ? problem : found->title;
}

// "Leaderboard (1 of 2), FSDP (4 of 9), less in 3 more problems": by what they are worth. Problems that are open are
// named already.
std::string told(std::vector<Missing> missing, const std::vector<Answered>& problems) {
  constexpr double kWorthTelling = 0.05;
  constexpr std::size_t kMost = 3;
  std::erase_if(missing, [&](const Missing& one) {
    const auto is_open = [&](const Answered& other) { return other.problem == one.problem && !other.open.empty(); };
    return one.cases == 0 || one.points < kWorthTelling || std::ranges::any_of(problems, is_open);
  });
  if (missing.empty()) return {};
  std::ranges::stable_sort(missing, std::ranges::greater{}, &Missing::points);
  const std::size_t others = missing.size() - std::min(missing.size(), kMost);
  missing.resize(missing.size() - others);
  std::vector<std::string> most;
  for (const Missing& one : missing) {
    most.push_back(fmt::format("{} ({} of {} cases)", title_of(one.problem), one.cases, one.of));
  }
  if (others > 0) most.push_back(fmt::format("less in {}", counted(static_cast<std::int64_t>(others), "more problem")));
  return fmt::format("{}", fmt::join(most, ", "));
}

}  // namespace

std::string only_machine(const store::Store& store) {
  // Runs of a CPU alone say so themselves: they take no GPU's name from the others.
  const store::ResultSet found = store.query(
      "SELECT DISTINCT coalesce(gpu_name, cpu_model, '') FROM v_run"
      " WHERE gpu_name IS NOT NULL OR NOT EXISTS (SELECT 1 FROM v_run WHERE gpu_name IS NOT NULL)");
  return found.rows.size() == 1 ? found.rows.front().front().text : std::string();
}

std::vector<GpuResults> results_of_gpus(const store::Store& store) {
  std::vector<GpuResults> results;
  for (const auto& row :
       store
           .query("SELECT experiment, device, count(*) FROM v_measured WHERE is_good AND device = gpu_name"
                  " GROUP BY experiment, device")
           .rows) {
    results.push_back({row[0].text, row[1].text, row[2].integer});
  }
  return results;
}

std::vector<std::string> gpus_of(const std::vector<GpuResults>& results, const std::vector<std::string>& experiments) {
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> counts;  // of these experiments, of all
  for (const GpuResults& one : results) {
    auto& [of_these, of_all] = counts[one.gpu];
    if (contains(experiments, one.experiment)) of_these += one.count;
    of_all += one.count;
  }
  std::vector<std::string> gpus;
  for (const auto& [gpu, count] : counts) gpus.push_back(gpu);
  std::ranges::stable_sort(gpus, [&](const std::string& a, const std::string& b) { return counts[a] > counts[b]; });
  return gpus;
}

std::vector<Block> first_page(const store::Store& store, const FirstPage& page, const std::vector<Answered>& problems) {
  const std::string handout = page.handout.empty() ? "2025 and 2026" : page.handout;
  Text about = plain_text(fmt::format("Hand-out of {}.", handout));
  if (const std::string machines = machines_of(store); !machines.empty())
    about = about + marked(" " + machines) + plain_text(self_reported(store));
  if (!holds_own_implementation(store)) {
    about = about + plain_text(" Reference solution, measured with syslab's own kernels.");
  } else if (const std::string by = authors_of(store); !by.empty()) {
    about = about + plain_text(fmt::format(" Solution of {}.", by));
  }
  if (!page.appendix.empty()) {
    about = about + plain_text(" All rows, figures, property checks and how they were measured: ") +
            Text{{Style::link, "appendix", page.appendix}} + plain_text(".");
  }
  int parts = 0, answers = 0;
  std::vector<std::string> open;
  for (const Answered& one : problems) {
    parts += one.parts;
    answers += one.parts - static_cast<int>(one.open.size());
    if (!one.open.empty()) open.push_back(name_of_open(one));
  }
  const std::string whole = answers == parts ? fmt::format("All {}", counted(parts, "part"))
                                             : fmt::format("{} of {}", answers, counted(parts, "part"));
  std::string state = fmt::format("{} have an answer.", whole);
  if (!open.empty()) state += fmt::format(" Open: {}.", fmt::join(open, ", "));
  const std::string missing = told(page.missing, problems);
  if (!page.standing.empty()) {
    const std::string which = missing.empty() ? "" : ": " + missing;
    state += fmt::format(" Measurements not made are worth {}{}.", page.standing, which);
  }
  if (!open.empty() || !missing.empty()) {
    const std::string year = page.handout.empty() ? "2026" : page.handout;
    state += fmt::format(" `syslab run --handout {}` makes those that a machine can.", year);
  }
  std::vector<Block> blocks;
  blocks.emplace_back(Paragraph{std::move(about)});
  blocks.emplace_back(Paragraph{marked(state)});
  return blocks;
}

}  // namespace syslab::report
