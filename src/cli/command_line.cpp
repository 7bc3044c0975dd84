#include "cli/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <map>
#include <memory>

#include "cli/grammar/parts.hpp"
#include "cli/grammar/verbs.hpp"
#include "core/build_info.hpp"
#include "core/error.hpp"
#include "core/text/text.hpp"

namespace syslab::cli {
namespace {

constexpr const char* kHeadlines = "Verbs";
constexpr const char* kMore = "More";
constexpr const char* kHiddenVerb = "worker";
constexpr const char* kHidden = "";
constexpr const char* kGlobal =
    "Every verb also takes --db FILE, --json, --quiet and --color WHEN; see `syslab --help`.";
constexpr const char* kExamples =
    "Examples:\n"
    "  syslab run all --preset smoke              every experiment in seconds, checked and timed\n"
    "  syslab run flash_forward -a seq=128,1024 -a head_dim=64\n"
    "  syslab check flash_forward --mine me=kernel.so\n"
    "  syslab compare flash_forward A:impl=naive B:impl=flash_tiled -a seq=512\n"
    "  syslab report flash_forward\n"
    "`syslab VERB --help` tells more; `syslab list` shows the experiments.";

std::string version() {
  const BuildInfo& info = build_info();
  return fmt::format("syslab {} ({}{})", info.version, info.git_sha.substr(0, 12), info.git_dirty ? ", modified" : "");
}

class Grammar {
 public:
  // Of the verbs that `arguments` do not name there is the name alone: declaring the options of all takes longer than
  // everything else in a command line. Null: all of all verbs.
  explicit Grammar(const std::vector<std::string>* arguments)
      : app_("syslab: the systems side of language-model training as checked, timed, stored experiments"),
        named_(arguments) {
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
    app_.add_flag("--quiet", global.quiet, "No progress and no summary; of check the verdict alone, where it warns");
    const auto color = [&global](const std::string& word) {
      global.color = word == "always" ? Color::always : word == "never" ? Color::never : Color::automatic;
    };
    grammar::one_of(app_.add_option_function<std::string>("--color", color, "auto (default), always, never"), "WHEN",
                    {"auto", "always", "never"});
    headlines();
    more();
  }

  std::variant<CommandLine, Information> parse(std::vector<std::string> arguments) {
    if (!arguments.empty() && arguments[0] == "help") {  // `help run` is what many type first
      arguments.erase(arguments.begin());
      arguments.push_back("--help");
    }
    refuse_unknown_verb(arguments);
    // `bisect GOOD BAD -- CASE`: what follows may be options, which CLI11 takes for words behind a "--".
    if (const auto verb = arguments.begin() + verb_in(arguments); verb != arguments.end() && *verb == "bisect") {
      if (const auto dashes = std::find(verb, arguments.end(), "--"); dashes != arguments.end())
        arguments.erase(dashes);
    }
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
    if (line_.global.database.empty()) {
      throw Error(ErrorKind::usage, "--db names no file; expected one\ntry: --db syslab.db, the default");
    }
    line_.verb = chosen_.at(app_.get_subcommands().front()->get_name())();
    return line_;
  }

  std::vector<VerbWords> words() {
    std::vector<VerbWords> all;
    for (CLI::App* verb : app_.get_subcommands([](CLI::App* app) { return !app->get_group().empty(); })) {
      VerbWords one{.verb = verb->get_name(), .help = verb->get_description()};
      for (CLI::App* app : {verb, &app_}) {
        for (CLI::Option* option : app->get_options()) tell(*option, one);
      }
      all.push_back(std::move(one));
    }
    return all;
  }

 private:
  // What is read into Options when this verb is the one; its examples are what follows "syslab NAME".
  template <typename Options>
  void verb(const std::string& name, const char* help, const char* group, const std::vector<std::string>& examples) {
    CLI::App* const made = app_.add_subcommand(name, help)->group(group);
    if (named_ != nullptr && std::find(named_->begin(), named_->end(), name) == named_->end()) return;
    const auto options = std::make_shared<Options>();
    grammar::declare(*made, *options);
    std::string footer = examples.empty() ? "" : "Examples:\n";
    for (const std::string& one : examples) footer += fmt::format("  syslab {} {}\n", name, one);
    made->footer(footer + kGlobal);
    chosen_[name] = [options] { return VerbOptions(*options); };
  }

  static void tell(CLI::Option& option, VerbWords& into) {
    OptionWords one{.help = option.get_description(), .values = grammar::words_of(option)};
    for (const std::string& name : option.get_lnames()) one.names.push_back("--" + name);
    for (const std::string& name : option.get_snames()) one.names.push_back("-" + name);
    one.type = option.get_items_expected_max() == 0 ? "" : option.get_type_name();
    one.positional = one.names.empty();
    if (one.positional) one.names.push_back(option.get_name());
    into.options.push_back(std::move(one));
  }

