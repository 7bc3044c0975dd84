// The program: seals the registry, reads the command line, carries out one verb, and tells the shell.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>

#include "agents/agent.hpp"
#include "cli/command_line.hpp"
#include "cli/verbs.hpp"
#include "core/json_text.hpp"
#include "core/printable.hpp"
#include "registry/registry.hpp"

namespace syslab::cli {

namespace {

// `console` is null while the command line itself is at fault.
Exit report_error(const Console* console, bool json, ErrorKind kind, const std::string& message) {
  if (json) {
    const Json error{{"error", {{"kind", to_string(kind)}, {"message", message}}}};
    fmt::print("{}\n", repaired_json_text(error));
  }
  const std::string name = console == nullptr ? "syslab:" : console->styled_error("syslab:", Style::bad);
  to_error(fmt::format("{} {}\n", name, printable(message)));
  return exit_of(kind);
}

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
// others lend it their places; each alone would make a run of its own and measure beside the others.
bool runs_cases(const VerbOptions& verb) {
  return std::holds_alternative<RunOptions>(verb) || std::holds_alternative<CheckOptions>(verb) ||
         std::holds_alternative<ResumeOptions>(verb) || std::holds_alternative<CompareOptions>(verb) ||
         std::holds_alternative<GateOptions>(verb) || std::holds_alternative<ReplayOptions>(verb);
}

Exit run(const std::vector<std::string>& arguments) {
  const bool json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  std::variant<CommandLine, Information> parsed;
  const Exit grammar = guarded(nullptr, json, [&] {
    parsed = parse_command_line(arguments);
    return Exit::well;
  });
  if (grammar != Exit::well) return grammar;
  if (const auto* information = std::get_if<Information>(&parsed)) {
    return guarded(nullptr, json, [&] {
      Console(GlobalOptions{}).print(information->text);  // which notices that a disk is full
      return Exit::well;
    });
  }
  const CommandLine& line = std::get<CommandLine>(parsed);
  const Console console(line.global);
  return guarded(&console, line.global.json, [&] {
    registry::Registry::global().seal();
    std::optional<agents::Lab> lab;
    if (runs_cases(line.verb)) {
      agents::LaunchOrders orders{.arguments = arguments};
      const comm::LaunchEnvironment launch = agents::take_launch(orders);
      if (launch.rank > 0) {  // standard output is the lab's
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

int main(int argc, char** argv) {
  // A file size limit shall be an error of write(), which the store reports, and not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  return static_cast<int>(syslab::cli::run(std::vector<std::string>(argv + 1, argv + argc)));
}
