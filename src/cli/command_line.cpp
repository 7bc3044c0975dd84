#include "cli/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>

#include "core/build_info.hpp"
#include "core/error.hpp"
#include "core/text.hpp"

namespace syslab::cli {
namespace {

constexpr const char* kMore = "More";
constexpr const char* kHiddenVerb = "worker";
constexpr const char* kDelta = "The smallest change that counts (default 1 %, 2 % under 20 µs)";
constexpr const char* kExamples =
    "Examples:\n"
    "  syslab run all --preset smoke              every experiment in seconds, checked and timed\n"
    "  syslab run flash_forward -a seq=128,1024 -a head_dim=64\n"
    "  syslab check flash_forward --mine me=kernel.so\n"
    "  syslab compare flash_forward A:impl=naive B:impl=flash_tiled -a seq=512\n"
    "  syslab report flash_forward\n"
    "`syslab VERB --help` tells more; `syslab list` shows the experiments.";

class Grammar {
 public:
  Grammar() : app_("syslab: the systems side of language-model training as checked, timed, stored experiments") {
    app_.name("syslab");
    app_.footer(kExamples);
    app_.require_subcommand(0, 1);
    app_.fallthrough();
    app_.set_version_flag("--version", version());
    auto& global = line_.global;
    app_.add_option("--db", global.database, "Database file (default syslab.db, or SYSLAB_DB)")
        ->envname("SYSLAB_DB")
        ->type_name("FILE");
    app_.add_flag("--json", global.json, "Results as JSON on standard output");
    app_.add_flag("--quiet", global.quiet, "No progress and no summary");
    one_of(app_.add_option("--color", color_, "auto (default), always, never"), "WHEN", {"auto", "always", "never"});
    headlines();
    more();
  }

  std::variant<CommandLine, Information> parse(std::vector<std::string> arguments) {
    if (!arguments.empty() && arguments[0] == "help") {  // `help run` is what many type first
      arguments.erase(arguments.begin());
      arguments.push_back("--help");
    }
    refuse_unknown_verb(arguments);
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
    try {
      app_.parse(arguments);
    } catch (const CLI::CallForVersion&) {
      return Information{version() + "\n"};
    } catch (const CLI::CallForHelp&) {
      return Information{help()};
    } catch (const CLI::CallForAllHelp&) {
      return Information{help()};
    } catch (const CLI::ExtrasError& error) {
      throw Error(ErrorKind::usage, unknown_argument(error.what()));
    } catch (const CLI::ParseError& error) {
      throw Error(ErrorKind::usage, fmt::format("{}{}", error.what(), see_help()));
    }
    if (app_.get_subcommands().empty()) return Information{help()};
    line_.global.color = color_ == "always" ? Color::always : color_ == "never" ? Color::never : Color::automatic;
    run_.laws = laws_ == "none" ? Laws::none : laws_ == "full" ? Laws::full : Laws::quick;
    line_.verb = chosen(app_.get_subcommands().front()->get_name());
    return line_;
  }

 private:
  static std::string version() {
    const BuildInfo& info = build_info();
    return fmt::format("syslab {} ({}{})", info.version, info.git_sha.substr(0, 12),
                       info.git_dirty ? ", modified" : "");
  }

  CLI::App& verb(const char* name, const char* help, const char* group = "Verbs") {
    CLI::App* made = app_.add_subcommand(name, help);
    made->group(group);
    made->footer("Every verb also takes --db FILE, --json, --quiet and --color WHEN; see `syslab --help`.");
    return *made;
  }

  // CLI11's own check of a range would print the largest double.
  static std::string whole_number(const std::string& text) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc::result_out_of_range) return fmt::format("'{}' is more than {}", text, UINT64_MAX);
    const bool whole = error == std::errc{} && end == text.data() + text.size();
    return whole ? "" : fmt::format("'{}' is no whole number from 0 on", text);
  }

