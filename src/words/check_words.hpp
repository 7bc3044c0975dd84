// The end of `check` in words.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "verdict/checked_laws.hpp"

namespace syslab::words {

// A line for each thing that was never tried or stays open, each ends with '\n'.
std::string details(const verdict::CheckedLaws& laws);

// "hand-out 2026: PASS (3 of 3), 0 warnings"
std::string last_line(const verdict::CheckedLaws& laws);

// "attention.repeats: out differs …\n      with dtype=fp32 …"
std::string text_of(const verdict::BeyondFinding& finding);

// Why laws had no time for all of their tries.
std::string why_cut(const verdict::CheckedLaws& laws);

// A line for each operator; with several, each is named.
std::vector<std::string> left_out(const verdict::CheckedLaws& laws);

// What a PASS of the hand-out's laws does not say, and the command that asks it; empty where the mask was asked.
std::string unasked_mask(const std::string& command);

// "4 warnings: 1 crash, 2 writes outside, 1 wrong value"; `name` in place of "warning". "0 warnings" of none.
std::string counted_findings(const std::map<FindingKind, std::int64_t>& findings, std::string_view name = "warning");

// The verdict's warnings so; where they decide, as failures, with the option that makes them such:
// "1 failure: 1 crash by --strict".
std::string counted_beyond(const verdict::LawVerdict& verdict, const verdict::LawsAsked& asked);

}  // namespace syslab::words
