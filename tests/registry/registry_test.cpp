#include "registry/registry.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace syslab::registry {
namespace {

Builder whole(const std::string& id) {
  return experiment(id).title("A title").axis("seq", {std::int64_t{128}}, "length").runs([](worker::CaseContext&) {});
}

Registry house() {
  Registry registry;
  registry.add(whole("flash_forward").tags({"attention"}).alias("ff"));
  registry.add(whole("weighted_sum").tags({"kernel"}));
  registry.add(whole("flash_backward").tags({"attention"}));
  registry.add(whole("selftest_faults").tags({"selftest"}));
  registry.seal();
  return registry;
}

std::vector<std::string> selected(std::vector<std::string> patterns) {
  static const Registry registry = house();
  std::vector<std::string> ids;
  for (const Experiment* experiment : registry.select(patterns)) ids.push_back(experiment->id);
  return ids;
}

template <typename Call>
std::string message_of(ErrorKind kind, Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

using Ids = std::vector<std::string>;

TEST(Registry, SelectsByIdGlobTagCommaListAndAlias) {
  EXPECT_EQ(selected({"weighted_sum"}), Ids{"weighted_sum"});
  EXPECT_EQ(selected({"flash_*"}), (Ids{"flash_backward", "flash_forward"}));
  EXPECT_EQ(selected({"tag:attention"}), (Ids{"flash_backward", "flash_forward"}));
  EXPECT_EQ(selected({"weighted_sum, flash_forward"}), (Ids{"flash_forward", "weighted_sum"}));
  EXPECT_EQ(selected({"ff"}), Ids{"flash_forward"});
}

TEST(Experiment, KnowsWhichOfItsValuesNameFiles) {
  const Experiment it = whole("train").file_axis("text", {std::string("pages")}, "to learn");
  EXPECT_TRUE(it.files_named_by({{"seq", std::int64_t{1}}}).empty()) << "a law has no such axis";
  EXPECT_TRUE(it.files_named_by({{"text", std::string("pages")}}).empty());
  for (const Value& value : {Value(std::string("/etc/passwd")), Value(std::string("")), Value(std::int64_t{7})}) {
    const std::vector<NamedFile> named = it.files_named_by({{"text", value}});
    ASSERT_EQ(named.size(), 1U) << to_string(value);
    EXPECT_EQ(named[0].axis, "text");
    EXPECT_EQ(named[0].file, to_string(value));
  }
}

TEST(Registry, SelectsEachOnceInItsOwnOrder) {
  EXPECT_EQ(selected({"weighted_sum", "*", "ff", "flash_forward"}),
            (Ids{"flash_backward", "flash_forward", "weighted_sum"}));
}

TEST(Registry, KeepsSelftestsOutOfAllAndGlobsButNotOutOfTheirNames) {
  EXPECT_EQ(selected({"all"}), (Ids{"flash_backward", "flash_forward", "weighted_sum"}));
  EXPECT_EQ(selected({"selftest_faults"}), Ids{"selftest_faults"});
  EXPECT_EQ(selected({"tag:selftest"}), Ids{"selftest_faults"});
}

TEST(Registry, NamesTheNearestWhenAPartSelectsNothing) {
  EXPECT_NE(message_of(ErrorKind::usage, [] { selected({"flash_foward"}); }).find("'flash_forward'"),
            std::string::npos);
  EXPECT_NE(message_of(ErrorKind::usage, [] { selected({"tag:atention"}); }).find("'attention'"), std::string::npos);
  EXPECT_NE(message_of(ErrorKind::usage, [] { selected({"nothing_*"}); }).find("nothing_*"), std::string::npos);
  message_of(ErrorKind::usage, [] { selected({"weighted_sum,"}); });
  const Registry registry = house();
  EXPECT_NE(message_of(ErrorKind::usage, [&] { registry.find("weightedsum"); }).find("'weighted_sum'"),
            std::string::npos);
}

TEST(Registry, RefusesTheSameNameTwiceAndAdditionsAfterSealing) {
  Registry registry;
  registry.add(whole("flash_forward").alias("ff"));
  message_of(ErrorKind::internal, [&] { registry.add(whole("flash_forward")); });
  message_of(ErrorKind::internal, [&] { registry.add(whole("ff")); });
  registry.seal();
  message_of(ErrorKind::internal, [&] { registry.add(whole("other")); });
}

// What this program declares, and how often it was described.
int g_described = 0;

Experiment describe_late() {
  ++g_described;
  return whole("declared_late");
}
Experiment describe_other() {
  ++g_described;
  return whole("declared_other");
}
SYSLAB_EXPERIMENT(declared_late, describe_late);
SYSLAB_EXPERIMENT(declared_other, describe_other);

TEST(Registry, DescribesOnlyWhatIsAskedForUntilItIsSealed) {
  Registry& registry = Registry::global();
  EXPECT_EQ(g_described, 0) << "before anybody asked";
  EXPECT_EQ(registry.only("declared_late").id, "declared_late");
  EXPECT_EQ(registry.only("declared_late").title, "A title");
  EXPECT_EQ(g_described, 1) << "of the other nothing was asked";
  EXPECT_EQ(message_of(ErrorKind::usage, [&] { registry.only("declared"); }), "there is no experiment 'declared'");
  registry.seal();
  EXPECT_EQ(g_described, 2) << "each once";
  EXPECT_EQ(registry.find("declared_other").id, "declared_other");
  EXPECT_EQ(registry.only("declared_other").id, "declared_other");
  EXPECT_EQ(registry.experiments().front().id, "declared_late") << "sorted";
  EXPECT_EQ(g_described, 2);
}

TEST(Registry, FindsSkipRulesThatAskForAnAxisThatDoesNotExist) {
  Registry registry;
  registry.add(whole("flash_forward").skip_if("too long", [](const Params& params, std::string_view) {
    return params.integer("sequence") > 7;
  }));
  const std::string message = message_of(ErrorKind::internal, [&] { registry.seal(); });
  EXPECT_NE(message.find("too long"), std::string::npos);
  EXPECT_NE(message.find("sequence"), std::string::npos);
}

std::string fault_of(const Builder& builder) {
  return message_of(ErrorKind::internal, [&] { const Experiment built = builder; });
}

TEST(Builder, RefusesWhatIsNotWhole) {
  EXPECT_NE(fault_of(experiment("x").runs([](worker::CaseContext&) {})).find("no title"), std::string::npos);
  EXPECT_NE(fault_of(experiment("x").title("t")).find("no function"), std::string::npos);
  EXPECT_NE(fault_of(whole("no name")).find("no name"), std::string::npos);
  EXPECT_NE(fault_of(whole("x").problem("2024", "x", 5)).find("2024"), std::string::npos);
}

TEST(Builder, RefusesAxesThatAreReservedEmptyRepeatedOrOfMixedTypes) {
  EXPECT_NE(fault_of(whole("x").axis("impl", {"a"}, "")).find("reserved"), std::string::npos);
  EXPECT_NE(fault_of(whole("x").axis("dim", {}, "")).find("no values"), std::string::npos);
  EXPECT_NE(fault_of(whole("x").axis("seq", {std::int64_t{1}}, "")).find("twice"), std::string::npos);
  EXPECT_NE(fault_of(whole("x").axis("dim", {std::int64_t{1}, 0.5}, "")).find("mixes types"), std::string::npos);
}

TEST(Builder, RefusesPresetsThatNameWhatDoesNotExist) {
  EXPECT_NE(fault_of(whole("x").preset("smoke", {{"sek", {std::int64_t{1}}}})).find("'sek'"), std::string::npos);
  EXPECT_NE(fault_of(whole("x").preset("smoke", {{"seq", {"many"}}})).find("'many'"), std::string::npos);
  EXPECT_NE(fault_of(whole("x").preset("smoke", {{"impl", {"naive"}}})).find("'naive'"), std::string::npos);
  const Builder closed = whole("x").closed_axis("dtype", {"fp32"}, "", {"bf16"});
  EXPECT_NE(fault_of(Builder(closed).preset("smoke", {{"dtype", {"fp8"}}})).find("'fp8'"), std::string::npos);
  const Experiment fine = Builder(closed).preset("smoke", {{"dtype", {"bf16"}}});
  EXPECT_EQ(fine.presets.size(), 1U);
}

TEST(Builder, RefusesASecondReferenceAndARepeatedImplementation) {
  const Implementation reference{.name = "reference", .teaches = "", .dtypes = {}, .role = Role::reference};
  Implementation other = reference;
  EXPECT_NE(fault_of(whole("x").implementation(reference).implementation(other)).find("twice"), std::string::npos);
  other.name = "oracle";
  EXPECT_NE(fault_of(whole("x").implementation(reference).implementation(other)).find("more than one reference"),
            std::string::npos);
}

TEST(Pow2, CountsExponents) {
  EXPECT_EQ(pow2(7, 9), (Values{std::int64_t{128}, std::int64_t{256}, std::int64_t{512}}));
  message_of(ErrorKind::internal, [] { pow2(3, 2); });
}

}  // namespace
}  // namespace syslab::registry