  static void one_of(CLI::Option* option, const char* type, const std::vector<std::string>& words) {
    option->type_name(type)->check(CLI::IsMember(words).description(""));
  }

  static void many(CLI::App& app, const char* name, const char* type, std::vector<std::string>& values,
                   const char* help) {
    app.add_option(name, values, help)->allow_extra_args(false)->take_all()->type_name(type);
  }

  static void device(CLI::App& app, SelectionOptions& options) {
    many(app, "--device", "WHICH", options.devices,
         "cpu, cuda or both: implementations that run there (default: the GPU where there is one and something runs on "
         "it, else the CPU)");
  }

  static void selection(CLI::App& app, SelectionOptions& options) {
    app.add_option("NAME", options.names, "Experiments: ids, globs, tag:NAME, comma lists, all")
        ->required()
        ->type_name("");
    many(app, "--impl", "NAME", options.implementations, "Implementations, globs (default: all of the device)");
    device(app, options);
    many(app, "--mine", "NAME=FILE", options.mine, "Your own: NAME=kernel.so or NAME=flash.py:Class");
    app.add_option("--author", options.author, "Alias under which --mine is handed in (default: its NAME)")
        ->envname("SYSLAB_AUTHOR")
        ->type_name("ALIAS");
    app.add_option("--preset", options.preset, "smoke, laptop, paper: a named choice of axis values")
        ->type_name("NAME");
    app.add_option("--handout", options.handout,
                   "Only experiments that this hand-out poses, and its words (model=xl): 2025 or 2026")
        ->type_name("YEAR");
    app.add_option("--seed", options.seed, "Root of all random inputs (default 0)")
        ->type_name("NUMBER")
        ->check(whole_number, "");
  }

  static void shard(CLI::App& app, SelectionOptions& options) {
    app.add_option("--shard", options.shard,
                   "One part of several of the cases: 3/8 is the third of eight, a database each, which merge unites")
        ->type_name("I/K");
  }

  static void axes(CLI::App& app, SelectionOptions& options) {
    many(app, "-a,--axis", "AXIS=VALUES", options.assignments,
         "axis=v1,v2 | axis=lo:hi:step | axis=pow2:lo:hi (exponents); impl, device and world_size (ranks) are axes, "
         "too");
  }

  template <typename Options>
  static void limits(CLI::App& app, Options& options) {
    app.add_option("--timeout", options.timeout, "Of one case: 30s, 5m (default 10m)")->type_name("DURATION");
    app.add_option("--label", options.label, "A name for this run, for people")->type_name("TEXT");
  }

  static void memory_limit(CLI::App& app, std::string& option) {
    app.add_option("--memory-limit", option, "Of one case beyond the worker's own: 2Gi (default none)")
        ->type_name("SIZE");
  }

  static void measuring(CLI::App& app, MeasuringOptions& options) {
    app.add_option(
           "--protocol", options.protocol,
           "How to measure: kernel, quick, … (docs/how-we-measure.md; default: quick for smoke, else the experiment's)")
        ->type_name("NAME");
    app.add_option("--launches", options.launches, "Fresh processes a case, 1 to 100 (default: the protocol's)")
        ->type_name("NUMBER")
        ->check(CLI::Range(1, 100).description(""));
    memory_limit(app, options.memory_limit);
    app.add_flag("--try-oom", options.try_oom, "Run cases, too, whose memory is predicted not to suffice");
  }

  static void budget(CLI::App& app, std::string& option, const char* help) {
    app.add_option("--budget", option, help)->type_name("DURATION");
  }

  static void contract(CLI::App& app, std::optional<std::string>& option) {
    one_of(app.add_option("--contract", option,
                          "What is promised: handout or full (default: full for ours; of --mine check searches both, "
                          "and handout decides)"),
           "WHICH", {"handout", "full"});
  }

