// Rungs that cannot do everything: the laws ask what they can do, and tell what was not asked from what holds.
#include <gmock/gmock.h>

#include <memory>
#include <set>

#include "property_tests/attention/laws.hpp"
#include "tests/laws/mutant_test.hpp"

namespace syslab::attention {
namespace {

using check::Contract;
using check::LawResult;
using check::Outcome;

constexpr int kCases = 20;

LawResult search(const std::string& id, const Rung& rung, Contract contract = Contract::full) {
  const std::vector<check::Law> bound = laws(rung);
  return property::law_named(id, bound).search(property::ci_request(contract, kCases));
}

// Like a class of a student's in another process: says that it takes everything, and in the call that it does not.
Rung only_fp32_forward() {
  Rung rung = find_rung("naive");
  rung.name = "hers";
  rung.last_call_time = [] { return Nanoseconds{}; };
  rung.supports = [](const Problem&, Pass) { return std::optional<std::string>(); };
  rung.forward = [inner = rung.forward](const Problem& problem, const ForwardArgs& args, ops::Workspace workspace,
                                        device::Stream stream) {
    if (problem.dtype != DType::f32) throw Unsupported("hers takes fp32");
    if (problem.mask == Mask::bottom_right) throw Unsupported("hers knows one causal mask");
    if (problem.heads_q != problem.heads_kv) throw Unsupported("hers does not group heads");
    inner(problem, args, workspace, stream);
  };
  rung.backward = [](const Problem&, const BackwardArgs&, ops::Workspace, device::Stream) {
    throw Unsupported("hers has no backward");
  };
  return rung;
}

TEST(UnsupportedProblems, AreNotAskedOfARungThatRefusesThemInTheCall) {
  for (const char* id : {"attention.equals_oracle", "attention.causal_prefix", "attention.head_permutation",
                         "attention.split_keys", "attention.writes_nothing_outside"}) {
    const LawResult result = search(id, only_fp32_forward());
    EXPECT_EQ(to_string(result.outcome), "passed") << id << ": " << result.message;
    EXPECT_EQ(result.cases_run, property::ci_request(Contract::full, kCases).max_success) << id;
  }
}

TEST(UnsupportedProblems, LeaveALawUnrunWithTheReason) {
  const LawResult backward = search("attention.gradients_equal_oracle", only_fp32_forward());
  EXPECT_EQ(backward.outcome, Outcome::not_run);
  EXPECT_EQ(backward.message, "hers has no backward");
  const LawResult half = search("attention.half_no_worse_than_naive", only_fp32_forward());
  EXPECT_EQ(half.outcome, Outcome::not_run);
  EXPECT_EQ(half.message, "hers takes fp32");
}

// A law of both passes must not hold by the forward pass alone where the backward pass is what is checked.
TEST(UnsupportedProblems, OfTheBackwardPassLeaveAllItsLawsUnrun) {
  Rung without = find_rung("naive");
  without.name = "hers";
  without.backward = nullptr;
  for (const Rung& rung : {without, only_fp32_forward()}) {
    for (const check::Law& law : laws_of(rung, Pass::backward)) {
      const LawResult result = law.search(property::ci_request(Contract::full, kCases));
      EXPECT_EQ(to_string(result.outcome), "not_run") << law.id << ": " << result.message;
      EXPECT_THAT(result.message, testing::AnyOf(testing::StartsWith("hers has no backward"), "hers takes fp32",
                                                 testing::StartsWith("it is asked of what runs in a process"),
                                                 "it is asked of a torch.autograd.Function"));
    }
    const std::vector<check::Law> forward = laws_of(rung, Pass::forward);
    const LawResult held = property::law_named("attention.writes_nothing_outside", forward)
                               .search(property::ci_request(Contract::full, kCases));
    EXPECT_EQ(to_string(held.outcome), "passed") << held.message;
  }
}

TEST(UnsupportedProblems, LeaveTheOnesThatSupportsAllows) {
  Rung rung = find_rung("naive");
  rung.supports = [inner = rung.supports](const Problem& problem, Pass pass) {
    if (problem.head_dim % 8 != 0) return std::optional<std::string>("head_dim must be a multiple of 8");
    if (problem.seq_q != problem.seq_k) return std::optional<std::string>("queries and keys must be as many");
    return inner(problem, pass);
  };
  const LawResult result = search("attention.equals_oracle", rung);
  EXPECT_EQ(to_string(result.outcome), "passed") << result.message;
  // Splitting the keys needs fewer keys than queries, which nothing of this rung's is.
  const LawResult split = search("attention.split_keys", rung);
  EXPECT_EQ(split.outcome, Outcome::not_run);
  EXPECT_EQ(split.message, "queries and keys must be as many");
}

// Like a library whose kernel took its process's GPU along: the call says so, and whatever is asked afterwards is not
// answered. The law is falsified by what the call said; that nobody can be asked further is no error of the search.
TEST(UnsupportedProblems, AreNotAskedOfWhoIsGone) {
  const auto gone = std::make_shared<bool>(false);
  Rung rung = find_rung("naive");
  rung.supports = [gone, inner = rung.supports](const Problem& problem, Pass pass) {
    if (*gone) throw Error(ErrorKind::comm, "its GPU is lost");
    return inner(problem, pass);
  };
  rung.forward = [gone](const Problem&, const ForwardArgs&, ops::Workspace, device::Stream) {
    *gone = true;
    throw Error(ErrorKind::device, "an illegal memory access");
  };
  const LawResult result = search("attention.equals_oracle", rung);
  EXPECT_EQ(to_string(result.outcome), "falsified") << result.message;
  EXPECT_THAT(result.message, testing::HasSubstr("an illegal memory access"));
  EXPECT_THAT(result.message, testing::HasSubstr("input: B="));
}

TEST(UnsupportedProblems, OfTheHandoutAreWhatItDoesNotPromise) {
  EXPECT_EQ(search("attention.bitwise_repeatable", find_rung("naive"), Contract::handout).outcome, Outcome::not_run);
  EXPECT_EQ(search("attention.head_permutation", find_rung("naive"), Contract::handout).outcome, Outcome::not_run);
}

TEST(LawLists, OfADirectionAreThoseOfItsLaws) {
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    std::vector<std::string> listed, bound;
    for (const LawInfo& law : law_list(pass)) listed.push_back(law.id);
    for (const check::Law& law : laws_of(find_rung("naive"), pass)) bound.push_back(law.id);
    EXPECT_EQ(listed, bound);
  }
}

TEST(LawLists, OfADirectionSayWhichLawsTheOracleCannotBeHeldTo) {
  std::set<std::string> of_all, of_each;
  const auto keep = [](const std::vector<LawInfo>& list, std::set<std::string>& ids) {
    for (const LawInfo& law : list) {
      if (law.against_oracle) ids.insert(law.id);
    }
  };
  keep(law_list(), of_all);
  keep(law_list(Pass::forward), of_each);
  keep(law_list(Pass::backward), of_each);
  EXPECT_FALSE(of_all.empty());
  of_all.insert("attention.gradient_layouts");  // of classes alone, and so not in the list of our own rungs
  EXPECT_EQ(of_each, of_all);
}

TEST(LawLists, NameEveryLawForTheDirectionsThatCanBreakIt) {
  const std::size_t forward = law_list(Pass::forward).size(), backward = law_list(Pass::backward).size();
  EXPECT_EQ(law_list().size(), laws(find_rung("naive")).size());
  EXPECT_GE(forward + backward, law_list().size());
}

}  // namespace
}  // namespace syslab::attention
