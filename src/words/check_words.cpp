#include "words/check_words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "core/text/text.hpp"
#include "verdict/check_depth.hpp"

namespace syslab::words {
namespace {

using verdict::CheckedLaws;

struct Names {
  std::string_view one, more;
};
Names names_of(FindingKind kind) {
  switch (kind) {
    case FindingKind::none:
      return {"unknown fault", "unknown faults"};
    case FindingKind::wrong_value:
      return {"wrong value", "wrong values"};
    case FindingKind::not_finite:
      return {"NaN or infinity", "NaNs or infinities"};
    case FindingKind::unwritten:
      return {"output not written", "outputs not written"};
    case FindingKind::kept_state:
      return {"kept state", "kept states"};
    case FindingKind::input_changed:
      return {"changed input", "changed inputs"};
    case FindingKind::write_outside:
      return {"write outside", "writes outside"};
    case FindingKind::read_outside:
      return {"read outside", "reads outside"};
    case FindingKind::late_write:
      return {"late write", "late writes"};
    case FindingKind::crash:
      return {"crash", "crashes"};
    case FindingKind::killed:
      return {"killed process", "killed processes"};
    case FindingKind::hang:
      return {"hang", "hangs"};
    case FindingKind::raised:
      return {"exception", "exceptions"};
    case FindingKind::unanswered:
      return {"law without an answer", "laws without an answer"};
  }
  return {};
}

std::string some_of(const std::vector<std::string>& laws) {
  constexpr std::size_t kFew = 3;
  if (laws.size() <= 2 * kFew) return fmt::format("{}", fmt::join(laws, ", "));
  return fmt::format("{} and {} more laws", fmt::join(laws.begin(), laws.begin() + kFew, ", "), laws.size() - kFew);
}

std::string chosen(const CheckedLaws& laws) {
  return laws.chosen_by.empty() ? "" : fmt::format("; only the laws that {} chose", laws.chosen_by);
}

// What no depth, or only a greater one, tries.
std::string limits(const CheckedLaws& laws) {
  std::string text;
  if (!laws.until.empty()) {
    text += fmt::format("  never tried: more inputs than fit into {}; try: a longer --until\n", laws.until);
  } else if (laws.cases < verdict::kDeepDepth.cases) {
    text += fmt::format("  never tried: more than {} inputs per law; try: --deep, with {}\n", laws.cases,
                        verdict::kDeepDepth.cases);
  }
  if (!laws.of_ranks) return text;
  return text + fmt::format(
                    "  never tried, at any depth: more than 4 ranks, {}ranks that use different parameters in one "
                    "step, groups of some ranks\n",
                    laws.on_gpus ? "" : "GPUs (--device cuda), ");
}

// With the number of inputs that each was tried on; of many laws, those with the fewest, and what the others have at
// least.
std::string cut_laws(const CheckedLaws& laws) {
  constexpr std::size_t kFew = 3;
  std::vector<verdict::CutLaw> told = laws.cut;
  const bool many = told.size() > 2 * kFew;
  if (many) std::ranges::stable_sort(told, {}, &verdict::CutLaw::cases);
  std::vector<std::string> parts;
  for (const verdict::CutLaw& one : std::span(told).first(many ? kFew : told.size())) {
    parts.push_back(fmt::format("{}{} {}", laws.of_several_experiments ? one.experiment + " " : "",
                                verdict::name_of(one.law, one.of_handout), one.cases));
  }
  const std::string text = fmt::format("{}", fmt::join(parts, ", "));
  if (!many) return text;
  return fmt::format("{} and {} more laws, each {} or more", text, told.size() - kFew, told[kFew].cases);
}

// "3 warnings: 1 crash, 2 wrong values", where anything beyond the hand-out was tried.
std::string warnings(const CheckedLaws& laws) {
  if (laws.verdict.of_beyond.planned == 0) return "";
  if (laws.verdict.of_beyond.tried == 0 && laws.verdict.warned() == 0) return ", nothing tried beyond it";
  return ", " + counted_beyond(laws.verdict, laws.asked);
}

std::string of_handout(const CheckedLaws& laws) {
  const verdict::Share& share = laws.verdict.of_handout;
  const std::string broken =
      laws.broken.empty() ? "" : fmt::format("; {} fails on what is promised", fmt::join(laws.broken, ", "));
  // Then it is no law of the hand-out that decides.
  const bool by_others = laws.verdict.handout == verdict::Word::fail && share.held == share.of && broken.empty();
  const std::string held =
      by_others ? fmt::format("all {} of its own laws hold", share.of) : fmt::format("{} of {}", share.held, share.of);
  return fmt::format("hand-out {}: {} ({}{}{}){}", laws.year, to_string(laws.verdict.handout), held, broken,
                     chosen(laws), warnings(laws));
}

std::string of_beyond_alone(const CheckedLaws& laws) {
  const verdict::Share& beyond = laws.verdict.of_beyond;
  const std::string some =
      beyond.tried == 0 ? "" : fmt::format("{} of {} laws that were tried", beyond.held, beyond.tried);
  const std::string which = chosen(laws);
  const std::string said = some + (some.empty() && !which.empty() ? which.substr(2) : which);
  return fmt::format("beyond the hand-out: {}{}{}", to_string(laws.verdict.beyond),
                     said.empty() ? "" : " (" + said + ")", beyond.tried == 0 ? "" : warnings(laws));
}

}  // namespace

std::string text_of(const verdict::BeyondFinding& finding) {
  const auto laws = static_cast<std::int64_t>(finding.laws.size());
  return fmt::format("{}{}: {}\n      with {}", fmt::join(finding.laws, ", "),
                     laws > 1 ? fmt::format(" ({})", counted(laws, "law")) : "", finding.message, finding.input);
}

std::string why_cut(const CheckedLaws& laws) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(laws.within);
  const std::string time = seconds == verdict::kDeepDepth.within ? "5 min" : fmt::format("{} s", seconds.count());
  return fmt::format("all {} inputs, since the laws share the {} of this depth", laws.cases, time);
}