  // Options of the verbs that come to verdicts.
  template <typename Options>
  static void judging(CLI::App& app, Options& options) {
    app.add_option(
           "--launches", options.launches,
           "Fresh processes a side, at least 3 (default: 12 to 20, as many as it takes to know the ratio to ±0.25 %)")
        ->type_name("NUMBER")
        ->check(CLI::Range(3, 1000).description(""));
    app.add_option("--budget", options.budget, "Time for all comparisons together: 5m")->type_name("DURATION");
    app.add_option("--delta", options.delta, kDelta)->type_name("PERCENT");
    app.add_option("--timeout", options.timeout, "Of one launch: 30s, 5m (default 10m)")->type_name("DURATION");
    app.add_option("--label", options.label, "A name for this run, for people")->type_name("TEXT");
  }

  void comparison(CLI::App& app) {
    app.add_option("NAME A:… B:…", compare_.selection.names,
                   "Experiments, then the sides: A:axis=value,… with impl, build=SYSLAB or mine=NAME among the axes. "
                   "Axes that no side names are a sweep")
        ->required()
        ->type_name("");
    axes(app, compare_.selection);
    many(app, "--impl", "NAME", compare_.selection.implementations, "Implementations of both sides, globs");
    device(app, compare_.selection);
    many(app, "--mine", "NAME=FILE", compare_.selection.mine, "Your own: NAME=kernel.so or NAME=flash.py:Class");
    app.add_option("--preset", compare_.selection.preset, "smoke, laptop, paper: a named choice of axis values")
        ->type_name("NAME");
    app.add_option("--seed", compare_.selection.seed, "Root of all random inputs (default 0)")
        ->type_name("NUMBER")
        ->check(whole_number, "");
    judging(app, compare_);
    app.add_option("--detect", compare_.detect,
                   "After a short pilot, say how long a decision at this change takes; goes on to decide only with "
                   "--budget or --launches")
        ->type_name("PERCENT");
    app.add_flag("--same-on-purpose", compare_.same_on_purpose,
                 "Allow identical sides: what does this machine make of them?");
    app.add_option("--protocol", compare_.protocol,
                   "How each side is warmed and timed (default: quick for smoke, else the experiment's own)")
        ->type_name("NAME");
    one_of(app.add_option("--data", compare_.data, "Distribution of inputs: normal (default), uniform, zeros, ramp"),
           "WHICH", {"normal", "uniform", "zeros", "ramp"});
    app.add_option("--memory-limit", compare_.memory_limit, "Of one side beyond the worker's own: 2Gi (default none)")
        ->type_name("SIZE");
  }

  static void output(CLI::App& app, std::string& format, std::string& file) {
    one_of(app.add_option("--to", format, "md, tex, html, csv or json (default: as FILE ends, else md)"), "FORMAT",
           {"md", "tex", "html", "csv", "json"});
    app.add_option("-o,--output", file, "File to write (default: standard output)")->type_name("FILE");
  }

  void headlines() {
    CLI::App& check = verb("check", "Search the laws of experiments for counterexamples");
    selection(check, check_.selection);
    many(check, "-a,--axis", "AXIS=VALUES", check_.selection.assignments,
         "What --mine promises: dtype, head_dim, causal, multiple_of, max_seq, square (seq_q == seq_k), deterministic");
    shard(check, check_.selection);
    contract(check, check_.contract);
    check.add_option("--cases", check_.cases, "Tries a law (default 100)")
        ->type_name("NUMBER")
        ->check(CLI::Range(1, 1'000'000).description(""));
    limits(check, check_);
    memory_limit(check, check_.memory_limit);

    CLI::App& run = verb("run", "Check, then measure, and store everything");
    selection(run, run_.selection);
    axes(run, run_.selection);
    shard(run, run_.selection);
    one_of(run.add_option("--laws", laws_, "Laws before the cases: none, quick (default), full"), "HOW",
           {"none", "quick", "full"});
    contract(run, run_.contract);
    measuring(run, run_.measuring);
    one_of(run.add_option("--data", run_.data, "Distribution of inputs: normal (default), uniform, zeros, ramp"),
           "WHICH", {"normal", "uniform", "zeros", "ramp"});
    one_of(
        run.add_option(
            "--isolation", run_.isolation,
            "case: a process each (default on the CPU); reuse: one takes cases while they end well (default on a GPU)"),
        "HOW", {"case", "reuse"});
    budget(run, run_.budget,
           "Of the whole run: a case that will not fit does not start; resume finishes (default none)");
    limits(run, run_);

    CLI::App& compare = verb("compare", "Measure two sides again, in turns, and say which is faster");
    comparison(compare);

    CLI::App& report = verb("report", "Tables and sentences from what is stored");
    report.add_option("NAME", report_.experiments, "Experiments (default: all)")->type_name("");
    one_of(report.add_option("--handout", report_.handout,
                             "2025 or 2026 (default, which names what the store has of 2025 alone)"),
           "YEAR", {"2025", "2026"});
    report.add_flag("--leaderboard", report_.leaderboard, "Only the ranking of implementations, case by case");
    report.add_flag("!--no-answers", report_.answers,
                    "Leave out sentences made from the store; an empty place stands for each answer");
    report.add_flag("!--no-figures", report_.figures, "Tables and sentences only");
    output(report, report_.format, report_.output);
  }

