#include "cli/check_verdict.hpp"

#include <gtest/gtest.h>

namespace syslab::cli {
namespace {

TEST(NothingChecked, IsSaidWhereAllCasesWereLookedAtAndNoneWasTried) {
  EXPECT_EQ(nothing_checked("me", 4, 4, 0), "me: nothing was checked: all its 4 cases were skipped or unsupported");
  EXPECT_EQ(nothing_checked("me", 1, 1, 0), "me: nothing was checked: its only case was skipped or unsupported");
  EXPECT_EQ(nothing_checked("me", 4, 4, 1), "");
  EXPECT_EQ(nothing_checked("me", 4, 1, 0), "") << "of a run that was interrupted nobody knows";
  EXPECT_EQ(nothing_checked("me", 0, 0, 0), "");
}

TEST(UnaskedMask, IsThatOfAPythonClassOnTheCpu) {
  const auto experiment = [](const char* axis) {
    return registry::experiment("flash_forward").title("t").axis(axis, {false}, "").runs([](worker::CaseContext&) {});
  };
  const registry::Experiment masked = experiment("causal"), unmasked = experiment("fused");
  plan::Plan plan;
  plan.mine = {submitted_of("me", "/x.py", "Mine"), submitted_of("library", "/x.so", "")};
  const auto said = [&](const char* implementation, DeviceKind device, const registry::Experiment& of,
                        const char* contract) {
    plan.cases.resize(1);
    plan.cases[0].experiment = &of;
    plan.cases[0].implementation = implementation;
    plan.cases[0].device = device;
    plan.cases[0].params = Params{{"contract", std::string(contract)}};
    return mask_command(plan);
  };
  EXPECT_EQ(said("me", DeviceKind::cpu, masked, "handout"),
            "syslab check flash_forward --mine me=/x.py:Mine -a causal=true --contract full");
  EXPECT_EQ(said("me", DeviceKind::cuda, masked, "handout"), "");
  EXPECT_EQ(said("me", DeviceKind::cpu, masked, "full"), "");
  EXPECT_EQ(said("me", DeviceKind::cpu, unmasked, "handout"), "");
  EXPECT_EQ(said("library", DeviceKind::cpu, masked, "handout"), "");
}

}  // namespace
}  // namespace syslab::cli
