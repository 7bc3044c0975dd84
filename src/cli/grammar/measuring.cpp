// What is run: checks, measurements, and what is left of them.
#include <map>

#include "cli/grammar/parts.hpp"
#include "cli/grammar/verbs.hpp"

namespace syslab::cli::grammar {

void declare(CLI::App& app, CheckOptions& options) {
  selection(app, options.selection);
  many(app, "-a,--axis", "AXIS=VALUES", options.selection.assignments,
       "State what --mine promises: dtype, head_dim, causal, multiple_of, max_seq, square (seq_q == seq_k), "
       "deterministic");
  shard(app, options.selection);
  contract(app, options.contract);
  CLI::Option* const cases =
      app.add_option("--cases", options.cases,
                     "Try so many inputs per law, without a time limit (default 100; of --mine within 20 s)");
  cases->type_name("NUMBER")->check(CLI::Range(1, 1'000'000).description(""));
  CLI::Option* const deep =
      app.add_flag("--deep", options.deep, "Try 1000 inputs per law (of --mine within 5 min)")->excludes(cases);
  CLI::Option* const as_graded =
      app.add_flag("--as-graded", options.as_graded,
                   "Try as deep as grade: 1000 inputs per law, of --mine within 60 s; 50 of ranks")
          ->excludes(cases)
          ->excludes(deep);
  app.add_flag("--imports-alone", options.imports_alone, "Import what a folder or zip hands in, and search no law");
  app.add_option("--until", options.until, "Draw inputs for so long, or until a law fails and its input is shrunk: 1h")
      ->type_name("DURATION")
      ->excludes(cases)
      ->excludes(deep)
      ->excludes(as_graded);
  app.add_option("-k", options.keyword, "Search only laws whose name contains this")->type_name("WORD");
  many(app, "--beyond", "GLOB", options.beyond,
       "Search only such laws beyond the hand-out (default all; --contract handout: none)");
  app.add_option("--jobs", options.jobs, "Search so many laws at a time, each in its own process (default 1)")
      ->type_name("NUMBER")
      ->check(CLI::Range(1, 256).description(""));
  app.add_flag("--strict", options.strict, "Count warnings as failures: exit code 1");
  app.add_flag("-x,--exitfirst", options.exit_first, "Begin no law after the first that fails");
  app.add_option("--emit", options.emit, "Write the first counterexample of a Python class as a PyTorch test (.py)")
      ->type_name("FILE");
  app.add_option("--map", options.map, "Draw where the first counterexample of --mine is wrong, as SVG")
      ->type_name("FILE");
  app.add_flag("--last-failed", options.last_failed,
               "Search only laws that failed in the last check of this implementation; all if none did");
  app.add_flag("--watch", options.watch,
               "Check again at each save of --mine, first what failed, then all; until Ctrl-C");
  timeout(app, options.timeout);
  label(app, options.label);
  memory_limit(app, options.memory_limit);
}

void declare(CLI::App& app, RunOptions& options) {
  selection(app, options.selection);
  axes(app, options.selection);
  shard(app, options.selection);
  static const std::map<std::string, Laws> kLaws{{"none", Laws::none}, {"quick", Laws::quick}, {"full", Laws::full}};
  const auto laws = [&options](const std::string& word) { options.laws = kLaws.at(word); };
  one_of(app.add_option_function<std::string>("--laws", laws, "Laws before the cases: none, quick (default), full"),
         "HOW", {"none", "quick", "full"});
  contract(app, options.contract);
  measuring(app, options.measuring);
  one_of(app.add_option("--data", options.data, kDistribution), "WHICH", kDistributions);
  one_of(app.add_option("--isolation", options.isolation,
                        "case: a process each (default on the CPU); reuse: one takes cases while they end well "
                        "(default on a GPU and for Python)"),
         "HOW", {"case", "reuse"});
  budget(app, options.budget, "Of the whole run, ends and middles of each axis first; resume finishes (default none)");
  timeout(app, options.timeout);
  label(app, options.label);
}

void declare(CLI::App& app, PlanOptions& options) {
  selection(app, options.selection);
  axes(app, options.selection);
  shard(app, options.selection);
  measuring(app, options.measuring);
  budget(app, options.budget, "Of a whole hand-out (--handout without NAME): where it would end");
}

void declare(CLI::App& app, ResumeOptions& options) {
  app.add_option("RUN", options.run,
                 "uid, a part of it (`syslab log`), a pin, or latest (default: the newest that can be resumed)")
      ->type_name("");
  app.add_flag("--failed", options.failed, "Try failed cases again, too");
  app.add_flag("--try-oom", options.try_oom,
               "Run cases, too, that ran out of memory or whose memory was predicted not to suffice");
  budget(app, options.budget, "Time that this resumption may take, as of run (default none)");
  app.add_flag("--force", options.force, "Though the run was made by another build: its results will be mixed");
  recorded_mine(app, options.mine);
  python(app, options.python);
}

void declare(CLI::App& app, ReplayOptions& options) {
  app.add_option("CHECK", options.check, "uid of a check, or its beginning")->required()->type_name("");
  recorded_mine(app, options.mine);
  python(app, options.python);
}

}  // namespace syslab::cli::grammar