  void more() {
    CLI::App& list = verb("list", "Experiments, one line each", kMore);
    list.add_option("PATTERN", list_.patterns, "Ids, globs, tag:NAME (default: all)")->type_name("");
    list.add_option("--tag", list_.tag, "Only those with this tag");
    list.add_option("--handout", list_.handout, "Only those that this hand-out poses: 2025 or 2026");

    CLI::App& describe = verb("describe", "One experiment: its question, axes, implementations, laws, metrics", kMore);
    describe.add_option("NAME", describe_.name, "Experiment")->required()->type_name("");

    CLI::App& plan = verb("plan", "The exact cases that run would make; runs nothing", kMore);
    selection(plan, plan_.selection);
    axes(plan, plan_.selection);
    shard(plan, plan_.selection);
    measuring(plan, plan_.measuring);

    CLI::App& buckets = verb("plan-buckets", "The best gradient buckets for somebody's model, from its trace", kMore);
    buckets
        .add_option("--trace", plan_buckets_.trace,
                    "When each gradient is final: CSV, JSON or a Chrome trace (docs/planning-buckets.md)")
        ->required()
        ->type_name("FILE");
    buckets
        .add_option("--curve", plan_buckets_.curve,
                    "Database with measurements of distributed_communication_single_node (default: --db)")
        ->type_name("FILE");
    buckets.add_option("--impl", plan_buckets_.implementation, "Of these measurements, where there are several: nccl")
        ->type_name("NAME");
    buckets.add_option("--ranks", plan_buckets_.ranks, "Likewise: 2")->type_name("NUMBER");
    CLI::Option* alpha = buckets
                             .add_option("--alpha", plan_buckets_.alpha,
                                         "In place of measurements: what an all-reduce takes at least, 34us")
                             ->type_name("DURATION");
    CLI::Option* beta =
        buckets.add_option("--beta", plan_buckets_.beta, "and its bytes over time beyond that, 313GB/s")
            ->type_name("RATE");
    alpha->needs(beta);
    beta->needs(alpha);

    CLI::App& resume = verb("resume", "Finish what is missing of a run", kMore);
    resume.add_option("RUN", resume_.run, "uid, its beginning, or latest (default)")->type_name("");
    resume.add_flag("--failed", resume_.failed, "Try failed cases again, too");
    resume.add_flag("--try-oom", resume_.try_oom,
                    "Run cases, too, that ran out of memory or whose memory was predicted not to suffice");
    budget(resume, resume_.budget, "Time that this resumption may take, as of run (default none)");
    resume.add_flag("--force", resume_.force, "Though the run was made by another build: its results will be mixed");

    CLI::App& replay = verb("replay", "Run a stored counterexample again", kMore);
    replay.add_option("CHECK", replay_.check, "uid of a check, or its beginning")->required()->type_name("");

    CLI::App& diff = verb("diff", "Two stored runs; weaker than compare, and says so", kMore);
    diff.add_option("RUN_A", diff_.a, "uid, its beginning or ending, latest, or a pin")->required()->type_name("");
    diff.add_option("RUN_B", diff_.b, "likewise")->required()->type_name("");
    diff.add_option("--delta", diff_.delta, kDelta)->type_name("PERCENT");

    CLI::App& pin = verb("pin", "Give a run a name that stays; without arguments, list the names", kMore);
    pin.add_option("NAME", pin_.name, "A word: baseline, v1.2")->type_name("");
    pin.add_option("RUN", pin_.run, "uid, its beginning or ending, or latest")->type_name("");
    pin.add_option("--note", pin_.note, "For people")->type_name("TEXT");

    CLI::App& gate = verb("gate", "Measure a pinned run's cases again: has anything become slower or wrong?", kMore);
    gate.add_option("NAME", gate_.names, "Experiments of the pinned run (default: all)")->type_name("");
    gate.add_option("--against", gate_.against, "The pin, or a run")->required()->type_name("PIN");
    gate.add_option("--build", gate_.build,
                    "The syslab that made the pinned run: both are measured in turns (else against stored values)")
        ->type_name("SYSLAB");
    judging(gate, gate_);
    gate.get_option("--launches")
        ->description(
            "Fresh processes a side, at least 3 (default: with --build 12 to 20, as many as it takes to know the ratio "
            "to "
            "±0.25 %; else 5)");
    gate.get_option("--budget")->description("With --build: time for all comparisons together, but for confirming: 5m");

    CLI::App& query = verb("query", "SQL on the database, read-only", kMore);
    query.add_option("SQL", query_.sql, "A SELECT, or a file that ends in .sql")->required()->type_name("");
    one_of(query.add_option("--to", query_.format,
                            "md, tex, html, csv or json (default: as FILE ends, else md); raw: the one value that the "
                            "SELECT gives, as it is, an artifact's content perhaps"),
           "FORMAT", {"md", "tex", "html", "csv", "json", "raw"});
    query.add_option("-o,--output", query_.output, "File to write (default: standard output)")->type_name("FILE");

    CLI::App& merge = verb("merge", "Add what other databases hold", kMore);
    merge.add_option("DB", merge_.databases, "Database files")->required()->type_name("");
    merge.add_flag("--trust", merge_.trust, "Their runs count as measured here: shards of one sweep, not a hand-in");

    CLI::App& import = verb("import", "Take in results that another program measured (JSON lines)", kMore);
    import.add_option("FILE", import_.files, "Logs of the worker protocol, an object a line")
        ->required()
        ->type_name("");
    import.add_option("--author", import_.author, "Alias of whoever hands them in")->type_name("ALIAS");

    CLI::App& prune = verb("prune", "A smaller copy of the database; the old one stays", kMore);
    prune.add_option("-o,--output", prune_.output, "The new file; without it prune only tells")->type_name("FILE");
    prune.add_option("--keep", prune_.keep, "The newest N runs")->type_name("N")->check(whole_number, "");
    prune.add_option("--younger-than", prune_.younger_than, "Runs of the last 36h, 90d")->type_name("DURATION");
    many(prune, "--run", "RUN", prune_.runs, "This run, too");
    many(prune, "--drop", "RUN", prune_.drop, "Not this run");
    prune.add_flag("!--no-samples", prune_.samples, "Without raw samples: medians and intervals stay");

    verb("env", "Facts about this machine and this build", kMore);
    CLI::App& doctor =
        verb("doctor", "Is this machine fit to measure, a run fit to publish? Findings and remedies", kMore);
    doctor.add_option("RUN", doctor_.run, "Judge this stored run instead: uid, its beginning or ending, latest")
        ->type_name("");
    doctor.add_flag("--noise", doctor_.noise, "Measure what this machine calls different in identical code");
    doctor.add_option("--budget", doctor_.budget, "Of --noise (default 1m)")->type_name("DURATION");
    CLI::App& worker = verb(kHiddenVerb, "One case's process; speaks the worker protocol", "");
    worker.add_flag("--probe", worker_.probe, "Say which GPUs CUDA can use, as JSON, and end");
  }

