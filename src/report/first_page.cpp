#include "report/first_page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/contains.hpp"
#include "core/text.hpp"

namespace syslab::report {
namespace {

// "2 × NVIDIA H200 with AMD EPYC 9654 (12 runs) and Intel Core i7 (3 runs), 2026-11-21 to 2026-11-23"
std::string machines_of(const store::Store& store) {
  const store::ResultSet found = store.query(
      "WITH machine AS (SELECT environment_id, coalesce(cpu_model, 'a machine without a name') AS cpu, gpu_name,"
      " coalesce(json_array_length(facts, '$.gpu'), 0) AS gpus FROM v_environment)"
      "SELECT coalesce(iif(gpus > 1, gpus || ' × ', '') || gpu_name || ' with ', '') || cpu, count(*),"
      " min(min(substr(r.started_at, 1, 10))) OVER (), max(max(substr(r.started_at, 1, 10))) OVER ()"
      " FROM run r JOIN machine USING (environment_id) GROUP BY 1 ORDER BY 2 DESC, 1");
  if (found.rows.empty()) return {};
  std::vector<std::string> machines;
  for (const auto& row : found.rows)
    machines.push_back(fmt::format("{} ({})", row[0].text, counted(row[1].integer, "run")));
  const std::string first = found.rows[0][2].text, last = found.rows[0][3].text;
  return fmt::format("Measured on {}, {}.", fmt::join(machines, ", "), first == last ? first : first + " to " + last);
}

// Imported times of PyTorch's own are a peer's, nobody's solution.
bool holds_own_implementation(const store::Store& store) {
  return !store.query("SELECT 1 FROM v_newest WHERE is_mine AND implementation NOT GLOB 'pytorch_*' LIMIT 1")
              .rows.empty();
}

// "fsdp", or "nsys_profile (a, c)" where other parts have an answer.
std::string name_of_open(const Answered& problem) {
  if (static_cast<int>(problem.open.size()) == problem.parts) return problem.problem;
  return fmt::format("{} ({})", problem.problem, fmt::join(problem.open, ", "));
}

// " Not all measured: torch_compile (a). Most points are missing in flash_forward (1.9), leaderboard (1.7)." Problems
// that are open are named already.
std::string told(const Missing& missing, const std::vector<Answered>& problems) {
  constexpr double kWorthTelling = 0.05;
  constexpr std::size_t kMost = 3;
  const auto is_open = [&](const std::string& part) {
    return std::ranges::any_of(problems, [&](const Answered& one) {
      return !one.open.empty() && (part == one.problem || part.starts_with(one.problem + " ("));
    });
  };
  std::vector<std::string> incomplete;
  for (const std::string& part : missing.incomplete) {
    if (!is_open(part)) incomplete.push_back(part);
  }
  std::vector<Missing::Points> points;
  for (const Missing::Points& one : missing.points) {
    if (one.points >= kWorthTelling && !is_open(one.problem)) points.push_back(one);
  }
  std::ranges::stable_sort(points, std::ranges::greater{}, &Missing::Points::points);
  if (points.size() > kMost) points.resize(kMost);
  std::vector<std::string> most;
  for (const Missing::Points& one : points) most.push_back(fmt::format("{} ({:.1f})", one.problem, one.points));
  std::string text;
  if (!incomplete.empty()) text += fmt::format(" Not all measured: {}.", fmt::join(incomplete, ", "));
  if (!most.empty()) text += fmt::format(" Most points are missing in {}.", fmt::join(most, ", "));
  return text;
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
  if (const std::string machines = machines_of(store); !machines.empty()) about = about + marked(" " + machines);
  if (!holds_own_implementation(store)) {
    about = about + plain_text(" Reference solution, measured with syslab's own kernels.");
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
  std::string state = fmt::format("{} of {} have an answer{}.", answers, counted(parts, "part"),
                                  page.standing.empty() ? "" : "; " + page.standing);
  std::string missing = open.empty() ? "" : fmt::format(" Open: {}.", fmt::join(open, ", "));
  missing += told(page.missing, problems);
  if (!missing.empty()) {
    state += fmt::format("{} `syslab run --handout {}` measures what this machine can.", missing,
                         page.handout.empty() ? "2026" : page.handout);
  }
  std::vector<Block> blocks;
  blocks.emplace_back(Paragraph{std::move(about)});
  blocks.emplace_back(Paragraph{marked(state)});
  return blocks;
}

}  // namespace syslab::report
