// What tells of experiments and of what is stored.
#include "cli/grammar/parts.hpp"
#include "cli/grammar/verbs.hpp"

namespace syslab::cli::grammar {

void declare(CLI::App& app, ReportOptions& options) {
  app.add_option("NAME", options.experiments, "Experiments (default: all)")->type_name("");
  one_of(app.add_option("--handout", options.handout,
                        "2025 or 2026 (default, which names what the store has of 2025 alone)"),
         "YEAR", {"2025", "2026"});
  app.add_flag("--leaderboard", options.leaderboard, "Only the ranking of implementations, case by case");
  app.add_flag("!--no-answers", options.answers,
               "Leave out sentences made from the store; an empty place stands for each answer");
  app.add_flag("!--no-figures", options.figures, "Tables and sentences only");
  app.add_flag("--sources", options.sources,
               "Only the experiment and the .sql file behind each table, sentence and figure");
  app.add_flag("--appendix", options.appendix,
               "Without NAME: all rows, figures and laws, too, in FILE-appendix beside FILE; without -o, alone");
  output(app, options.format, options.output);
}

void declare(CLI::App& app, ListOptions& options) {
  app.add_option("PATTERN", options.patterns, "Ids, globs, tag:NAME (default: all)")->type_name("");
  app.add_option("--tag", options.tag, "Only those with this tag");
  app.add_option("--handout", options.handout, "Only those that this hand-out poses: 2025 or 2026");
}

void declare(CLI::App& app, DescribeOptions& options) {
  app.add_option("NAME", options.name, "Experiment")->required()->type_name("");
}

void declare(CLI::App& app, QueryOptions& options) {
  app.add_option("SQL", options.sql, "A SELECT, or a file that ends in .sql")->required()->type_name("");
  one_of(app.add_option("--to", options.format,
                        "md, tex, html, csv or json (default: as FILE ends, else md, on a terminal aligned columns); "
                        "raw: the one value that the "
                        "SELECT gives, as it is, an artifact's content perhaps"),
         "FORMAT", {"md", "tex", "html", "csv", "json", "raw"});
  app.add_option("-o,--output", options.output, "File to write (default: standard output)")->type_name("FILE");
}

void declare(CLI::App& app, LogOptions& options) {
  app.add_option("EXPERIMENT", options.experiment,
                 "Its times over revisions, a series for each kind of machine (default: runs)")
      ->type_name("");
  many(app, "-a,--axis", "AXIS=VALUES", options.assignments, "Of EXPERIMENT: only these cases");
  many(app, "--impl", "NAME", options.implementations, "Of EXPERIMENT: only these implementations, globs");
  app.add_flag("--confirm", options.confirm,
               "Of EXPERIMENT: build both sides of each suspected change and measure them in turns");
  app.add_option("--budget", options.budget, "Of each comparison that --confirm makes (default 2m)")
      ->type_name("DURATION");
  app.add_option("--delta", options.delta, "The smallest change of level worth a word (default 1 %)")
      ->type_name("PERCENT");
  app.add_option("-o,--output", options.output, "Of EXPERIMENT: draw the series, as SVG")->type_name("FILE");
  app.add_option("-n,--number", options.number, "How many (default 20)")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000).description(""));
}

void declare(CLI::App& app, ShowOptions& options) {
  app.add_option("UID", options.uid, "uid, a part of it, or a run's pin")->required()->type_name("");
}

}  // namespace syslab::cli::grammar