std::vector<std::string> left_out(const CheckedLaws& laws) {
  std::vector<std::string> lines;
  for (const auto& [name, found] : laws.left_out) {
    const std::string of =
        found.by_small.empty() ? laws.left_out.size() > 1 ? ", of " + name : "" : ", by " + found.by_small;
    lines.push_back(fmt::format("never tried, at any depth{}: {}", of, found.never_drawn));
  }
  return lines;
}

std::string unasked_mask(const std::string& command) {
  if (command.empty()) return {};
  return "the hand-out does not test the causal mask; to let it decide: " + command;
}

std::string details(const CheckedLaws& laws) {
  std::string text;
  constexpr double kWorthTelling = 5;
  if (laws.first_call_seconds >= kWorthTelling) {
    text += fmt::format("  first calls (imports, compilation) took {:.0f} s, which the laws' time does not include\n",
                        laws.first_call_seconds);
  }
  if (!laws.cut.empty()) {
    text += fmt::format("  never tried: {}; tried: {}; try: --cases {}, without a time limit\n", why_cut(laws),
                        cut_laws(laws), laws.cases);
  }
  for (const auto& [lack, names] : laws.open) {
    text += fmt::format("  open: {}: {}; try: another Python, --python FILE\n", lack, some_of(names));
  }
  const verdict::LawVerdict& all = laws.verdict;
  const bool none_tried = all.of_handout.tried + all.of_beyond.tried + all.of_unposed.tried == 0;
  for (const auto& [reason, names] : laws.never_tried) {
    text += fmt::format("  never tried: {}: {}\n",
                        none_tried ? some_of(names) : fmt::format("{}", fmt::join(names, ", ")), reason);
  }
  if (all.of_beyond.planned + all.of_unposed.planned > 0) text += limits(laws);
  for (const std::string& line : left_out(laws)) text += "  " + line + "\n";
  if (const std::string mask = unasked_mask(laws.mask_command); !mask.empty()) text += fmt::format("  {}\n", mask);
  return text;
}

std::string last_line(const CheckedLaws& laws) {
  std::vector<std::string> parts;
  if (laws.verdict.of_handout.planned > 0) {
    parts.push_back(of_handout(laws));
  } else if (laws.verdict.of_beyond.planned > 0) {
    parts.push_back(of_beyond_alone(laws));
  }
  if (const verdict::Share& share = laws.verdict.of_unposed; share.planned > 0) {
    parts.push_back(fmt::format("what no hand-out poses: {} ({} of {} laws that were tried{})",
                                to_string(laws.verdict.unposed), share.held, share.tried, chosen(laws)));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string counted_findings(const std::map<FindingKind, std::int64_t>& findings, std::string_view name) {
  std::int64_t all = 0;
  std::string kinds;
  for (const auto& [kind, count] : findings) {
    const Names names = names_of(kind);
    all += count;
    kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", count, count == 1 ? names.one : names.more);
  }
  return fmt::format("{} {}{}{}{}", all, name, all == 1 ? "" : "s", kinds.empty() ? "" : ": ", kinds);
}

std::string counted_beyond(const verdict::LawVerdict& verdict, const verdict::LawsAsked& asked) {
  const bool decide = verdict::beyond_decides(verdict, asked);
  const std::string counts = counted_findings(verdict.warnings, decide ? "failure" : "warning");
  if (verdict::is_beyond_alone(verdict) || verdict.warned() == 0) return counts;
  return counts + (asked.strict ? " by --strict" : asked.beyond_decides ? " under --contract full" : "");
}

}  // namespace syslab::words
