#include "compare/revisions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.hpp"
#include "core/text/text.hpp"
#include "session/capture.hpp"

namespace syslab::cli {
namespace {

std::optional<std::string> git(const std::string& repository, const std::vector<std::string>& words) {
  std::optional<std::string> text = look_into(repository, words);
  if (text) *text = trim(*text);
  return text;
}

}  // namespace

std::vector<std::string> git_command(const std::string& folder, const std::vector<std::string>& words) {
  std::vector<std::string> all{"env",
                               "GIT_ALLOW_PROTOCOL=",
                               "GIT_NO_LAZY_FETCH=1",
                               "GIT_TERMINAL_PROMPT=0",
                               "git",
                               "-C",
                               folder,
                               "-c",
                               "core.fsmonitor=false",
                               "-c",
                               "core.hooksPath=/dev/null"};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

std::optional<std::string> look_into(const std::string& repository, const std::vector<std::string>& words) {
  return output_of(git_command(repository, words));
}

std::optional<std::string> repository_of(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path absolute = fs::absolute(path, ignored);
  const fs::path folder = fs::is_directory(absolute, ignored) ? absolute : absolute.parent_path();
  return git(folder.string(), {"rev-parse", "--show-toplevel"});
}

std::optional<std::string> commit_of(const std::string& repository, const std::string& revision) {
  if (revision.empty() || revision[0] == '-') return std::nullopt;  // never an option of git's
  return git(repository, {"rev-parse", "--verify", "--quiet", revision + "^{commit}"});
}

bool is_full_name(std::string_view text) {
  return text.size() == 40 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::vector<std::string> commits_between(const std::string& repository, const std::string& good,
                                         const std::string& bad) {
  const std::optional<std::string> listed =
      git(repository, {"rev-list", "--first-parent", "--reverse", good + ".." + bad, "--"});
  std::vector<std::string> commits{good};
  if (listed && !listed->empty()) {
    for (std::string& one : split(*listed, '\n')) commits.push_back(std::move(one));
  }
  const std::optional<std::string> before =
      commits.size() > 1 ? git(repository, {"rev-parse", "--verify", "--quiet", commits[1] + "^1"}) : std::nullopt;
  if (!before || *before != good) {
    throw Error(
        ErrorKind::usage,
        fmt::format("{} does not lead to {} along first parents: the first revision must be an ancestor of the second",
                    short_commit(good), short_commit(bad)));
  }
  return commits;
}

std::optional<MergedBranch> branch_merged_by(const std::string& repository, const std::string& commit) {
  const auto parent = [&](const std::string& of, const char* which) {
    return git(repository, {"rev-parse", "--verify", "--quiet", of + which});
  };
  const std::optional<std::string> tip = parent(commit, "^2");
  if (!tip) return std::nullopt;
  const std::optional<std::string> listed =
      git(repository, {"rev-list", "--first-parent", "--reverse", commit + "^1.." + *tip, "--"});
  if (!listed || listed->empty()) return std::nullopt;
  const std::optional<std::string> start = parent(listed->substr(0, listed->find('\n')), "^1");
  if (!start) return std::nullopt;
  return MergedBranch{*start, *tip};
}

std::string subject_of(const std::string& repository, const std::string& commit) {
  // Not `git log`, which obeys `log.*` of the configuration: log.showSignature starts its gpg.program.
  const std::string listed = git(repository, {"rev-list", "--max-count=1", "--format=%s", commit, "--"}).value_or("");
  const std::size_t end = listed.find('\n');  // of "commit 1a2b…"
  return end == std::string::npos ? "" : listed.substr(end + 1);
}

std::string tree_of(const std::string& repository, const std::string& commit) {
  return git(repository, {"rev-parse", "--verify", "--quiet", commit + "^{tree}"}).value_or("");
}

std::string short_commit(const std::string& commit) { return commit.substr(0, 10); }

}  // namespace syslab::cli
