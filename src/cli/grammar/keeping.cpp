// What is done to the store.
#include "cli/grammar/parts.hpp"
#include "cli/grammar/verbs.hpp"

namespace syslab::cli::grammar {

void declare(CLI::App& app, PinOptions& options) {
  app.add_option("NAME", options.name, "A word: baseline, v1.2")->type_name("");
  app.add_option("RUN", options.run, "uid, its beginning or ending, or latest")->type_name("");
  app.add_option("--note", options.note, "For people")->type_name("TEXT");
}

void declare(CLI::App& app, MergeOptions& options) {
  app.add_option("DB", options.databases, "Database files")->required()->type_name("");
  app.add_flag("--trust", options.trust, "Their runs count as measured here: shards of one sweep, not a hand-in");
}

void declare(CLI::App& app, ImportOptions& options) {
  app.add_option("FILE", options.files, "Logs of the worker's wire format, an object a line")
      ->required()
      ->type_name("");
  app.add_option("--author", options.author, "Alias of whoever hands them in")->type_name("ALIAS");
}

void declare(CLI::App& app, InitOptions& options) {
  one_of(app.add_option("--handout", options.handout, "2025 or 2026 (default: whose functions are there, else 2026)"),
         "YEAR", {"2025", "2026"});
  app.add_option("--mine", options.mine, "The name of what is yours (default: the folder's)")->type_name("NAME");
  app.add_option("--python", options.python, "Interpreter (default: .venv/bin/python if it is there)")
      ->type_name("FILE");
}

void declare(CLI::App& app, PruneOptions& options) {
  app.add_option("-o,--output", options.output, "The new file; without it prune only tells")->type_name("FILE");
  app.add_option("--keep", options.keep, "The newest N runs")->type_name("N")->check(whole_number, "");
  app.add_option("--younger-than", options.younger_than, "Runs of the last 36h, 90d")->type_name("DURATION");
  many(app, "--run", "RUN", options.runs, "This run, too");
  many(app, "--drop", "RUN", options.drop, "Not this run");
  app.add_flag("!--no-samples", options.samples, "Without raw samples: medians and intervals stay");
}

}  // namespace syslab::cli::grammar
