// The program: reads the command line, carries out one verb, and tells the shell.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <optional>
#include <string_view>

#include "agents/agent.hpp"
#include "cli/command_line.hpp"
#include "cli/report_error.hpp"
#include "cli/verbs/judged.hpp"
#include "cli/verbs/seed.hpp"
#include "cli/verbs/verbs.hpp"
#include "core/files/temporary_folder.hpp"
#include "core/process/descendants.hpp"
#include "core/text/text.hpp"
#include "registry/registry.hpp"
#include "worker/wire/serve.hpp"

namespace syslab::cli {

namespace {

template <typename Body>
Exit guarded(const Console* console, bool json, Body body) {
  try {
    return body();
  } catch (const Error& error) {
    return report_error(console, json, error.kind(), error.what());
  } catch (const std::bad_alloc&) {
    return report_error(console, json, ErrorKind::internal, "out of memory");
  } catch (const std::exception& error) {
    return report_error(console, json, ErrorKind::internal, error.what());
  }
}

// Verbs that run cases. Of several processes that a launcher started with one of these, rank 0's carries it out and the
// others lend it their places; each alone would make its own run and measure at the same time as the others.
bool runs_cases(const VerbOptions& verb) {
  return std::visit([]<typename Options>(const Options&) { return kRunsCases<Options>; }, verb);
}

Exit run(std::vector<std::string> arguments) {
  const bool json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  std::variant<CommandLine, Information> parsed;
  const Exit grammar = guarded(nullptr, json, [&] {
    take_seed(arguments, STDIN_FILENO);
    parsed = parse_command_line(arguments);
    return Exit::well;
  });
  if (grammar != Exit::well) return grammar;
  if (const auto* information = std::get_if<Information>(&parsed)) {
    return guarded(nullptr, json, [&] {
      Console(GlobalOptions{}).print(information->text);  // which reports a full disk
      return Exit::well;
    });
  }
  const CommandLine& line = std::get<CommandLine>(parsed);
  const Console console(line.global);
  return guarded(&console, line.global.json, [&] {
    registry::Registry::global().seal();
    std::optional<agents::Lab> lab;
    if (runs_cases(line.verb)) {
      keep_descendants();
      require_temporary_folders();
      if (const int left = remove_left_folders(); left > 0) {
        console.note(fmt::format("{} of a killed run removed", counted(left, "temporary folder")));
      }
      agents::LaunchOrders orders{.arguments = arguments};
      const comm::LaunchEnvironment launch = agents::take_launch(orders);
      if (launch.rank > 0) {  // standard output belongs to the lab
        return guarded(&console, false, [&] { return static_cast<Exit>(agents::serve_agent(launch, orders)); });
      }
      if (launch.size > 1) {
        lab.emplace(launch, orders);
        console.note(fmt::format("{}, started by {}", lab->text(), launch.source));
      }
    }
    const Context context{registry::Registry::global(), line.global, console, arguments, lab ? &*lab : nullptr};
    return std::visit([&](const auto& options) { return execute(context, options); }, line.verb);
  });
}

}  // namespace
}  // namespace syslab::cli

namespace {

// `judged NAME=LIBRARY`, and with a device behind it where statics are needed: our kernels are made known to CUDA by
// some.
void serve_what_is_judged(int argc, char** argv, int arguments) {
  if (argc == arguments && std::string_view(argv[1]) == "judged") std::exit(syslab::cli::serve_library(argv[2]));
}

#ifdef __GLIBC__
// Before this program's own statics are made (101: the first priority that a program may have). Nothing that serves a
// library may have such statics: tests/cli/no_statics.py.
[[gnu::constructor(101)]] void serve_early(int argc, char** argv) { serve_what_is_judged(argc, argv, 3); }
#endif

}  // namespace

int main(int argc, char** argv) {
  serve_what_is_judged(argc, argv, 3);  // other C libraries do not tell their arguments before
  serve_what_is_judged(argc, argv, 4);
  // Makes a file size limit an error of write(), which the store reports, instead of ending the process.
  std::signal(SIGXFSZ, SIG_IGN);
  // Each case starts one: it needs no command line, and of the experiments only its own.
  if (argc == 2 && std::string_view(argv[1]) == "worker") return syslab::worker::serve(STDIN_FILENO, STDOUT_FILENO);
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  syslab::cli::cover_seed(argc, argv);
  return static_cast<int>(syslab::cli::run(arguments));
}
