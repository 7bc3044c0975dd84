#include "property_tests/attention/one_value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

namespace syslab::attention {
namespace {

constexpr double kEndlessValue = std::numeric_limits<double>::infinity();

bool alike(double one, double other) { return one == other || (std::isnan(one) && std::isnan(other)); }

bool is_all(const std::vector<double>& values, double value) {
  return std::all_of(values.begin(), values.end(), [&](double each) { return alike(each, value); });
}

bool is_unwritten(const Judged& judged) {
  return judged.unwritten == static_cast<std::int64_t>(judged.found.values.size());
}

bool is_wrong_and_one_value(const Judged& judged) {
  constexpr std::size_t kLeast = 8;  // elements
  const std::vector<double>& found = judged.found.values;
  if (found.size() < kLeast || !judged.wrong_anywhere() || !is_all(found, found[0])) return false;
  return std::isnan(found[0]) || !is_all(judged.exact, judged.exact[0]);
}

// The tensors that have one value, those that have the same one together, the first's first.
std::vector<std::vector<const Judged*>> groups_of_one_value(const Trial& trial) {
  std::vector<std::vector<const Judged*>> groups;
  for (const Judged& judged : trial.tensors) {
    if (!is_wrong_and_one_value(judged)) continue;
    const auto same_value = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return alike(group.front()->found.values[0], judged.found.values[0]) &&
             is_unwritten(*group.front()) == is_unwritten(judged);
    });
    if (same_value == groups.end()) {
      groups.push_back({&judged});
    } else {
      same_value->push_back(&judged);
    }
  }
  return groups;
}

std::string names_of(std::span<const Judged* const> group) {
  std::string all = group[0]->found.name;
  for (std::size_t i = 1; i < group.size(); ++i) {
    all += (i + 1 == group.size() ? " and " : ", ") + std::string(group[i]->found.name);
  }
  return all;
}

std::size_t elements_of(std::span<const Judged* const> group) {
  std::size_t elements = 0;
  for (const Judged* judged : group) elements += judged->found.values.size();
  return elements;
}

bool is_near(double value, double number) { return std::abs(value - number) <= 1e-4 * std::max(1.0, std::abs(number)); }

// Every row's log-sum-exp is `number_of` its keys: without a mask, on both inputs, of so many keys that chance is none.
template <typename NumberOf>
bool is_of_all_keys(const Trial& trial, const Trial* other, const NumberOf& number_of) {
  constexpr std::int64_t kLeast = 4;  // keys
  for (const Trial* one : {&trial, other}) {
    if (one == nullptr) continue;
    const Problem& p = one->sample.problem;
    if (p.mask != Mask::none || p.seq_k < kLeast) return false;
    if (!is_near(one->tensors[1].found.values[0], number_of(static_cast<double>(p.seq_k)))) return false;
  }
  return true;
}

std::string of_minus_infinity(const Judged& out) {
  const std::vector<double>& found = out.found.values;
  if (is_all(found, 0)) {
    return "that is what a row has that sees no key; look at the loop over keys, which may never run, and at what the "
           "mask leaves";
  }
  if (is_all(found, std::numeric_limits<double>::quiet_NaN())) {
    return "the row sum is 0, and out is 0/0: no key takes part; look at P = e^(S − m), and at what the mask leaves";
  }
  if (std::all_of(found.begin(), found.end(), [](double value) { return std::isinf(value); })) {
    return "the row sum is 0, and P V, which is divided by it, is not; look at where the row sum is added up";
  }
  const char* const cause = "the log of a sum that is 0, or a maximum that is still −∞; look at ";
  return out.wrong_anywhere()
             ? fmt::format("{}the row sum l and the maximum m", cause)
             : fmt::format("{}which sum and maximum L takes, and when: those that out takes are right", cause);
}

// Of a log-sum-exp that is wrong, by its number.
std::string of_lse(const Trial& trial, const Trial* other) {
  const Judged &out = trial.tensors[0], &lse = trial.tensors[1];
  const double value = lse.found.values[0];
  const bool out_right = !out.wrong_anywhere();
  if (value == -kEndlessValue) return of_minus_infinity(out);
  if (value == kEndlessValue) {
    return "in L = m + log l, l or m is ∞, or the log of an l that is 0 is taken off; look at the sign, and at exp "
           "without the maximum";
  }
  if (is_of_all_keys(trial, other, [](double keys) { return std::log(keys); })) {
    return fmt::format(
        "that is log S (S={}), as of scores that are all 0, each of which adds e^0; look at Q, K and the scale in the "
        "scores{}, and at a maximum that is taken off and not added again",
        trial.sample.problem.seq_k, out_right ? " that L is made of (those of out are right)" : "");
  }
  if (is_of_all_keys(trial, other, [](double keys) { return keys; })) {
    return fmt::format(
        "that is S itself, a row sum of {} keys that add e^0 each, without its log; look at Q, K and the scale in the "
        "scores that L is made of",
        trial.sample.problem.seq_k);
  }
  if (value == 0 && is_all(out.found.values, 0)) {
    return "so nothing of Q, K and V is in either; look at whether the loop over keys runs, and at whether its results "
           "are stored over the zeros that stood there first";
  }
  if (is_near(value, 0)) {
    return "log 1: of a row's weights that are divided by their sum already, and without the maximum; or zeros that "
           "nothing was stored over; look at which sum L takes, and at where L is stored";
  }
  if (is_near(value, 1)) {
    return "1 is the sum of a row's weights that are divided already; look at which sum L takes, and at its log";
  }
  if (value <= -1e4) {
    return "so far below every score lies what a maximum begins with, or what a mask puts in; look at whether m is "
           "raised, and at what the mask leaves";
  }
  return out_right ? "nothing of the scores is in it, and out is right; look at which sum and maximum L takes, and when"
                   : "nothing of the scores is in it; look at Q Kᵀ, at its scale, and at the sum and maximum of a row";
}

