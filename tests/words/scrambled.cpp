// All texts of src/words as a placeholder. A program that is linked with this file prints no sentence of that room;
// what it decides, stores and writes with --json must not change (tests/e2e/test_scrambled.py).
#include "words/check_words.hpp"
#include "words/comparison_words.hpp"
#include "words/speed_words.hpp"

namespace syslab::words {
namespace {

const std::string kScrambled = "§";

}  // namespace

std::string details(const verdict::CheckedLaws&) { return kScrambled + "\n"; }
std::string last_line(const verdict::CheckedLaws&) { return kScrambled; }
std::string text_of(const verdict::BeyondFinding&) { return kScrambled; }
std::string why_cut(const verdict::CheckedLaws&) { return kScrambled; }
std::vector<std::string> left_out(const verdict::CheckedLaws&) { return {kScrambled}; }
std::string unasked_mask(const std::string&) { return kScrambled; }
std::string counted_findings(const std::map<FindingKind, std::int64_t>&, std::string_view) { return kScrambled; }
std::string counted_beyond(const verdict::LawVerdict&, const verdict::LawsAsked&) { return kScrambled; }

std::string percent(double) { return kScrambled; }
std::string change_text(double) { return kScrambled; }
std::string change_text(double, double) { return kScrambled; }
std::string interval_text(double, const stats::Interval&, double) { return kScrambled; }
std::string change_in_words(const Quantity&, double) { return kScrambled; }
std::string across_borders(const stats::Interval&, double) { return kScrambled; }
std::string change_text(const verdict::Judgement&) { return kScrambled; }
std::string interval_text(const verdict::Judgement&) { return kScrambled; }
std::string speed_text(const verdict::Judgement&) { return kScrambled; }
std::string word_of(const verdict::Judgement&) { return kScrambled; }
std::string launches_text(const verdict::Judgement&) { return kScrambled; }
std::string sentence(const verdict::Judgement&, const std::string&, const std::string&) { return kScrambled; }
std::string reason(const verdict::Judgement&, const std::string&, const std::string&) { return kScrambled; }
std::string reason(const verdict::Judgement&) { return kScrambled; }
std::string reason_or_note(const verdict::Judgement&) { return kScrambled; }
std::string about_means(const Quantity&, double) { return kScrambled; }
std::string contradiction(const verdict::Judgement&) { return kScrambled; }

std::string claimable_text(double) { return kScrambled; }
std::string interval_text(const verdict::Speed&, double) { return kScrambled; }
std::string border_text(const verdict::SpeedBorder&) { return kScrambled; }
std::string reason(const verdict::SpeedFinding&, std::span<const verdict::MeasuredSpeed>, const verdict::SpeedBorder&) {
  return kScrambled;
}
bool is_told_whole(const verdict::SpeedFinding&, std::span<const verdict::MeasuredSpeed>, const std::string&) {
  return false;
}

}  // namespace syslab::words
