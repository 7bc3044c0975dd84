// What a mask makes of scores that a row must not see, where that is a number in place of −∞.
#pragma once

#include <optional>
#include <string>

#include "property_tests/attention/law_bodies.hpp"
#include "property_tests/attention/trial.hpp"

namespace syslab::attention {

// "masked scores of -10 in place of −∞: …". Of scores of order one such a number may be small enough; so the forward
// pass is asked for a sample like these whose scores are stretched until it is wrong, the number is read off a
// log-sum-exp there, and must give every element of that trial and of both others. Nothing without a mask, or where
// anything else would give them, too.
std::optional<std::string> of_hidden_scores(const Subject& subject, const Trial& here, const Trial* larger);

}  // namespace syslab::attention
