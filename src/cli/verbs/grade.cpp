#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/verbs/verbs.hpp"
#include "core/error.hpp"
#include "core/files/user_file.hpp"
#include "core/text/printable.hpp"
#include "core/text/text.hpp"
#include "grade/batch.hpp"
#include "grade/board.hpp"
#include "grade/gradescope.hpp"
#include "grade/lists.hpp"
#include "grade/outlook.hpp"
#include "grade/own_process.hpp"
#include "grade/pages.hpp"
#include "grade/record.hpp"
#include "grade/rubric.hpp"
#include "grade/surroundings.hpp"
#include "plan/sides.hpp"
#include "report/table.hpp"
#include "runner/interruption.hpp"
#include "session/requeue.hpp"
#include "session/selection.hpp"
#include "session/session.hpp"
#include "submission/locked.hpp"
#include "worker/judged/python_probe.hpp"

namespace syslab::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostRubric = 1U << 20, kMostList = 16U << 20;
constexpr rlim_t kMostFile = rlim_t{1} << 30;  // that a submission writes

grade::Rubric rubric_of(const GradeOptions& options) {
  if (options.rubric.empty()) return grade::default_rubric(options.handout);
  grade::Rubric rubric = grade::parse_rubric(read_user_file(options.rubric, kMostRubric), options.rubric);
  if (rubric.handout != options.handout) {
    throw Error(ErrorKind::usage, fmt::format("{} is a rubric of hand-out {}, and --handout says {}", options.rubric,
                                              rubric.handout, options.handout));
  }
  return rubric;
}

// For nobody else's eyes.
void make_private(const fs::path& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  const int error = failed ? failed.value() : ::chmod(folder.c_str(), 0700) != 0 ? errno : 0;
  if (error != 0) {
    throw Error(kind_of_write_error(error), fmt::format("cannot make the folder '{}': {}", folder.string(),
                                                        std::generic_category().message(error)));
  }
}

void write(const fs::path& file, const std::string& text) { FileInMaking(file, text).place(); }

// Inside the folder of submissions the grades would be taken for one.
void refuse_inside(const fs::path& output, const fs::path& submissions) {
  const fs::path inner = fs::weakly_canonical(output), outer = fs::canonical(submissions);
  if (inner == outer || (inner.string() + "/").starts_with(outer.string() + "/")) {
    throw Error(ErrorKind::usage,
                fmt::format("the grades may not lie in '{}', where the submissions are", submissions.string()));
  }
}

// Of this folder: students keep their aliases from one grading to the next.
Key alias_key(const fs::path& output) {
  const fs::path file = output / ".work" / "aliases.key";
  if (!fs::exists(file)) write(file, std::string(bytes_of(random_key())));
  const std::string bytes = read_user_file(file, 4096);
  Key key;
  if (bytes.size() != key.size()) {
    throw Error(ErrorKind::usage,
                fmt::format("'{}' is no key of 32 bytes; without it, new aliases are made", file.string()));
  }
  std::copy(bytes.begin(), bytes.end(), key.begin());
  return key;
}

std::vector<grade::Board> boards_of(const fs::path& output, const grade::Rubric& rubric,
                                    const std::vector<grade::Graded>& all) {
  if (rubric.timed().empty()) return {};
  std::vector<std::string> ids;
  for (const grade::Graded& one : all) ids.push_back(one.id);
  return grade::boards_of(rubric, all, grade::aliases(ids, alias_key(output)));
}

struct Tables {
  store::ResultSet person, program;  // by audience
};

void write_tables(const fs::path& output, const std::string& name, const Tables& tables) {
  write(output / (name + ".csv"), report::write(tables.program, report::Format::csv));
  write(output / (name + ".md"), report::write(tables.person, report::Format::markdown));
  write(output / (name + ".html"), report::write(tables.person, report::Format::html));
}