  VerbOptions chosen(const std::string& name) const {
    if (name == "check") return check_;
    if (name == "run") return run_;
    if (name == "compare") return compare_;
    if (name == "diff") return diff_;
    if (name == "pin") return pin_;
    if (name == "gate") return gate_;
    if (name == "report") return report_;
    if (name == "list") return list_;
    if (name == "describe") return describe_;
    if (name == "plan") return plan_;
    if (name == "plan-buckets") return plan_buckets_;
    if (name == "resume") return resume_;
    if (name == "replay") return replay_;
    if (name == "query") return query_;
    if (name == "merge") return merge_;
    if (name == "import") return import_;
    if (name == "prune") return prune_;
    if (name == "env") return EnvOptions{};
    if (name == "doctor") return doctor_;
    return worker_;
  }

  std::vector<std::string> verbs() const {
    std::vector<std::string> names;
    for (const CLI::App* sub : app_.get_subcommands([](const CLI::App*) { return true; })) {
      if (!sub->get_group().empty()) names.push_back(sub->get_name());
    }
    return names;
  }

  // The first word that is neither an option nor a global option's value must be a verb.
  void refuse_unknown_verb(const std::vector<std::string>& arguments) const {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i] == "--db" || arguments[i] == "--color") {
        ++i;
        continue;
      }
      if (arguments[i].empty() || arguments[i][0] != '-') {
        const std::vector<std::string> known = verbs();
        if (arguments[i] == kHiddenVerb || std::find(known.begin(), known.end(), arguments[i]) != known.end()) return;
        throw Error(ErrorKind::usage, unknown_name("verb", arguments[i], known));
      }
    }
  }

  const CLI::App& current() const {
    const auto parsed = app_.get_subcommands();
    return parsed.empty() ? static_cast<const CLI::App&>(app_) : *parsed.front();
  }

  std::string see_help() const {
    const CLI::App& app = current();
    return fmt::format("; see `syslab{} --help`", &app == &app_ ? "" : " " + app.get_name());
  }

  std::string unknown_argument(const std::string& otherwise) const {
    for (const std::string& word : app_.remaining(true)) {
      if (word.empty() || word[0] != '-') continue;
      std::vector<std::string> known;
      for (const CLI::App* app : {&current(), static_cast<const CLI::App*>(&app_)}) {
        for (const CLI::Option* option : app->get_options()) {
          for (const std::string& name : option->get_lnames()) {
            if (std::find(known.begin(), known.end(), "--" + name) == known.end()) known.push_back("--" + name);
          }
        }
      }
      return unknown_name("option", word.substr(0, word.find('=')), known);
    }
    return otherwise + see_help();
  }

  std::string help() const { return app_.help(); }  // of the chosen verb, if one is

  CLI::App app_;
  CommandLine line_;
  std::string color_ = "auto", laws_ = "quick";
  CheckOptions check_;
  RunOptions run_;
  CompareOptions compare_;
  DiffOptions diff_;
  PinOptions pin_;
  GateOptions gate_;
  DoctorOptions doctor_;
  ReportOptions report_;
  ListOptions list_;
  DescribeOptions describe_;
  PlanOptions plan_;
  PlanBucketsOptions plan_buckets_;
  ResumeOptions resume_;
  ReplayOptions replay_;
  QueryOptions query_;
  MergeOptions merge_;
  ImportOptions import_;
  PruneOptions prune_;
  WorkerOptions worker_;
};

}  // namespace

std::variant<CommandLine, Information> parse_command_line(const std::vector<std::string>& arguments) {
  return Grammar().parse(arguments);
}

}  // namespace syslab::cli
