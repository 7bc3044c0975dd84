// What a mask makes of scores that a row must not see, where that is a number in place of −∞.
#pragma once

#include <optional>
#include <string>

#include "property_tests/attention/law_bodies.hpp"
#include "property_tests/attention/likeness.hpp"
#include "property_tests/attention/trial.hpp"

namespace syslab::attention {

// "masked scores of -10 in place of −∞: …", "masked scores of -10 in place of −∞ in the backward pass: …". Of scores of
// order one such a number may be small enough; so the pass is asked for a sample like these whose scores are stretched
// until it is wrong. There the number is read off a log-sum-exp, or off dV by least squares, and must give every
// element of that trial, of both others, and of one whose scores are all below that number. Nothing where no key of the
// sample is hidden, where anything else would give them, too, or where what a backward pass is given is wrong already.
std::optional<Likeness> of_hidden_scores(const Subject& subject, const Trial& here, const Trial* larger, Pass pass);

}  // namespace syslab::attention