  void headlines() {
    verb<CheckOptions>("check", "Search the laws of experiments for counterexamples", kHeadlines,
                       {"flash_forward --cases 20", "flash_forward --mine me=flash.py:Flash -k causal"});
    verb<RunOptions>("run", "Check, then measure, and store everything", kHeadlines,
                     {"all --preset smoke", "flash_forward -a seq=128,1024 -a head_dim=64 --impl flash_tiled",
                      "--mine me=f.py:fn --reference f.py:ref --inputs f.py:cases --backward",
                      "--mine me=lib.so:symbol --inputs manifest.json", "--command './bench {n}' -a n=1k:16k"});
    verb<CompareOptions>("compare", "Measure two sides again, in turns, and say which is faster", kHeadlines,
                         {"flash_forward A:impl=naive B:impl=flash_tiled -a seq=512",
                          "--mine me=f.py:fn --reference f.py:ref --inputs f.py:cases --detect 2%",
                          "flash_forward A:build=old/syslab B:build=new/syslab --preset smoke --delta 0.5%",
                          "--command old='./old {n}' --command new='./new {n}' -a n=4k --reads 'time: {} ms'"});
    verb<ReportOptions>("report", "The write-up from what is stored, or all of an experiment", kHeadlines,
                        {"-o report.html", "flash_forward --to md"});
  }

  void more() {
    verb<ListOptions>("list", "Experiments, one line each", kMore, {"", "--handout 2026"});
    verb<DescribeOptions>("describe", "One experiment: its question, axes, implementations, laws, metrics", kMore,
                          {"flash_forward", "naive_ddp"});
    verb<PlanOptions>("plan", "The exact cases that run would make; measures nothing", kMore,
                      {"flash_forward --preset paper --device cpu", "--handout 2026 --budget 10m"});
    verb<PlanBucketsOptions>("plan-buckets", "The best gradient buckets for somebody's model, from its trace", kMore,
                             {"--trace gradients.csv --alpha 34us --beta 313GB/s",
                              "--trace gradients.csv --curve ranks.db --impl nccl --ranks 2"});
    verb<ResumeOptions>("resume", "Finish what is missing of a run", kMore, {"", "latest --failed"});
    verb<ReplayOptions>("replay", "Run a stored counterexample again", kMore,
                        {"3f2a", "3f2a --mine me=flash.py:Flash"});
    verb<BisectOptions>("bisect", "Which commit made a case slower: builds revisions, measures each in turns", kMore,
                        {"v1.0 HEAD -- flash_forward -a seq=512 -a causal=true -a dtype=fp32 --impl flash_tiled",
                         "v1.0 HEAD --build-command make -- flash_forward --mine me=kernel.so -a seq=512",
                         "HEAD~64 HEAD -- --mine me=f.py:fn --reference f.py:ref --inputs f.py:cases -a n=256"});
    verb<ClaimOptions>(
        "claim", "Measure a claim about speed and write it to a file that others can verify", kMore,
        {"'flash_tiled >= 2 x naive' flash_forward -a seq=128,512 -o fast.claim",
         "'me >= 1.1 x reference in geometric mean' --mine me=f.py:fn --reference f.py:ref --inputs f.py:cases"
         " -o me.claim"});
    verb<VerifyOptions>("verify", "Measure a claim again: confirmed, refuted, unclear or other hardware", kMore,
                        {"fast.claim", "me.claim --mine me=kernel.so --budget 5m"});
    verb<DiffOptions>("diff", "Two stored runs; weaker than compare, and says so", kMore,
                      {"before latest", "before after --delta 2%"});
    verb<PinOptions>("pin", "Give a run a name that stays; without arguments, list the names", kMore,
                     {"baseline latest --note \"before the change\"", ""});
    verb<GateOptions>(
        "gate", "Measure a pinned run's cases again: has anything become slower or wrong?", kMore,
        {"--against baseline --github", "flash_forward --against baseline --build old/syslab --budget 5m"});
    verb<GradeOptions>("grade", "A folder of submissions by a rubric: a table, and a page of evidence each", kMore,
                       {"submissions/ --handout 2026 -o grades/ --jobs 2",
                        "submissions/ --handout 2026 -o second/ --rubric ours.toml --seed 4711"});
    verb<QueryOptions>(
        "query", "SQL on the database, read-only", kMore,
        {"\"SELECT implementation, value, unit FROM v_latest WHERE experiment = 'flash_forward' AND metric = 'time'\"",
         "\"SELECT * FROM v_latest\" --to csv -o all.csv"});
    verb<MergeOptions>("merge", "Add what other databases hold", kMore, {"other.db", "shard1.db shard2.db --trust"});
    verb<ImportOptions>("import", "Take in results that another program measured (JSON lines)", kMore,
                        {"theirs.jsonl", "theirs.jsonl --author ada"});
    verb<InitOptions>("init", "Write syslab.toml for plain `check`, and in an empty folder tests/adapters.py", kMore,
                      {"", "--handout 2025 --mine me --python .venv/bin/python"});
    verb<PruneOptions>("prune", "A smaller copy of the database; the old one stays", kMore,
                       {"--keep 10 -o small.db", "--younger-than 90d --no-samples -o small.db"});
    verb<LogOptions>("log", "Runs, newest first; of an experiment, its times over revisions", kMore,
                     {"-n 5", "flash_forward -a seq=512 --impl flash_tiled -o history.svg"});
    verb<ShowOptions>("show", "A stored run, attempt, check or comparison", kMore, {"latest", "3f2a"});
    verb<EnvOptions>("env", "Facts about this machine and this build", kMore, {"", "--json"});
    verb<DoctorOptions>("doctor", "Is this machine fit to measure, a run fit to publish? Findings and remedies", kMore,
                        {"", "--noise --budget 1m"});
    verb<CompletionOptions>(
        "completion", "A shell's completion of verbs, options, experiments: bash, zsh, fish", kMore,
        {"bash > ~/.local/share/bash-completion/completions/syslab", "fish > ~/.config/fish/completions/syslab.fish"});
    verb<WorkerOptions>(kHiddenVerb, "One case's process; speaks the worker's wire format", kHidden, {});
  }

