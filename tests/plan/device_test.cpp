// The reserved axis `device`: which implementations a machine with a GPU runs, and one without.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.hpp"
#include "plan/plan.hpp"
#include "plan/predict.hpp"

namespace syslab::plan {
namespace {

using registry::Registry;
using Names = std::vector<std::string>;

const Registry& house() {
  static const Registry registry = [] {
    Registry made;
    made.add(registry::experiment("attention")
                 .title("attention")
                 .axis("seq", {std::int64_t{8}}, "length")
                 .preset("laptop", {{"device", {std::string("cpu")}}})
                 .preset("both", {{"device", {std::string("cpu"), std::string("cuda")}}})
                 .preset("gpu", {{"impl", {std::string("mma"), std::string("wgmma")}}})
                 .implementation({.name = "naive"})
                 .implementation({.name = "tiled"})
                 .implementation({.name = "mma", .device = DeviceKind::cuda, .minimum_sm = 80})
                 .implementation({.name = "wgmma", .device = DeviceKind::cuda, .minimum_sm = 90, .maximum_sm = 90})
                 .laws({{"a.law", ""}})
                 .accepts_mine()
                 .memory([](const Params&, std::string_view) { return 4e9; })
                 .flops([](const Params&) { return 1e12; })
                 .runs([](worker::CaseContext&) {}));
    made.add(registry::experiment("host")
                 .title("of the host alone")
                 .implementation({.name = "loops"})
                 .runs([](worker::CaseContext&) {}));
    made.seal();
    return made;
  }();
  return registry;
}

Machine with_gpu(int sm = 90) {
  return {.gpu = "NVIDIA Test", .sm = sm, .gpu_memory_bytes = 80'000'000'000, .why_no_gpu = ""};
}

Selection select(const Machine& machine, Names devices = {}, Names implementations = {}) {
  Selection selection;
  selection.patterns = {"attention"};
  selection.machine = machine;
  selection.devices = std::move(devices);
  selection.implementations = std::move(implementations);
  return selection;
}

Names names(const Plan& plan) {
  Names found;
  for (const PlannedCase& planned : plan.cases) found.push_back(planned.implementation);
  return found;
}
Names planned(const Selection& selection) { return names(make_plan(house(), selection)); }

Selection preset(const Machine& machine, const char* name) {
  Selection selection = select(machine);
  selection.preset = name;
  return selection;
}

TEST(Device, IsTheGpuWhereThereIsOneAndTheCpuElsewhere) {
  EXPECT_EQ(planned(select(with_gpu())), (Names{"mma", "wgmma"}));
  EXPECT_EQ(planned(select({})), (Names{"naive", "tiled"}));
  EXPECT_EQ(names(make_law_plan(house(), select(with_gpu()), Contract::full)), (Names{"mma", "wgmma"}));
  Selection host = select(with_gpu());
  host.patterns = {"host"};
  EXPECT_EQ(planned(host), Names{"loops"});
}

TEST(Device, IsWhatTheSelectionSays) {
  EXPECT_EQ(planned(select(with_gpu(), {"cpu"})), (Names{"naive", "tiled"}));
  EXPECT_EQ(planned(select(with_gpu(), {"cpu,cuda"})), (Names{"naive", "tiled", "mma", "wgmma"}));
  Selection by_axis = select({});
  by_axis.assignments = {parse_assignment("device=cuda")};
  const Plan plan = make_plan(house(), by_axis);
  EXPECT_EQ(names(plan), (Names{"mma", "wgmma"}));
  for (const PlannedCase& one : plan.cases) EXPECT_EQ(one.device, DeviceKind::cuda);
}

TEST(Device, OfAnImplementationThatIsSpelledOutIsItsOwn) {
  EXPECT_EQ(planned(select(with_gpu(), {}, {"tiled"})), Names{"tiled"});
  EXPECT_EQ(planned(select(with_gpu(), {}, {"tiled", "*mma"})), (Names{"tiled", "mma", "wgmma"}));
  EXPECT_EQ(planned(select({}, {}, {"mma"})), Names{"mma"});
  // A pattern means those of the machine's device, as no pattern does.
  EXPECT_EQ(planned(select({}, {}, {"*"})), (Names{"naive", "tiled"}));
}

TEST(Device, OfAPresetIsAWish) {
  EXPECT_EQ(planned(preset(with_gpu(), "laptop")), (Names{"naive", "tiled"}));
  EXPECT_EQ(planned(preset(with_gpu(), "both")), (Names{"naive", "tiled", "mma", "wgmma"}));
  EXPECT_EQ(planned(preset({}, "both")), (Names{"naive", "tiled"}));
  // Nothing of it runs on the CPU: told as skipped rather than left out.
  EXPECT_EQ(planned(preset({}, "gpu")), (Names{"mma", "wgmma"}));
}

TEST(Device, ThatIsMissingSkipsWithTheFactAndTheRemedy) {
  Machine none;
  none.why_no_gpu = "this machine has no usable NVIDIA driver; install it";
  for (const Plan& plan :
       {make_plan(house(), select(none, {"cuda"})), make_law_plan(house(), select(none, {"cuda"}), Contract::full)}) {
    ASSERT_EQ(plan.cases.size(), 2U);
    EXPECT_EQ(plan.cases[0].skip_reason, "mma needs a GPU: this machine has no usable NVIDIA driver; install it");
  }
  const Plan older = make_plan(house(), select(with_gpu(86)));
  EXPECT_FALSE(older.cases[0].skip_reason);
  EXPECT_EQ(older.cases[1].skip_reason,
            "wgmma needs a GPU of compute capability 9.0, and NVIDIA Test has 8.6; choose another implementation");
  const Plan newer = make_plan(house(), select(with_gpu(100)));
  EXPECT_FALSE(newer.cases[0].skip_reason);
  EXPECT_EQ(
      newer.cases[1].skip_reason,
      "wgmma runs on GPUs of compute capability 9.0 alone, and NVIDIA Test has 10.0; choose another implementation");
}

TEST(Device, OfSomebodysOwnIsTheCpuUnlessSaid) {
  Selection selection = select(with_gpu());
  selection.mine = {submitted_of("me", "me.so", "")};
  EXPECT_EQ(make_plan(house(), selection).cases.back().device, DeviceKind::cpu);
  selection.devices = {"cuda"};
  EXPECT_EQ(make_plan(house(), selection).cases.back().device, DeviceKind::cuda);
  selection.machine = {};
  EXPECT_TRUE(make_plan(house(), selection).cases.back().skip_reason);
}

std::string error_of(const Selection& selection) {
  try {
    make_plan(house(), selection);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "no error";
}

TEST(Device, ThatIsUnknownOrRunsNothingIsRefused) {
  EXPECT_NE(error_of(select(with_gpu(), {"gpu"})).find("cuda"), std::string::npos);
  Selection host = select(with_gpu(), {"cuda"});
  host.patterns = {"host"};
  EXPECT_EQ(error_of(host), "nothing that is selected runs on the device asked for; there are loops on cpu");
}

TEST(Device, DecidesMemoryAndRatesOfAPrediction) {
  Plan plan = make_plan(house(), select(with_gpu(), {"cpu,cuda"}));
  Basis basis;
  basis.cpu.memory_bytes = 1'000'000'000;
  basis.cpu.memory_of = "this machine has 1 GB";
  basis.gpu.memory_bytes = plan.machine.gpu_memory_bytes;
  predict(plan, basis);
  EXPECT_NE(plan.cases[0].predicted_oom, "");
  EXPECT_EQ(plan.cases[2].predicted_oom, "");
  EXPECT_GT(plan.cases[0].predicted_time, 100 * plan.cases[2].predicted_time);
}

}  // namespace
}  // namespace syslab::plan
