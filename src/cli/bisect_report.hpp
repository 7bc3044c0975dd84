// What `bisect` prints: a line a step, and the last line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compare/loss.hpp"
#include "compare/options.hpp"
#include "compare/revisions.hpp"
#include "session/context.hpp"

namespace syslab::cli {

// Why a search ended.
enum class End {
  found,
  interrupted,
  budget,
  failed,
  unclear,     // whether the last revision, or the commit that is left, loses more than δ
  not_slower,  // the last revision does not lose more than δ
  faster,
  several,    // commits are left that gave no clear answer
  no_single,  // no commit loses more than δ by itself
  elsewhere   // none of those that are left does, and another one may
};

// First parents lead past the commits that a merge brought in: two lines, the last of which is the same command for its
// branch. Empty without a branch.
std::string into_branch(std::vector<std::string> words, const BisectOptions& options,
                        const std::optional<MergedBranch>& branch);

// Of a last revision that does not lose more than δ. `over`: what was measured.
std::string not_more_in_all(const std::string& over, const Change& whole);

class BisectReport {
 public:
  explicit BisectReport(const Console& console) : console_(console) {}

  // Of one revision. `commit`: whole, `named`: as people read it.
  void step(const std::string& commit, const std::string& named, Answer answer, const std::string& text) const;
  // `answer`: none of the last one.
  void step(const std::string& commit, const std::string& named, std::optional<Answer> answer,
            const Change& change) const;
  // `commits`: among which was searched. `culprit`: a commit that was found.
  Exit ended(End end, const std::string& text, std::int64_t commits, const std::optional<std::string>& culprit = {},
             const Change* found = nullptr) const;

 private:
  const Console& console_;
};

}  // namespace syslab::cli