void write_pages(const fs::path& output, const grade::Rubric& rubric, const std::vector<grade::Graded>& all,
                 const Tables& tables, const grade::PageOptions& pages, const std::vector<grade::Board>& boards) {
  write_tables(output, "grades", tables);
  write(output / "checks.csv",
        report::write(grade::checks_of(all, (output / grade::kStoreName).string()), report::Format::csv));
  const store::ResultSet suspicions = grade::suspicions_of(all);
  write(output / "suspicions.csv", report::write(suspicions, report::Format::csv));
  write(output / "suspicions.md", report::write(suspicions, report::Format::markdown));
  write(output / "junit.xml", grade::junit(rubric, all, pages));
  for (const grade::Graded& one : all) {
    make_private(output / "students" / one.id);
    write(output / "students" / one.id / "evidence.md", grade::evidence_page(rubric, one, pages, boards));
    write(output / "students" / one.id / "results.json", grade::gradescope_results(rubric, one, pages, boards));
  }
}

// What a rubric times must be one case of a rung that there is; better told before the batch than behind it.
void check_timed(const Context& context, const grade::Rubric& rubric) {
  for (const grade::Item& item : rubric.timed()) {
    SelectionOptions words;
    words.names = {item.experiment};
    words.assignments = item.at;
    plan::Sides sides;
    for (plan::SideSpec* side : {&sides.a, &sides.b}) {
      std::vector<std::string> same{"A:impl=" + item.reference};
      *side = plan::take_sides(same).a;
    }
    const plan::ComparisonPlan plan =
        plan::make_comparison_plan(context.registry, to_selection(context, words), std::move(sides), true);
    if (plan.points.size() != 1) {
      throw Error(ErrorKind::usage, fmt::format("the rubric times {}, which are {} cases; 'at' must leave one of them",
                                                grade::timing_name(item), plan.points.size()));
    }
  }
}

std::vector<std::string> timings_of(const grade::Rubric& rubric, const Json& record) {
  std::vector<std::string> lines;
  for (const grade::ProblemScore& problem : grade::score(rubric, record)) {
    for (const grade::ItemScore& item : problem.items) {
      if (item.item->is_timed()) lines.push_back(item.text());
    }
  }
  return lines;
}

std::string line_of(const Json& record, const grade::Rubric& rubric) {
  const grade::Graded one{"", record, grade::score(rubric, record)};
  if (!one.error().empty()) return one.error();
  const std::string note = grade::note_of(one);
  return fmt::format("{:g} of {:g} points{}", one.earned(), one.checked(), note.empty() ? "" : "; " + printable(note));
}

// What Gradescope does with each submission is what `grade` does here with these options.
Exit write_for_gradescope(const Context& context, const GradeOptions& options) {
  if (!options.submissions.empty() || !options.output.empty()) {
    throw Error(ErrorKind::usage, "--gradescope grades nothing: leave SUBMISSIONS and -o out");
  }
  if (options.wheel.empty()) {
    throw Error(ErrorKind::usage, "--gradescope needs --wheel out/release/syslab-*.whl, made by tools/release");
  }
  grade::Autograder autograder{
      .wheel = options.wheel,
      .rubric = options.rubric.empty() ? "" : read_user_file(options.rubric, kMostRubric),
      .options = {"--handout", options.handout, "--device", std::string(to_string(options.device)), "--seed",
                  std::to_string(options.seed), "--limit", options.limit, "--timeout", options.timeout,
                  "--memory-limit", options.memory_limit,
                  "--despite-open"}};  // one student at a time: what is open is told on its page
  if (options.cases > 0)
    autograder.options.insert(autograder.options.end(), {"--cases", std::to_string(options.cases)});
  grade::write_autograder(autograder, options.gradescope);
  context.console.note(fmt::format("{} is written: Gradescope's Configure Autograder takes it", options.gradescope));
  return Exit::well;
}

