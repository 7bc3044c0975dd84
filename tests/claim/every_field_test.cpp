// Each field of a claim is changed, and the file sealed again, as a forger would. `verify` refuses the file, lists the
// difference, or the field is named below. A new field fails until somebody decides, and says so in docs/claims.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "claim/alteration.hpp"
#include "claim/derived.hpp"
#include "claim/differences.hpp"
#include "claim/known_fields.hpp"
#include "core/error.hpp"
#include "core/text/json_text.hpp"
#include "runner/known_facts.hpp"
#include "tests/claim/some_claim.hpp"

namespace syslab::claim {
namespace {

// Nobody but the author knows it: the page says "claimed" in front.
const std::set<std::string> kPrintedAsClaimed{"/made_at",
                                              "/faster/laws/*/name",
                                              "/slower/laws/*/name",
                                              "/faster/laws/*/contract",
                                              "/slower/laws/*/contract",
                                              "/faster/laws/*/outcome",
                                              "/slower/laws/*/outcome",
                                              "/faster/laws/*/inputs",
                                              "/slower/laws/*/inputs",
                                              "/cases/*/warnings/*/number"};
// What `verify` does as the file says, so that its answer is about that.
const std::set<std::string> kFollowed{"/syslab_claim",          "/claim",           "/question/assignments/*",
                                      "/question/devices/*",    "/question/seed",   "/question/protocol",
                                      "/question/data",         "/question/preset", "/question/reads",
                                      "/question/experiments/*"};
// Which of several equal cards it was, and the number of a launch that may follow one that was cut: neither is printed.
const std::set<std::string> kIgnored{"/environment/gpu/*/uuid", "/environment/gpu/*/pci",
                                     "/environment/env/CUDA_VISIBLE_DEVICES", "/cases/*/blocks/*/launch"};
// Of all families that a claim may have, and of those that it may not but that its reader takes: paths, jobs, hosts.
constexpr const char* kVariables[]{"CUDA_VISIBLE_DEVICES",
                                   "CUDA_LAUNCH_BLOCKING",
                                   "NCCL_ALGO",
                                   "NCCL_TOPO_FILE",
                                   "NCCL_COMM_ID",
                                   "GLOO_SOCKET_IFNAME",
                                   "OMP_NUM_THREADS",
                                   "OMP_PLACES",
                                   "GOMP_SPINCOUNT",
                                   "KMP_AFFINITY",
                                   "OPENBLAS_CORETYPE",
                                   "MKL_CBWR",
                                   "BLIS_JC_NT",
                                   "MALLOC_ARENA_MAX",
                                   "TORCH_LOGS",
                                   "SYSLAB_WALLS",
                                   "SYSLAB_KERNEL_CODE",
                                   "SYSLAB_HOST",
                                   "SLURM_JOB_ID",
                                   "NVIDIA_TF32_OVERRIDE",
                                   "LD_PRELOAD",
                                   "LD_LIBRARY_PATH",
                                   "MASTER_ADDR",
                                   "RANK",
                                   "GLIBC_TUNABLES",
                                   "PBS_JOBID",
                                   "PMI_RANK",
                                   "LSB_JOBINDEX",
                                   "WORLD_SIZE",
                                   "OMPI_COMM_WORLD_RANK"};
// What a forger may write there: a path, a fraction, a serial, signs that a page cannot show.
constexpr const char* kValues[]{"64/2", "faketime.so", "lib/faketime.so", "GPU-8932f937", "/lib/x.so", "2\n", "", "3"};

// They mean nothing of programs, and have one value there.
const std::set<std::string> kOfKernels{"/question/seed", "/question/data"};

// A claim with every field that one of kernels has.
File full_claim() {
  File file = test::some_claim();
  file.question.devices = {"cuda"};
  file.question.preset = "smoke";
  file.slower.laws = file.faster.laws;
  file.digests = {{"reference", "00ff"}, {"inputs", "ff00"}};
  Case& one = file.cases.front();
  one.slower_code = "feed";
  one.faster_mhz = 1980;
  one.slower_mhz = 1965;
  one.warnings = {{stats::WarningCode::forward_untimed, "me", "x", 0.5}};
  file.build_json =
      R"({"version":"0.1.0","git_sha":"4f2c","git_dirty":false,"git_diff":"","compiler":"gcc 12","flags":"-O2",)"
      R"("build_type":"release","cuda":true})";
  Json facts = Json::object();
  for (const runner::Fact& fact : runner::facts_told_to_strangers()) {
    std::string path(fact.path);
    if (const std::size_t star = path.find('*'); star != std::string::npos) {
      path.replace(star, 1, path.starts_with("/env/") ? "OMP_NUM_THREADS" : "0");
    }
    if (path.starts_with("/env/")) facts["env"]["CUDA_VISIBLE_DEVICES"] = "0";
    const std::map<runner::FactType, Json> values{
        {runner::FactType::text, "2"},  {runner::FactType::texts, {"avx2", "fma"}},
        {runner::FactType::count, 2U},  {runner::FactType::number, 2.5},
        {runner::FactType::flag, true}, {runner::FactType::limit, 2U}};
    Json& place = facts[Json::json_pointer(path.substr(0, path.rfind('/')))];
    if (path.starts_with("/gpu/")) {
      facts["gpu"].is_array() ? void() : void(facts["gpu"] = Json::array({Json::object()}));
      facts["gpu"][0][path.substr(path.rfind('/') + 1)] = values.at(fact.type);
    } else {
      place[path.substr(path.rfind('/') + 1)] = values.at(fact.type);
    }
  }
  file.environment_json = json_text(facts);
  file.machine_kind = runner::comparability_key(facts);
  return file;
}

// The same, about programs.
File full_claim_of_programs() {
  File file = full_claim();
  file.question.experiments = {"command"};
  file.question.reads = "took {} ms";
  file.faster.command = "./bench new";
  file.slower.command = "./bench old";
  file.cases[0].experiment = "command";
  file.cases[0].title = "command seq=128";
  return file;
}

// "/cases/0/blocks/1/order" → "/cases/*/blocks/*/order". A case's axes have names of their own.
std::string pattern_of(const std::string& path) {
  std::string pattern;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at + 1), path.size());
    const std::string part = path.substr(at + 1, end - at - 1);
    pattern += "/" + (part.find_first_not_of("0123456789") == std::string::npos ? "*" : part);
    at = end;
  }
  if (pattern.starts_with("/environment/env/") && !kIgnored.contains(pattern)) return "/environment/env/*";
  return pattern.starts_with("/cases/*/params/") ? "/cases/*/params" : pattern;
}

