#include "cli/grammar/parts.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>

#include "core/text/text.hpp"

namespace syslab::cli::grammar {

std::string whole_number(const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range) return fmt::format("'{}' is more than {}", text, UINT64_MAX);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole ? "" : fmt::format("'{}' is no whole number from 0 on", text);
}

// CLI11 keeps no list of what IsMember accepts; its validator's name does.
void one_of(CLI::Option* option, const char* type, const std::vector<std::string>& words) {
  option->type_name(type)->check(CLI::IsMember(words).description("").name(fmt::format("{}", fmt::join(words, "|"))));
}

std::vector<std::string> words_of(CLI::Option& option) {
  try {
    const std::string& name = option.get_validator(0)->get_name();
    return name.empty() ? std::vector<std::string>{} : split(name, '|');
  } catch (const CLI::OptionNotFound&) {
    return {};
  }
}

void many(CLI::App& app, const char* name, const char* type, std::vector<std::string>& values, const char* help) {
  app.add_option(name, values, help)->allow_extra_args(false)->take_all()->type_name(type);
}

void seed(CLI::App& app, SelectionOptions& options) {
  app.add_option("--seed", options.seed,
                 "Root of all random inputs (default 0); -: a line of standard input, which no process reads off a "
                 "command line")
      ->type_name("NUMBER")
      ->check(whole_number, "");
}

void preset(CLI::App& app, SelectionOptions& options) {
  app.add_option("--preset", options.preset, "smoke, laptop, paper: a named choice of axis values")->type_name("NAME");
}

void timeout(CLI::App& app, std::string& option, const char* help) {
  app.add_option("--timeout", option, help)->type_name("DURATION");
}

void label(CLI::App& app, std::string& option) {
  app.add_option("--label", option, "A name for this run, for people")->type_name("TEXT");
}

void recorded_mine(CLI::App& app, std::vector<std::string>& values) {
  many(app, "--mine", "NAME=FILE", values,
       "In place of the file recorded for NAME; needed unless you made the run, with this file as it is");
}

void python(CLI::App& app, std::string& value) {
  app.add_option("--python", value, "Interpreter of --mine (default: SYSLAB_PYTHON, else python3)")->type_name("FILE");
}

void device(CLI::App& app, SelectionOptions& options) {
  many(app, "--device", "WHICH", options.devices,
       "cpu, cuda or both: implementations that run there (default: the GPU where there is one and something runs on "
       "it, else the CPU)");
}

void function_files(CLI::App& app, SelectionOptions& options) {
  app.add_option("--reference", options.reference,
                 "--mine is any function, compared with this one in float64 (docs/any-function.md)")
      ->type_name("FILE.py:NAME");
  app.add_option("--inputs", options.inputs,
                 "With --reference: what gives the cases, each with its arguments (default: cases of its file); "
                 "FILE.json: the manifest of a library's "
                 "symbol, NAME=lib.so:symbol")
      ->type_name("FILE.py:NAME");
  app.add_flag("--backward", options.backward, "With --inputs: its gradients are cases, too, as pass=backward");
}

void commands(CLI::App& app, SelectionOptions& options) {
  many(app, "--command", "[NAME=]COMMAND", options.commands,
       "Any program, with places for axes: './bench {n}' -a n=1k:16k (docs/any-command.md)");
  app.add_option("--reads", options.reads,
                 "With --command: the number that it prints, 'time: {} ms' (default: the "
                 "time of its process)")
      ->type_name("PATTERN");
}

void launches(CLI::App& app, std::optional<int>& option) {
  app.add_option(
         "--launches", option,
         "Fresh processes a side, at least 3 (default: 12 to 20, as many as it takes to know the ratio to ±0.25 %)")
      ->type_name("NUMBER")
      ->check(CLI::Range(3, 1000).description(""));
}

void selection(CLI::App& app, SelectionOptions& options) {
  app.add_option("NAME", options.names, "Experiments: ids, globs, tag:NAME, comma lists, all")->type_name("");
  many(app, "--impl", "NAME", options.implementations, "Implementations, globs (default: all of the device)");
  device(app, options);
  many(app, "--mine", "NAME=FILE", options.mine,
       "Your own: NAME=kernel.so or NAME=flash.py:Class; of check a hand-out's folder or zip with adapters.py, too");
  function_files(app, options);
  commands(app, options);
  python(app, options.python);
  app.add_option("--author", options.author, "Alias under which --mine is handed in (default: its NAME)")
      ->envname("SYSLAB_AUTHOR")
      ->type_name("ALIAS");
  preset(app, options);
  app.add_option("--handout", options.handout,
                 "Only experiments that this hand-out poses, and its words (model=xl): 2025 or 2026; no NAME: all")
      ->type_name("YEAR");
  seed(app, options);
}

void shard(CLI::App& app, SelectionOptions& options) {
  app.add_option("--shard", options.shard,
                 "One part of several of the cases: 3/8 is the third of eight, a database each, which merge unites")
      ->type_name("I/K");
}

void axes(CLI::App& app, SelectionOptions& options) {
  many(app, "-a,--axis", "AXIS=VALUES", options.assignments,
       "axis=v1,v2 | axis=lo:hi (doubling) | axis=lo:hi:step | axis=pow2:lo:hi (exponents); impl, device and "
       "world_size (ranks) are axes, "
       "too");
}

void memory_limit(CLI::App& app, std::string& option) {
  app.add_option("--memory-limit", option, "Of one case beyond the worker's own: 2Gi (default none)")
      ->type_name("SIZE");
}

void measuring(CLI::App& app, MeasuringOptions& options) {
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

void budget(CLI::App& app, std::string& option, const char* help) {
  app.add_option("--budget", option, help)->type_name("DURATION");
}

void contract(CLI::App& app, std::optional<Contract>& option) {
  const auto set = [&option](const std::string& word) { option = contract_of(word); };
  one_of(app.add_option_function<std::string>(
             "--contract", set,
             "What is promised: handout or full (default: full for ours; of --mine check searches both, "
             "and handout decides)"),
         "WHICH", {"handout", "full"});
}

void output(CLI::App& app, std::string& format, std::string& file) {
  one_of(app.add_option("--to", format, "md, tex, html, csv or json (default: as FILE ends, else md)"), "FORMAT",
         {"md", "tex", "html", "csv", "json"});
  app.add_option("-o,--output", file, "File to write (default: standard output)")->type_name("FILE");
}

}  // namespace syslab::cli::grammar
