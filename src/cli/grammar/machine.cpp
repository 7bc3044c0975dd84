// This machine, its links, its shell, and the worker in it.
#include "cli/grammar/parts.hpp"
#include "cli/grammar/verbs.hpp"

namespace syslab::cli::grammar {

void declare(CLI::App& app, PlanBucketsOptions& options) {
  app.add_option("--trace", options.trace,
                 "When each gradient is final: CSV, JSON or a Chrome trace (docs/planning-buckets.md)")
      ->required()
      ->type_name("FILE");
  app.add_option("--curve", options.curve,
                 "Database with measurements of distributed_communication_single_node (default: --db)")
      ->type_name("FILE");
  app.add_option("--impl", options.implementation, "Of these measurements, where there are several: nccl")
      ->type_name("NAME");
  app.add_option("--ranks", options.ranks, "Likewise: 2")->type_name("NUMBER");
  app.add_option("--device", options.device, "Likewise, as the error for several prints it")->type_name("NAME");
  app.add_option("--protocol", options.protocol, "Likewise: quick")->type_name("NAME");
  CLI::Option* alpha =
      app.add_option("--alpha", options.alpha, "In place of measurements: what an all-reduce takes at least, 34us")
          ->type_name("DURATION");
  CLI::Option* beta =
      app.add_option("--beta", options.beta, "and its bytes over time beyond that, 313GB/s")->type_name("RATE");
  alpha->needs(beta);
  beta->needs(alpha);
}

void declare(CLI::App& app, DoctorOptions& options) {
  app.add_option("RUN", options.run, "Judge this stored run instead: uid, its beginning or ending, latest")
      ->type_name("");
  app.add_flag("--noise", options.noise, "Measure what this machine calls different in identical code");
  app.add_option("--budget", options.budget, "Of --noise (default 1m)")->type_name("DURATION");
  CLI::Option* const selftest =
      app.add_flag("--selftest", options.selftest,
                   "Run every implementation that runs here, in about a minute, and write what came");
  app.add_option("-o,--output", options.output, "Of --selftest (default: syslab-selftest.json)")
      ->type_name("FILE")
      ->needs(selftest);
}

void declare(CLI::App& app, CompletionOptions& options) {
  one_of(app.add_option("SHELL", options.shell, "bash, zsh or fish")->required(), "", {"bash", "zsh", "fish"});
}

void declare(CLI::App& app, WorkerOptions& options) {
  app.add_flag("--probe", options.probe, "Say which GPUs CUDA can use, as JSON, and end");
}

}  // namespace syslab::cli::grammar