void refuse_mistakes(const GradeOptions& options) {
  if (!options.since.empty() && !grade::is_date(options.since)) {
    throw Error(ErrorKind::usage,
                fmt::format("--since '{}' is no date: 2026-05-03 or 2026-05-03T17:00", options.since));
  }
  duration_option("--limit", options.limit);
  duration_option("--timeout", options.timeout);
  bytes_option("--memory-limit", options.memory_limit);
}

// Everything but what is told while it goes on.
grade::BatchOptions batch_of(const GradeOptions& options, const grade::Rubric& rubric) {
  return {.submissions = options.submissions,
          .output = options.output,
          .handout = options.handout,
          .experiments = rubric.experiments(),
          .beyond = rubric.laws_beyond_handout(),
          .timed = rubric.timed(),
          .since = options.since,
          .retry = !options.no_retry,
          .seed = options.seed,
          .cases = options.cases,
          .jobs = options.jobs,
          .device = options.device,
          .limit = std::chrono::duration_cast<std::chrono::milliseconds>(duration_option("--limit", options.limit)),
          .timeout = options.timeout,
          .memory_limit = options.memory_limit,
          .ended = {},
          .timed_one = {},
          .interrupted = [] { return runner::Interruption::latest() != 0; }};
}

// What the batch can come to here.
std::vector<grade::Outlook> outlooks_of(const GradeOptions& options, const grade::Rubric& rubric,
                                        const std::vector<grade::Submission>& submissions) {
  grade::BatchOptions batch = batch_of(options, rubric);
  if (!fs::exists(batch.output)) batch.output.clear();
  const std::vector<Json> records = grade::look_at_all(submissions, batch);
  const std::optional<Lack> half = grade::lack_in_half(options.device);
  std::vector<grade::Outlook> all;
  for (std::size_t i = 0; i < submissions.size(); ++i) {
    all.push_back(grade::outlook_of(rubric, submissions[i].id, records[i], half));
  }
  return all;
}

// Error(usage) where most of the batch would be open, unless it is wanted all the same.
void refuse_mostly_open(const GradeOptions& options, const std::vector<grade::Outlook>& all) {
  const grade::BatchOutlook outlook = grade::outlook_of(all);
  if (!outlook.stops() || options.despite_open) return;
  const auto first = std::ranges::find_if(all, &grade::Outlook::is_mostly_open);
  throw Error(ErrorKind::usage,
              fmt::format("{}; expected a Python and GPUs by which most can be graded ({}: {})\n"
                          "try: --python FILE with the hand-out's torch, or --despite-open; --dry-run lists all",
                          outlook.text(), first->student, printable(first->why.front())));
}

Exit tell_outlook(const Context& context, const GradeOptions& options, const std::vector<grade::Outlook>& all) {
  const store::ResultSet table = grade::table_of(all);
  if (context.console.json()) {
    context.console.print(report::write(table, report::Format::json));
  } else {
    context.console.print(printable(report::write_aligned(table)));
    const grade::BatchOutlook outlook = grade::outlook_of(all);
    context.console.print(fmt::format("dry run under torch {}, the hand-out's is {}: {}; no law was searched\n",
                                      outlook.torch.empty() ? "?" : outlook.torch,
                                      submission::locked_of(options.handout).torch, outlook.text()));
  }
  refuse_mostly_open(options, all);
  return Exit::well;
}

