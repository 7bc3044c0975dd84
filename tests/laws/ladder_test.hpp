// Laws as parameterised tests, a test for each rung, law and contract.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "tests/laws/search_test.hpp"

namespace syslab::property {

struct LadderCase {
  std::string rung;
  check::Law law;
  check::Contract contract;

  std::string name() const {
    std::string text = rung + "_" + law.id.substr(law.id.find('.') + 1) + "_" + std::string(to_string(contract));
    std::replace_if(
        text.begin(), text.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
    return text;
  }
};

inline void PrintTo(const LadderCase& ladder_case, std::ostream* stream) { *stream << ladder_case.law.statement; }

// Every law of an operator for every rung on the CPU, under both contracts; without those that do not apply to the
// rung, which `left_out` names.
struct LadderCases {
  std::vector<LadderCase> cases;
  std::vector<std::string> left_out;  // under the full contract: "naive: attention.half_no_worse_than_naive"
};

template <typename Rungs, typename Laws>
LadderCases ladder_cases(const Rungs& rungs, Laws laws) {
  LadderCases found;
  for (const auto& rung : rungs) {
    if (rung.device != device::Kind::cpu) continue;
    for (const check::Law& law : laws(rung)) {
      for (const auto contract : {check::Contract::full, check::Contract::handout}) {
        if (law.search(ci_request(contract, 1)).outcome != check::Outcome::not_run) {
          found.cases.push_back({rung.name, law, contract});
        } else if (contract == check::Contract::full) {
          found.left_out.push_back(rung.name + ": " + law.id);
        }
      }
    }
  }
  return found;
}

// A ladder, and behind it `eager`: the operations that its `eager_cuda` runs, here on the CPU, so that what they may
// add by rounding is held where there is no GPU. `naive`: for the problems that it takes.
template <typename Rung>
std::vector<Rung> with_eager(std::span<const Rung> ladder, const Rung& naive,
                             const decltype(Rung::workspace_bytes)& workspace_bytes,
                             const decltype(Rung::forward)& forward, const decltype(Rung::backward)& backward) {
  std::vector<Rung> rungs(ladder.begin(), ladder.end());
  Rung eager = naive;
  eager.name = "eager";
  eager.op_by_op = true;
  eager.workspace_bytes = workspace_bytes;
  eager.forward = forward;
  eager.backward = backward;
  rungs.push_back(eager);
  return rungs;
}

inline void expect_holds(const LadderCase& ladder_case, int cases) {
  const check::LawRequest request = ci_request(ladder_case.contract, cases);
  const check::LawResult result = ladder_case.law.search(request);
  EXPECT_EQ(to_string(result.outcome), "passed") << story(ladder_case.law, result);
  if (result.outcome == check::Outcome::passed) {
    EXPECT_EQ(result.cases_run, request.max_success);
  }
}

}  // namespace syslab::property