// Of the same type, and such that nothing but its meaning has changed where that is possible.
std::vector<Json> other_values(const Json& value) {
  if (value.is_boolean()) return {!value.get<bool>()};
  if (value.is_number_float()) return {value.get<double>() * 2, value.get<double>() * 1.5};
  if (value.is_number()) return {value.get<std::int64_t>() + 1, 2 * value.get<std::int64_t>() + 3, 1'000'000'000};
  if (!value.is_string()) return {};
  std::string text = value.get<std::string>(), digit = text, year = text;
  std::vector<Json> others{text + "x", text + "/2", "a/b"};
  if (!text.empty() && text.find_first_not_of("0123456789abcdef") == std::string::npos) {
    digit.back() = digit.back() == '0' ? '1' : '0';
    others.push_back(digit);
  }
  // Another word of the same kind.
  if (text == "kernel") others.emplace_back("quick");
  if (contract_of(text)) others.emplace_back(text == "full" ? "handout" : "full");
  if (outcome_of(text)) others.emplace_back(text == "passed" ? "falsified" : "passed");
  if (text.starts_with("2026-")) others.push_back(year.replace(0, 4, "2025"));
  return others;
}

// What `verify` says of such a file where `here` was measured: nothing where it believes it.
bool is_noticed(const Json& changed, const File& here) {
  try {
    const File file = from_text("x.claim", json_text(changed));
    if (!file.altered.empty()) return true;
    require_same_cases(file, here);
    return !differences(file, here, true).empty();
  } catch (const Error&) {
    return true;
  }
}

TEST(EveryField, IsThereInTheClaimThatIsChanged) {
  std::set<std::string> there;
  for (const File& whole : {full_claim(), full_claim_of_programs()}) {
    const Json claim = parse_json(to_text(whole)), leaves = claim.flatten();
    for (const auto& [path, value] : leaves.items()) {
      std::string pattern = pattern_of(path);
      if (pattern.starts_with("/environment/cpu/features")) pattern = "/environment/cpu/features";
      there.insert(pattern.starts_with("/seal/") ? "/seal" : pattern);
    }
    const File read = from_text("x.claim", json_text(claim));
    ASSERT_TRUE(read.altered.empty()) << to_string(read.altered.front());
    EXPECT_EQ(differences(read, whole, true), std::vector<std::string>{});
  }
  for (const std::string_view field : known_fields()) {
    if (field == "/environment") continue;
    EXPECT_TRUE(there.contains(std::string(field))) << field;
  }
  for (const runner::Fact& fact : runner::facts_told_to_strangers()) {
    EXPECT_TRUE(there.contains("/environment" + std::string(fact.path))) << fact.path;
  }
}

// Adds the fields of the claim that may be changed without a word.
void add_believed(std::set<std::string>& believed, const File& here, const std::set<std::string>& fixed) {
  const Json claim = parse_json(to_text(here)), leaves = claim.flatten();
  for (const auto& [path, value] : leaves.items()) {
    const std::string pattern = pattern_of(path);
    if (pattern.starts_with("/seal/")) continue;  // it is made anew
    const bool may_be = !fixed.contains(pattern) && (kPrintedAsClaimed.contains(pattern) ||
                                                     kFollowed.contains(pattern) || kIgnored.contains(pattern));
    for (const Json& other : other_values(value)) {
      Json changed = claim;
      changed[Json::json_pointer(path)] = other;
      changed["seal"] = seal_of(changed);
      if (is_noticed(changed, here)) continue;
      believed.insert(pattern);
      EXPECT_TRUE(may_be) << path << " " << value << " → " << other;
    }
  }
}

TEST(EveryField, IsRefusedListedOrPrintedAsClaimed) {
  std::set<std::string> believed;
  add_believed(believed, full_claim(), {});
  add_believed(believed, full_claim_of_programs(), kOfKernels);
  // Those that are noticed all the same are in no list.
  for (const auto* list : {&kPrintedAsClaimed, &kFollowed, &kIgnored}) {
    for (const std::string& pattern : *list) {
      if (pattern != "/syslab_claim" && pattern != "/claim" && pattern != "/question/experiments/*") {
        EXPECT_TRUE(believed.contains(pattern)) << pattern;
      }
    }
  }
}

// In the claim, here, or in both with other values.
TEST(EveryField, AVariableIsListedWhereItDiffersWhateverItsValueIs) {
  const File here = full_claim();
  const Json claim = parse_json(to_text(here));
  for (const std::string name : kVariables) {
    if (name == "CUDA_VISIBLE_DEVICES") continue;  // of kIgnored
    for (const char* const value : kValues) {
      Json changed = claim;
      changed["environment"]["env"][name] = value;
      changed["seal"] = seal_of(changed);
      EXPECT_TRUE(is_noticed(changed, here)) << name << "=" << value;
      changed["environment"]["env"].erase(name);
      changed["seal"] = seal_of(changed);
      const bool was_there = claim["environment"]["env"].contains(name);
      EXPECT_EQ(is_noticed(changed, here), was_there) << name << " is not in the claim";
    }
  }
}

TEST(Differences, AValueThatNoClaimHasIsListed) {
  const File here = full_claim();
  const auto listed = [&](const std::string& name, const std::string& value) {
    Json changed = parse_json(to_text(here));
    changed["environment"]["env"][name] = value;
    changed["seal"] = seal_of(changed);
    const File file = from_text("x.claim", json_text(changed));
    EXPECT_TRUE(file.altered.empty());
    return differences(file, here, true);
  };
  EXPECT_EQ(listed("OMP_NUM_THREADS", "64/2"), std::vector<std::string>{"OMP_NUM_THREADS: claim “64/2”, here “2”"});
  EXPECT_EQ(listed("LD_PRELOAD", "faketime.so"),
            std::vector<std::string>{"LD_PRELOAD: claim “faketime.so”, here not told"});
  EXPECT_EQ(listed("MKL_CBWR", "AVX2"), std::vector<std::string>{"MKL_CBWR: claim “AVX2”, here not set"});
}

TEST(EveryField, AListIsNotedWhereItGrows) {
  const Json claim = parse_json(to_text(full_claim()));
  for (const char* path :
       {"/cases", "/cases/0/blocks", "/cases/0/warnings", "/environment/gpu", "/environment/cpu/features"}) {
    Json changed = claim;
    Json& list = changed[Json::json_pointer(path)];
    list.push_back(list.front());
    if (std::string(path).ends_with("warnings")) list.back()["about"] = "y";
    if (std::string(path).ends_with("blocks")) list.back()["block"] = 7;
    changed["seal"] = seal_of(changed);
    EXPECT_TRUE(is_noticed(changed, full_claim())) << path;
  }
}

TEST(EveryField, IsInTheTableOfTheDocs) {
  std::ifstream file(SYSLAB_SOURCE_ROOT "/docs/claims.md");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  for (const std::string_view field : known_fields()) {
    std::string name(field.substr(1));
    if (name.starts_with("slower/")) name.replace(0, 6, "faster");
    EXPECT_NE(text.find("`" + name + "`"), std::string::npos) << name;
  }
}

TEST(Differences, AGpusClockIsToldWhereItDiffers) {
  const File claim = full_claim();
  File here = claim;
  here.cases[0].faster_mhz = 1965;
  EXPECT_TRUE(differences(claim, here, true).empty()) << "a step of the clock";
  here.cases[0].faster_mhz = 1755;
  EXPECT_EQ(
      differences(claim, here, true),
      std::vector<std::string>{"the GPU's clock under me in flash_forward seq=128: claim 1980 MHz, here 1755 MHz"});
}

TEST(Differences, TimesAreComparedOnMachinesOfOneKind) {
  const File claim = full_claim();
  File here = claim;
  for (Block& block : here.cases[0].blocks) {
    for (double& seconds : block.seconds) seconds *= 2;
  }
  EXPECT_EQ(differences(claim, here, true).size(), 2U);
  EXPECT_TRUE(differences(claim, here, false).empty());
}

}  // namespace
}  // namespace syslab::claim