std::vector<Json> check_and_tell(const Context& context, const GradeOptions& options, const grade::Rubric& rubric,
                                 const std::vector<grade::Submission>& submissions, std::size_t& done) {
  const Console& console = context.console;
  grade::BatchOptions batch = batch_of(options, rubric);
  batch.ended = [&](const grade::Submission& one, const Json& record, bool known) {
    console.note(printable(fmt::format("[{}/{}] {}: {}{}", ++done, submissions.size(), one.id, line_of(record, rubric),
                                       known ? " (as before)" : "")));
    if (const std::string left_out = grade::text_field(record, grade::kLeftOut); !left_out.empty()) {
      console.note(fmt::format("  left out: {}", left_out));
    }
    if (!one.earlier.empty()) {
      console.note(printable(
          fmt::format("  {} of {} hand-ins: the newest counts", one.path.filename().string(), one.earlier.size() + 1)));
    }
  };
  batch.timed_one = [&](const grade::Submission& one, const Json& record) {
    for (const std::string& line : timings_of(rubric, record)) {
      console.note(printable(fmt::format("{}: {}", one.id, line)));
    }
  };
  return grade::check_all(submissions, batch);
}

void note_what_to_look_at(const Context& context, const fs::path& output, const std::vector<grade::Graded>& all,
                          const std::vector<Json>& records) {
  context.console.note(fmt::format("{} in {}; a page each in {}", counted(std::int64_t(all.size()), "submission"),
                                   (output / "grades.html").string(), (output / "students").string()));
  const auto late = std::ranges::count_if(records, grade::ran_out_of_time);
  if (late > 0) {
    context.console.note(fmt::format("{} ran out of time; the next `grade` tries {} again, unless --no-retry is given",
                                     counted(late, "submission"), late == 1 ? "it" : "them"));
  }
  if (const auto killed = std::ranges::count_if(records, grade::may_be_killed_again); killed > 0) {
    context.console.note(fmt::format(
        "{} had a process killed by a signal, perhaps for lack of memory; the next `grade` tries {} once more",
        counted(killed, "submission"), killed == 1 ? "it" : "them"));
  }
  if (const auto suspicions = grade::suspicions_of(all).rows.size(); suspicions > 0) {
    context.console.note(fmt::format("{} to look at in {}; no points are taken for them",
                                     counted(static_cast<std::int64_t>(suspicions), "place"),
                                     (output / "suspicions.md").string()));
  }
}

// Before anything is checked: a wrong line is found now, and not when all is done.
void try_written(const grade::Rubric& rubric, const std::vector<grade::Submission>& submissions,
                 const std::string& written, const std::string& name) {
  const Json nothing = {{"error", "not checked yet"}};
  std::vector<grade::Graded> all;
  for (const grade::Submission& one : submissions) {
    all.push_back({one.id, nothing, grade::score(rubric, nothing), one.path.string()});
  }
  grade::add_written(all, written, name);
}

// As it was given, for a shell. A seed is left out: it is hidden from students, who may see this screen.
std::string same_command(const std::vector<std::string>& arguments) {
  std::string command = "syslab";
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool is_seed = i > 0 && arguments[i - 1] == "--seed";
    const bool joins_seed = arguments[i].starts_with("--seed=");
    command += " " + (is_seed ? "SEED" : joins_seed ? "--seed=SEED" : shell_word(arguments[i]));
  }
  return command;
}

Exit tell_interrupted(const Context& context, const GradeOptions& options, std::size_t ended, std::size_t all) {
  const std::string next = same_command(context.arguments);
  if (context.console.json()) {
    context.console.print_document({{"interrupted", true}, {"checked", ended}, {"submissions", all}, {"next", next}});
    return exit_of_missing();
  }
  const std::string kept = options.dry_run ? "a dry run keeps nothing"
                           : ended == 0
                               ? "no submission was checked"
                               : fmt::format("{} of {} checked, and kept in '{}'; no table was written", ended,
                                             counted(static_cast<std::int64_t>(all), "submission"), options.output);
  context.console.print(printable(fmt::format("interrupted: {}\nnext: {}\n", kept, next)));
  return exit_of_missing();
}

struct HandedIn {
  const std::vector<grade::Submission>& submissions;
  const std::string& written;                        // the CSV file of a person's points
  const std::map<std::string, std::string>& roster;  // names, by student
};

