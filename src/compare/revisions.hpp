// What git says of revisions. A repository is the folder that `git rev-parse --show-toplevel` names.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace syslab::cli {

// A command of git in a folder, which may be somebody else's: it starts no hook and no monitor that a configuration
// names, and fetches nothing that is missing (a partial clone), which would start others (core.sshCommand).
std::vector<std::string> git_command(const std::string& folder, const std::vector<std::string>& words);

// What a command of git that only reads prints; nothing where it fails.
std::optional<std::string> look_into(const std::string& repository, const std::vector<std::string>& words);

// Of the checkout that `path` lies in; nothing: in none.
std::optional<std::string> repository_of(const std::string& path);

// The commit's full name. Nothing: no commit is called so.
std::optional<std::string> commit_of(const std::string& repository, const std::string& revision);

// 40 digits, as git names a commit in full: no other name of a revision, and no path that anybody would type.
bool is_full_name(std::string_view text);

// GOOD and every commit after it up to BAD, along first parents, oldest first. Error(usage) where GOOD is no ancestor
// of BAD on that line.
std::vector<std::string> commits_between(const std::string& repository, const std::string& good,
                                         const std::string& bad);

// The branch that a merge brought in: its tip, and the commit of the main line where it began, from which first parents
// lead to the tip. Nothing for a commit that is no merge.
struct MergedBranch {
  std::string start, tip;
};
std::optional<MergedBranch> branch_merged_by(const std::string& repository, const std::string& commit);

std::string subject_of(const std::string& repository, const std::string& commit);  // its first line
std::string tree_of(const std::string& repository, const std::string& commit);     // equal of equal sources

// "1a2b3c4d5e": as long as no repository of ours has two alike.
std::string short_commit(const std::string& commit);

}  // namespace syslab::cli
