#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/import_log.hpp"
#include "cli/verbs/verbs.hpp"
#include "core/error.hpp"
#include "core/files/hash.hpp"
#include "core/files/user_file.hpp"
#include "core/text/short_name.hpp"
#include "core/text/text.hpp"
#include "session/session.hpp"

namespace syslab::cli {
namespace {

constexpr std::uint64_t kLargestLog = 256U << 20;

std::string contents_of(const std::string& file) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) {
    throw Error(ErrorKind::usage, fmt::format("'{}' is a folder; name the logs in it", file));
  }
  std::string text = read_user_file(file, kLargestLog);
  if (text.empty()) throw Error(ErrorKind::usage, fmt::format("'{}' is empty", file));
  return text;
}

}  // namespace

Exit execute(const Context& context, const ImportOptions& options) {
  require_short_name("--author", options.author);
  // All files are read and checked before any of them is stored.
  std::vector<ImportedRun> logs;
  std::vector<std::string> digests;
  for (const std::string& file : options.files) {
    const std::string text = contents_of(file);
    logs.push_back(read_log(context.registry, text, file));
    if (!options.author.empty()) logs.back().run.author = options.author;
    logs.back().run.argv = {"syslab"};
    logs.back().run.argv.insert(logs.back().run.argv.end(), context.arguments.begin(), context.arguments.end());
    digests.push_back(sha256_hex(text));
  }
  store::Store store = open_for_writing(context);
  Json imported = Json::array();
  for (std::size_t i = 0; i < logs.size(); ++i) {
    const ImportedRun& log = logs[i];
    const std::optional<std::string> run = store.import_run(log.run, log.plan, log.attempts, digests[i]);
    if (context.console.json()) {
      imported.push_back({{"file", options.files[i]}, {"run", run ? Json(*run) : Json()}, {"cases", log.plan.size()}});
    } else if (run) {
      context.console.print(fmt::format("{}: {} imported as run {}\n", options.files[i],
                                        counted(static_cast<std::int64_t>(log.plan.size()), "case"), *run));
    } else {
      context.console.print(fmt::format("{}: already there\n", options.files[i]));
    }
  }
  if (context.console.json()) context.console.print_document({{"imported", imported}});
  return Exit::well;
}

}  // namespace syslab::cli
