#include "claim/message.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "claim/quoted.hpp"

namespace syslab::claim {
namespace {

constexpr std::size_t kShownOfMessage = 200;  // columns; a finding cuts at more, so that quotes stay closed

}  // namespace

bool has_plain_words_alone(const File& file) {
  const Question& question = file.question;
  const auto are_plain = [](const std::vector<std::string>& words) { return std::ranges::all_of(words, is_plain); };
  return is_plain(file.statement.faster) && is_plain(file.statement.slower) && are_plain(question.experiments) &&
         are_plain(question.assignments) && are_plain(question.devices) && is_plain(question.preset.value_or("")) &&
         is_plain(question.protocol) && is_plain(question.data) && is_plain(question.reads);
}

std::string shown_message(const File& file, std::string_view message) {
  return has_plain_words_alone(file) ? in_one_run(message, std::string::npos) : in_quotes(message, kShownOfMessage);
}

}  // namespace syslab::claim