  // The first word that is neither an option nor a global option's value.
  static std::ptrdiff_t verb_in(const std::vector<std::string>& words) {
    auto at = words.begin();
    for (; at != words.end() && at->starts_with('-'); ++at) {
      if ((*at == "--db" || *at == "--color") && at + 1 != words.end()) ++at;
    }
    return at - words.begin();
  }

  std::vector<std::string> verbs() const {
    std::vector<std::string> names;
    for (const CLI::App* sub : app_.get_subcommands([](const CLI::App*) { return true; })) {
      if (!sub->get_group().empty()) names.push_back(sub->get_name());
    }
    return names;
  }

  void refuse_unknown_verb(const std::vector<std::string>& arguments) const {
    const auto verb = arguments.begin() + verb_in(arguments);
    const std::vector<std::string> known = verbs();
    if (verb == arguments.end() || *verb == kHiddenVerb || std::ranges::find(known, *verb) != known.end()) return;
    throw Error(ErrorKind::usage, unknown_name("verb", *verb, known));
  }

  const CLI::App& current() const {
    const auto parsed = app_.get_subcommands();
    return parsed.empty() ? static_cast<const CLI::App&>(app_) : *parsed.front();
  }

  std::string see_help() const {
    const CLI::App& app = current();
    return fmt::format("; see `syslab{} --help`", &app == &app_ ? "" : " " + app.get_name());
  }

  // Who comes from `compare` looks for its options here, too.
  std::string size_of_claim(const std::string& option) const {
    const std::string verb = current().get_name();
    if ((verb != "claim" && verb != "verify") || (option != "--delta" && option != "--detect")) return {};
    return std::string("; how much is asked for is the factor of the claim's statement, 'a >= 1.02 x b' for 2 %") +
           (verb == "claim" ? ", and --tolerance how much less confirms it where it is verified" : "");
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
      const std::string option = word.substr(0, word.find('='));
      return unknown_name("option", option, known) + size_of_claim(option);
    }
    return otherwise + see_help();
  }

  // Of the chosen verb, if one is. CLI11 writes what a flag turns off behind its name: "--no-answers{false}".
  std::string help() const {
    constexpr std::string_view kOff = "{false}";
    std::string text = app_.help();
    for (std::size_t at = text.find(kOff); at != std::string::npos; at = text.find(kOff, at)) {
      text.replace(at, kOff.size(), kOff.size(), ' ');
    }
    return text;
  }

  CLI::App app_;
  const std::vector<std::string>* named_;
  CommandLine line_;
  std::map<std::string, std::function<VerbOptions()>> chosen_;  // by verb
};

}  // namespace

std::variant<CommandLine, Information> parse_command_line(const std::vector<std::string>& arguments) {
  return Grammar(&arguments).parse(arguments);
}

std::vector<VerbWords> words_of_command_line() { return Grammar(nullptr).words(); }

}  // namespace syslab::cli