// From the list of submissions on; `ended` counts those that are checked.
Exit grade_all(const Context& context, const GradeOptions& options, const grade::Rubric& rubric, const HandedIn& batch,
               std::size_t& ended) {
  const auto& [submissions, written, roster] = batch;
  const std::vector<grade::Outlook> outlooks = outlooks_of(options, rubric, submissions);
  if (options.dry_run) return tell_outlook(context, options, outlooks);
  refuse_mostly_open(options, outlooks);
  const fs::path output = options.output;
  make_private(output);
  make_private(output / ".work");
  make_private(output / "students");
  const std::vector<Json> records = check_and_tell(context, options, rubric, submissions, ended);
  std::vector<grade::Graded> all;
  for (std::size_t i = 0; i < submissions.size(); ++i) {
    all.push_back({submissions[i].id, records[i], grade::score(rubric, records[i]), submissions[i].path.string()});
  }
  if (!options.written.empty()) grade::add_written(all, written, options.written);
  const Tables tables{grade::table_of(rubric, all, grade::Audience::person, roster),
                      grade::table_of(rubric, all, grade::Audience::program, roster)};
  const std::vector<grade::Board> boards = boards_of(output, rubric, all);
  write_pages(output, rubric, all, tables,
              {.cases = options.cases,
               .device = options.device,
               .seed_is_hidden = options.seed != 0,
               .walls_missing = missing_walls_in_words()},
              boards);
  if (!boards.empty()) {
    std::map<std::string, std::string> names;
    for (const grade::Graded& one : all) names[one.id] = roster.contains(one.id) ? roster.at(one.id) : one.id;
    const store::ResultSet ranked = grade::table_of(options.names ? grade::boards_of(rubric, all, names) : boards);
    write_tables(output, "leaderboard", {ranked, ranked});
  }
  context.console.print(context.console.json() ? report::write(tables.program, report::Format::json)
                        : context.console.output_is_terminal()
                            ? report::write_aligned(tables.person)
                            : report::write(tables.person, report::Format::markdown));
  note_what_to_look_at(context, output, all, records);
  return Exit::well;
}

}  // namespace

Exit execute(const Context& context, const GradeOptions& options) {
  worker::choose_python_interpreter(options.python);
  const grade::Rubric rubric = rubric_of(options);
  check_timed(context, rubric);
  refuse_mistakes(options);
  if (!options.gradescope.empty()) return write_for_gradescope(context, options);
  if (options.submissions.empty() || (options.output.empty() && !options.dry_run)) {
    throw Error(ErrorKind::usage,
                "say what is graded and where the grades go: syslab grade SUBMISSIONS --handout 2026 -o grades");
  }
  std::vector<std::string> left_out;
  const std::vector<grade::Submission> submissions = grade::submissions_in(options.submissions, &left_out);
  for (const std::string& one : left_out) context.console.note(printable("left out: " + one));
  if (!options.output.empty()) refuse_inside(options.output, options.submissions);
  const std::string written = options.written.empty() ? "" : read_user_file(options.written, kMostList);
  std::map<std::string, std::string> roster;
  for (const std::string& file : {options.roster, options.written}) {  // they name all students
    if (!file.empty()) hide_from_judged({fs::absolute(file).string()});
  }
  if (!options.roster.empty()) {
    roster = grade::parse_roster(read_user_file(options.roster, kMostList), options.roster);
  }
  if (!options.written.empty()) try_written(rubric, submissions, written, options.written);
  const runner::Interruption interruption;  // until the grades are written
  grade::require_torch();
  const rlimit most{kMostFile, kMostFile};
  ::setrlimit(RLIMIT_FSIZE, &most);
  warn_of_missing_walls(context.console);
  std::size_t ended = 0;
  try {
    return grade_all(context, options, rubric, {submissions, written, roster}, ended);
  } catch (const grade::Interrupted&) {
    return tell_interrupted(context, options, ended, submissions.size());
  }
}

}  // namespace syslab::cli
