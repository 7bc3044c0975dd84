// What comes to verdicts: two sides, a pinned run, a folder of submissions.
#include "cli/grammar/parts.hpp"
#include "cli/grammar/verbs.hpp"

namespace syslab::cli::grammar {

void declare(CLI::App& app, CompareOptions& options) {
  app.add_option("NAME", options.selection.names,  // later versions of CLI11 refuse a name with ':' or a space
                 "Experiments, then the sides: A:axis=value,… with impl, build=SYSLAB or a revision, or mine=NAME "
                 "among the axes. "
                 "Axes that no side names are a sweep")
      ->option_text("A:… B:… ...");
  axes(app, options.selection);
  many(app, "--impl", "NAME", options.selection.implementations, "Implementations of both sides, globs");
  device(app, options.selection);
  many(app, "--mine", "NAME=FILE", options.selection.mine, "Your own: NAME=kernel.so or NAME=flash.py:Class");
  function_files(app, options.selection);
  commands(app, options.selection);
  preset(app, options.selection);
  seed(app, options.selection);
  judging(app, options);
  app.add_option(
         "--detect", options.detect,
         "After a short pilot, say how long seeing this change takes, more than --delta; goes on to decide only with "
         "--budget or --launches")
      ->type_name("PERCENT");
  app.add_flag("--same-on-purpose", options.same_on_purpose,
               "Allow identical sides: what does this machine make of them?");
  app.add_option("--protocol", options.protocol,
                 "How each side is warmed and timed (default: quick for smoke, else the experiment's own)")
      ->type_name("NAME");
  one_of(app.add_option("--data", options.data, kDistribution), "WHICH", kDistributions);
  app.add_option("--memory-limit", options.memory_limit, "Of one side beyond the worker's own: 2Gi (default none)")
      ->type_name("SIZE");
}

void declare(CLI::App& app, BisectOptions& options) {
  app.add_option("GOOD", options.good, "A revision that was fast enough")->required()->type_name("");
  app.add_option("BAD", options.bad, "A later one that is not")->required()->type_name("");
  app.add_option("NAME", options.selection.names, "Behind a --: the experiment; with -a and --impl one case of it")
      ->type_name("");
  axes(app, options.selection);
  many(app, "--impl", "NAME", options.selection.implementations, "The implementation");
  device(app, options.selection);
  many(app, "--mine", "NAME=FILE", options.selection.mine,
       "Your own, a file of the repository whose history is searched (without: that of syslab)");
  function_files(app, options.selection);
  app.add_option("--python", options.selection.python, "Interpreter of --mine (default: SYSLAB_PYTHON, else python3)")
      ->type_name("FILE");
  preset(app, options.selection);
  seed(app, options.selection);
  app.add_option("--repository", options.repository,
                 "Whose revisions they are (default: that of --mine, else of this folder)")
      ->type_name("FOLDER");
  app.add_option("--build-command", options.build_command,
                 "What builds a revision, in its checkout (default: meson and ninja of syslab; of --mine nothing)")
      ->type_name("COMMAND");
  app.add_option("--artifact", options.artifact, "Without --mine: the syslab that it makes (default build/syslab)")
      ->type_name("FILE");
  app.add_option("--launches", options.launches,
                 "Fresh processes a side and step, at most (default 20; looked at after 5 and 10)")
      ->type_name("NUMBER")
      ->check(CLI::Range(3, 1000).description(""));
  app.add_option("--budget", options.budget, "Time of all of it, builds too (default 15m); the same command goes on")
      ->type_name("DURATION");
  app.add_option("--delta", options.delta, kDelta)->type_name("PERCENT");
  app.add_option("--protocol", options.protocol, "How each side is warmed and timed (default: the experiment's own)")
      ->type_name("NAME");
  timeout(app, options.timeout, "Of one launch: 30s, 5m (default 10m)");
  memory_limit(app, options.memory_limit);
}

void declare(CLI::App& app, ClaimOptions& options) {
  app.add_option("CLAIM", options.statement, "FASTER >= FACTOR x SLOWER, perhaps 'in geometric mean'")
      ->required()
      ->type_name("");
  app.add_option("NAME", options.selection.names, "Experiments whose cases it is about")->type_name("");
  app.add_option("-o,--output", options.output, "The claim's file")->required()->type_name("FILE");
  axes(app, options.selection);
  device(app, options.selection);
  many(app, "--mine", "NAME=FILE", options.selection.mine, "Your own: NAME=kernel.so or NAME=flash.py:Class");
  function_files(app, options.selection);
  commands(app, options.selection);
  preset(app, options.selection);
  seed(app, options.selection);
  limits(app, options);
  app.add_option("--tolerance", options.tolerance,
                 "How much less than claimed confirms it where it is verified (default 1 %); none here")
      ->type_name("PERCENT");
  app.add_option("--protocol", options.protocol, "How each side is warmed and timed (default: the experiment's own)")
      ->type_name("NAME");
  one_of(app.add_option("--data", options.data, kDistribution), "WHICH", kDistributions);
}

void declare(CLI::App& app, VerifyOptions& options) {
  app.add_option("FILE", options.claim, "Made by syslab claim")->required()->type_name("");
  many(app, "--mine", "NAME=FILE", options.files.mine, "The file that the claim is about; a claim brings no code");
  function_files(app, options.files);
  many(app, "--command", "[NAME=]COMMAND", options.files.commands,
       "The command that the claim is about; a claim starts nothing");
  app.add_option("--python", options.files.python, "Interpreter of --mine (default: SYSLAB_PYTHON, else python3)")
      ->type_name("FILE");
  limits(app, options);
}

void declare(CLI::App& app, DiffOptions& options) {
  app.add_option("RUN_A", options.a, "uid, its beginning or ending, latest, or a pin")->required()->type_name("");
  app.add_option("RUN_B", options.b, "likewise")->required()->type_name("");
  app.add_option("--delta", options.delta, kDelta)->type_name("PERCENT");
}

void declare(CLI::App& app, GateOptions& options) {
  app.add_option("NAME", options.names, "Experiments of the pinned run (default: all)")->type_name("");
  app.add_option("--against", options.against, "The pin, or a run")->required()->type_name("PIN");
  app.add_option("--build", options.build,
                 "The syslab that made the pinned run: both are measured in turns (else against stored values)")
      ->type_name("SYSLAB");
  many(app, "--mine", "NAME=FILE", options.mine,
       "In place of the file recorded for NAME, as it is now; needed unless you made the pinned run");
  judging(app, options);
  app.get_option("--launches")
      ->description(
          "Fresh processes a side, at least 3 (default: with --build 12 to 20, as many as it takes to know the ratio "
          "to "
          "±0.25 %; else 5)");
  app.add_flag(
      "--github", options.github,
      "In GitHub Actions: an annotation for each case that is slower, wrong or unclear, and a page in the job's "
      "summary (docs/gate-on-github.md)");
  app.get_option("--budget")->description("With --build: time for all comparisons together, but for confirming: 5m");
}

void declare(CLI::App& app, GradeOptions& options) {
  app.add_option("SUBMISSIONS", options.submissions,
                 "Folder of folders and zips, one a student; or a CSV with student,path"
                 " or student,path,when of repositories that are fetched already")
      ->type_name("");
  one_of(app.add_option("--handout", options.handout, "2025 or 2026")->required(), "YEAR", {"2025", "2026"});
  app.add_option("-o,--output", options.output, "Folder for the grades; what is there is not checked again")
      ->type_name("FOLDER");
  app.add_option("--rubric", options.rubric, "TOML (default: the hand-out's points, tools/rubric/rubric-YEAR.toml)")
      ->type_name("FILE");
  app.add_option("--written", options.written, "Points of written parts: CSV with student,item,points")
      ->type_name("FILE");
  app.add_option("--roster", options.roster, "Names for the table: CSV with id,name; lists who handed nothing in")
      ->type_name("FILE");
  CLI::Option* const zip = app.add_option("--gradescope", options.gradescope,
                                          "Grade nothing; write an autograder for Gradescope that does, with --wheel")
                               ->type_name("ZIP");
  app.add_option("--wheel", options.wheel, "out/release/syslab-*.whl, made by tools/release")
      ->type_name("FILE")
      ->needs(zip);
  app.add_flag("--dry-run", options.dry_run,
               "Grade nothing and write nothing: check imports, torch, package metadata and GPUs of all submissions")
      ->excludes(zip);
  app.add_flag("--despite-open", options.despite_open, "Grade even if most submissions would be mostly open");
  app.add_flag("--names", options.names, "The leaderboard shows who it is (default: aliases)");
  app.add_option("--since", options.since,
                 "What was handed in before 2026-05-03T17:00 and has not changed since it was graded keeps its grade,"
                 " whatever else has changed")
      ->type_name("DATE");
  app.add_flag("--no-retry", options.no_retry, "What ran out of time before is not tried again");
  app.add_option("--jobs", options.jobs, "Submissions at a time (default 1)")
      ->type_name("NUMBER")
      ->check(CLI::Range(1, 256).description(""));
  one_of(app.add_option_function<std::string>(
             "--device", [&options](const std::string& word) { options.device = device_kind_of(word).value(); },
             "Where ranks of data parallelism, sharded optimizers and FSDP compute (default cpu)"),
         "WHICH", {"cpu", "cuda"});
  app.add_option("--cases", options.cases, "Tries a law, however long they take (default: as check --as-graded)")
      ->type_name("NUMBER")
      ->check(CLI::Range(1, 1'000'000).description(""));
  app.add_option("--seed", options.seed,
                 "Root of all random inputs (default 0; -: a line of standard input). With another, pages tell nothing "
                 "that was "
                 "made of them")
      ->type_name("NUMBER")
      ->check(whole_number, "");
  app.add_option("--python", options.python, "Interpreter of all (default: SYSLAB_PYTHON, else python3)")
      ->type_name("FILE");
  app.add_option("--limit", options.limit, "Time of a submission (default 10m)")->type_name("DURATION");
  app.add_option("--timeout", options.timeout, "Time of one law (default 2m)")->type_name("DURATION");
  app.add_option("--memory-limit", options.memory_limit, "Of a submission beyond its libraries (default 4Gi)")
      ->type_name("SIZE");
}

}  // namespace syslab::cli::grammar