std::string of_out(const Trial& trial, double value) {
  const bool lse_right = !trial.tensors[1].wrong_anywhere();
  if (value != 0) return "nothing of V is in it; look at P V, and at which accumulator is stored";
  return lse_right
             ? "lse is right, so the weights are not 0; look at P and V in P V, of which one is 0 there, and at "
               "whether the accumulator is the one that is stored"
             : "look at P and V in P V, of which one is 0 there, and at whether the accumulator is the one that is "
               "stored";
}

// By which of dq, dk and dv are 0: of random inputs a product is 0 only where an operand is.
std::string of_gradients(const Trial& trial) {
  const auto is_zero = [&](std::size_t t) { return is_all(trial.tensors[t].found.values, 0); };
  const bool dq = is_zero(0), dk = is_zero(1), dv = is_zero(2);
  if (dq && dk && dv) {
    return "dV = Pᵀ dO has neither Q, K, V nor the scale as a factor, so P or dO is 0, or no gradient is stored; look "
           "at dO as it is read, at P = exp(S − L), which is 0 where L is far too large or no key is visible, and at "
           "the loops, which may never run";
  }
  if (dq && dk) {
    const char* const known =
        trial.tensors[2].wrong_anywhere() ? "dV is not 0, so P and dO are not" : "dV is right, so P and dO are";
    return fmt::format(
        "{}; look at dS = P ∘ (dP − D), which is 0 where D is dP itself, and at the scale, which is 0 where 1/√D is "
        "divided in integers",
        known);
  }
  if (dq && dv) return "dK is not 0, so dS, P and dO are not; look at where dQ and dV are added up and stored";
  if (dk && dv) {
    return "dQ is not 0, so dS, P and dO are not; look at the loop over queries, and at where dK and dV are added up "
           "and stored";
  }
  if (dq) {
    return "dK is not 0, so dS is not; look at K in dQ = dS K, and at where dQ is added up and stored";
  }
  if (dk) {
    return "dQ is not 0, so dS is not; look at Q in dK = dSᵀ Q, and at where dK is added up and stored";
  }
  return "dQ or dK is not 0, so P and dO are not; look at both in dV = Pᵀ dO, and at where dV is added up and stored";
}

// Of one key dQ and dK are 0 and nothing is missing: the other trial tells, if it is 0 there, too.
const Trial* telling_of_zeros(const Trial& trial, const Trial* other, const Judged& first) {
  if (trial.sample.problem.seq_k > 1) return &trial;
  if (other == nullptr || other->sample.problem.seq_k == 1) return nullptr;
  const Judged& there = other->tensors[static_cast<std::size_t>(&first - trial.tensors.data())];
  return is_all(there.found.values, 0) ? other : nullptr;
}

std::string what_gives(const Trial& trial, const Trial* other, Pass pass, const Judged& first) {
  const double value = first.found.values[0];
  if (pass == Pass::forward) {
    const Judged& lse = trial.tensors[1];
    const bool by_lse = is_wrong_and_one_value(lse) && !std::isnan(lse.found.values[0]);
    return by_lse ? of_lse(trial, other) : of_out(trial, value);
  }
  const Trial* const telling = value == 0 ? telling_of_zeros(trial, other, first) : nullptr;
  return telling != nullptr ? of_gradients(*telling)
                            : "look at the product that it is, and at whether that is what is stored";
}

}  // namespace

std::optional<Likeness> one_value_everywhere(const Trial& trial, const Trial* other, Pass pass) {
  const auto groups = groups_of_one_value(trial);
  if (groups.empty()) return std::nullopt;
  const std::vector<const Judged*>& first = groups.front();
  const std::string names = names_of(first);
  const std::size_t elements = elements_of(first);
  const double value = first.front()->found.values[0];
  if (is_unwritten(*first.front())) {
    return Likeness{
        "nothing written to " + names,
        fmt::format("all {} elements hold what stood there before the call; look at where results are stored",
                    elements)};
  }
  const bool no_sum = pass == Pass::forward && trial.tensors[1].found.values[0] == -kEndlessValue;
  if (std::isnan(value) && !(no_sum && groups.size() > 1)) {
    return Likeness{
        "NaN in every element of " + names,
        fmt::format("all {} of them; look at 0/0, ∞ − ∞ (a maximum that begins at −∞ and is taken off −∞) and "
                    "the log of what is below 0",
                    elements)};
  }
  std::string text = fmt::format("all {} are {:.6g}", elements, value);
  for (std::size_t i = 1; i < groups.size(); ++i) {
    if (is_unwritten(*groups[i].front())) continue;
    text += fmt::format(", of {} all {} are {:.6g}", names_of(groups[i]), elements_of(groups[i]),
                        groups[i].front()->found.values[0]);
  }
  return Likeness{"one value in every element of " + names,
                  fmt::format("{}; {}", text, what_gives(trial, other, pass, *first.front()))};
}

}  // namespace syslab::attention
