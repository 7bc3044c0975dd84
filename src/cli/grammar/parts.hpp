// What options of several verbs have in common: each function adds options to `app` that are read into `options`.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/options.hpp"

namespace syslab::cli::grammar {

inline constexpr const char* kDelta = "The smallest change that counts (default 1 %, 2 % under 20 µs)";
inline constexpr const char* kDistribution = "Distribution of inputs: normal (default), uniform, zeros, ramp";
inline const std::vector<std::string> kDistributions = {"normal", "uniform", "zeros", "ramp"};

// A check of numbers from 0 on; CLI11's own would print the largest double as the end of the range.
std::string whole_number(const std::string& text);

// The words that `option` takes, and nothing else. words_of() gives them back, for completion in a shell.
void one_of(CLI::Option* option, const char* type, const std::vector<std::string>& words);
std::vector<std::string> words_of(CLI::Option& option);

// An option that may be given again and again, a value each time.
void many(CLI::App& app, const char* name, const char* type, std::vector<std::string>& values, const char* help);

void recorded_mine(CLI::App& app, std::vector<std::string>& values);
void python(CLI::App& app, std::string& value);                 // of --mine
void function_files(CLI::App& app, SelectionOptions& options);  // --reference, --inputs, --backward
void commands(CLI::App& app, SelectionOptions& options);        // --command, --reads
void device(CLI::App& app, SelectionOptions& options);
void seed(CLI::App& app, SelectionOptions& options);
void preset(CLI::App& app, SelectionOptions& options);
void selection(CLI::App& app, SelectionOptions& options);
void shard(CLI::App& app, SelectionOptions& options);
void axes(CLI::App& app, SelectionOptions& options);
void memory_limit(CLI::App& app, std::string& option);
void measuring(CLI::App& app, MeasuringOptions& options);
void budget(CLI::App& app, std::string& option, const char* help);
void contract(CLI::App& app, std::optional<Contract>& option);
void output(CLI::App& app, std::string& format, std::string& file);
void timeout(CLI::App& app, std::string& option, const char* help = "Of one case: 30s, 5m (default 10m)");
void label(CLI::App& app, std::string& option);
void launches(CLI::App& app, std::optional<int>& option);  // of what is measured in turns

// Options of the verbs that come to verdicts.
template <typename Options>
void judging(CLI::App& app, Options& options) {
  launches(app, options.launches);
  app.add_option("--budget", options.budget,
                 "Time for all comparisons together: 5m (default: 2m of compare, unless --launches is given)")
      ->type_name("DURATION");
  app.add_option("--delta", options.delta, kDelta)->type_name("PERCENT");
  timeout(app, options.timeout, "Of one launch: 30s, 5m (default 10m)");
  label(app, options.label);
}

// Options of the verbs that show or verify a claim.
template <typename Options>
void limits(CLI::App& app, Options& options) {
  launches(app, options.launches);
  app.add_option("--budget", options.budget, "Time for all cases together: 5m (default 2m, unless --launches is given)")
      ->type_name("DURATION");
  app.add_option("--memory-limit", options.memory_limit, "Of one side beyond the worker's own: 2Gi (default none)")
      ->type_name("SIZE");
  timeout(app, options.timeout, "Of one launch: 30s, 5m (default 10m)");
  label(app, options.label);
}

}  // namespace syslab::cli::grammar
