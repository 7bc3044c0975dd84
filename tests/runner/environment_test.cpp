#include "runner/environment.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/text/json_text.hpp"
#include "runner/known_facts.hpp"
#include "runner/variables.hpp"

namespace syslab::runner {
namespace {

TEST(Environment, NamesThisMachine) {
  const Json facts = environment_facts();
  EXPECT_FALSE(facts.at("host").at("name").get<std::string>().empty());
  EXPECT_FALSE(facts.at("host").at("kernel").get<std::string>().empty());
  EXPECT_FALSE(facts.at("cpu").at("model").get<std::string>().empty());
  EXPECT_GE(facts.at("cpu").at("usable").get<int>(), 1);
  EXPECT_GT(facts.at("memory").at("total_bytes").get<std::int64_t>(), 1 << 28);
  EXPECT_TRUE(facts.at("gpu").is_array());
  if (facts.at("gpu").empty()) {
    EXPECT_TRUE(facts.at("cuda").contains("missing"));
  }
}

TEST(Environment, HasOnlyKnownFacts) {
  const Json facts = facts_for_strangers(environment_facts());
  EXPECT_EQ(unknown_facts(facts), std::vector<std::string>{});
  EXPECT_EQ(unknown_facts(parse_json(json_text(facts))), std::vector<std::string>{}) << "as another reads it";
}

TEST(Environment, KnowsFactsByPlaceAndType) {
  const Json facts{{"cpu", {{"model", "x"}, {"cores", 2}, {"of", 1}, {"smt", 1}, {"features", {"avx2", 1}}}},
                   {"gpu", {{{"name", "x"}, {"ecc", "no"}}, {{"of", 1}}}},
                   {"env", {{"OMP_NUM_THREADS", "2"}, {"HOME", "x"}}},
                   {"limits", {{"open_files", "unlimited"}, {"processes", -1}, {"stack_bytes", "a lot"}}},
                   {"host", "x"},
                   {"verdict", {{"is", "confirmed"}}}};
  EXPECT_EQ(unknown_facts(facts),
            (std::vector<std::string>{"/cpu/features", "/cpu/of", "/cpu/smt", "/env/HOME", "/gpu/0/ecc", "/gpu/1/of",
                                      "/host", "/limits/processes", "/limits/stack_bytes", "/verdict"}));
  EXPECT_EQ(unknown_facts(Json{{"gpu", "x"}}), std::vector<std::string>{"/gpu"});
  EXPECT_EQ(printable_facts({{"a", {"x\n", 1}}}), (Json{{"a", {"x\\x0a", 1}}}));
}

TEST(Environment, IsTheSameWhenAskedTwice) { EXPECT_EQ(environment_facts(), environment_facts()); }

TEST(Environment, KeepsWhatSteersLibrariesAndDropsTheRest) {
  const Json kept =
      storable_variables({"OMP_NUM_THREADS=2", "CUDA_VISIBLE_DEVICES=0", "NCCL_DEBUG=INFO", "RANK=3",
                          "SLURM_JOB_NUM_NODES=4", "HOME=/home/me", "EDITOR=vi", "OMP_EMPTY=", "broken", "RANKING=1"});
  EXPECT_EQ(kept, (Json{{"OMP_NUM_THREADS", "2"},
                        {"CUDA_VISIBLE_DEVICES", "0"},
                        {"NCCL_DEBUG", "INFO"},
                        {"RANK", "3"},
                        {"SLURM_JOB_NUM_NODES", "4"},
                        {"OMP_EMPTY", ""}}));
}

// They change what is measured as NCCL's do. Kept as they are written, and only where they are set.
TEST(Environment, KeepsTheOptionsOfCopyEngines) {
  const auto kept = [] { return environment_facts().at("env").value("SYSLAB_COPY_ENGINES", "not set"); };
  ::unsetenv("SYSLAB_COPY_ENGINES");
  EXPECT_EQ(kept(), "not set");
  ::setenv("SYSLAB_COPY_ENGINES", "slots=4,slot=32Mi,least=2Mi", 1);
  EXPECT_EQ(kept(), "slots=4,slot=32Mi,least=2Mi");
  ::unsetenv("SYSLAB_COPY_ENGINES");
}

TEST(Environment, NothingThatLooksLikeASecretIsKept) {
  for (const char* name : {"SLURM_JWT_TOKEN", "NCCL_API_KEY", "CUDA_SECRET", "SYSLAB_PASSWORD", "OMPI_COMM_WORLD_AUTH",
                           "SYSLAB_credentials", "SLURM_passphrase", "AWS_SECRET_ACCESS_KEY"}) {
    EXPECT_FALSE(is_storable_variable(name, "x")) << name;
  }
  EXPECT_FALSE(is_storable_variable("SYSLAB_REMOTE", "https://me:hunter2@example.org"));
  EXPECT_FALSE(is_storable_variable("NCCL_OPTIONS", "Authorization: Bearer abc"));
  EXPECT_TRUE(is_storable_variable("NCCL_SOCKET_IFNAME", "eth0"));
}

// They change no time, and tell of their owner's folders.
TEST(Environment, WhereSomethingLiesIsNotKept) {
  for (const char* name : {"SYSLAB_BINARY", "SYSLAB_BUILDS", "SYSLAB_DB", "SYSLAB_LIBRARY", "SYSLAB_PYTHON",
                           "SYSLAB_PYTHON_DIR", "SYSLAB_RENDEZVOUS", "SYSLAB_WALLS_HIDE", "NCCL_DEBUG_FILE"}) {
    EXPECT_FALSE(is_storable_variable(name, "build/syslab")) << name;
  }
  for (const char* value : {"/home/ann/cuda", "~/cuda", "./cuda", "../cuda", "file:///home/ann/cuda"}) {
    EXPECT_FALSE(is_storable_variable("CUDA_HOME", value)) << value;
  }
  EXPECT_TRUE(is_storable_variable("SYSLAB_AUTHOR", "ann"));
  for (const char* name : {"NCCL_AUTH", "SLURM_OAUTH_FILE", "SYSLAB_AUTHORIZATION", "SLURM_auth"}) {
    EXPECT_FALSE(is_storable_variable(name, "ann")) << name;
  }
  EXPECT_TRUE(is_storable_variable("LD_PRELOAD", "/home/ann/libjemalloc.so")) << "what is measured has it in it";
  EXPECT_TRUE(is_storable_variable("NCCL_TOPO_FILE", "/etc/topology.xml"));
}

TEST(Environment, StrangersReadOfAMachineWhatItIsAndNotWhoseItIs) {
  const Json told = facts_for_strangers({{"host", {{"name", "annsbox"}, {"kernel", "6.1"}}},
                                         {"cpu", {{"model", "Xeon"}}},
                                         {"gpu", {{{"name", "H100"}, {"uuid", "GPU-1"}}}},
                                         {"env",
                                          {{"OMP_NUM_THREADS", "2"},
                                           {"SYSLAB_KERNEL_CODE", "off"},
                                           {"SYSLAB_AUTHOR", "ann"},
                                           {"SLURM_JOB_ACCOUNT", "anns-group"},
                                           {"MASTER_ADDR", "annsbox"},
                                           {"NVIDIA_REQUIRE_CUDA", "cuda>=13.0"},
                                           {"CUDA_HOME", "/home/ann/cuda"},
                                           {"CUDA_VISIBLE_DEVICES", "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"},
                                           {"NCCL_COMM_ID", "annsbox:29500"},
                                           {"NCCL_TOPO_FILE", "/home/ann/topology.xml"},
                                           {"LD_PRELOAD", "/home/ann/libjemalloc.so"}}}});
  EXPECT_EQ(told, (Json{{"host", {{"kernel", "6.1"}}},
                        {"cpu", {{"model", "Xeon"}}},
                        {"gpu", {{{"name", "H100"}}}},
                        {"env", {{"OMP_NUM_THREADS", "2"}, {"SYSLAB_KERNEL_CODE", "off"}}}}));
}

TEST(Environment, ASecretOfThisProcessDoesNotReachTheFacts) {
  ::setenv("NCCL_TEST_TOKEN", "hunter2", 1);
  EXPECT_EQ(environment_facts().dump().find("hunter2"), std::string::npos);
  ::unsetenv("NCCL_TEST_TOKEN");
}

Json h100() {
  return {
      {"host", {{"name", "node1"}}},
      {"cpu", {{"model", "Xeon"}, {"cores", 48}, {"usable", 16}}},
      {"memory", {{"total_bytes", 128}}},
      {"cuda", {{"driver", "580.65.06"}}},
      {"env", {{"OMP_NUM_THREADS", "2"}}},
      {"gpu", {{{"name", "H100"}, {"uuid", "GPU-1"}, {"memory_bytes", 80}, {"power_limit_w", 700.0}, {"ecc", true}}}}};
}

TEST(ComparabilityKey, IgnoresWhatMovesWithoutChangingSpeed) {
  const std::string key = comparability_key(h100());
  EXPECT_EQ(key.size(), 64U);
  Json other = h100();
  other["host"]["name"] = "node2";
  other["gpu"][0]["uuid"] = "GPU-2";
  other["memory"]["total_bytes"] = 127;
  other["cuda"]["driver"] = "580.95.01";
  other["env"] = Json::object();
  EXPECT_EQ(comparability_key(other), key);
  other["gpu"].push_back(other["gpu"][0]);
  EXPECT_EQ(comparability_key(other), key) << "a second card of the same kind";
}

TEST(ComparabilityKey, ChangesWithWhatChangesSpeed) {
  const std::string key = comparability_key(h100());
  const std::pair<const char*, Json> changes[] = {
      {"/gpu/0/name", "H200"},   {"/gpu/0/memory_bytes", 141}, {"/gpu/0/power_limit_w", 500.0},
      {"/cuda/driver", "590.1"}, {"/cpu/model", "EPYC"},       {"/cpu/cores", 64},
      {"/cpu/usable", 2}};
  for (const auto& [where, value] : changes) {
    Json other = h100();
    other[Json::json_pointer(where)] = value;
    EXPECT_NE(comparability_key(other), key) << where;
  }
}

TEST(ComparabilityKey, OnOneGpuIsThatOfTheGpuWhateverCoresAndOtherCardsThereAre) {
  const std::string key = comparability_key_on_one_gpu(h100());
  Json larger = h100();
  larger["cpu"]["cores"] = 64;
  larger["cpu"]["usable"] = 18;
  larger["gpu"].push_back(larger["gpu"][0]);
  EXPECT_EQ(comparability_key_on_one_gpu(larger), key);
  EXPECT_NE(comparability_key(larger), comparability_key(h100()));
  for (const auto& [where, value] :
       {std::pair<const char*, Json>{"/gpu/0/name", "H200"}, {"/cpu/model", "EPYC"}, {"/cuda/driver", "590.1"}}) {
    Json other = h100();
    other[Json::json_pointer(where)] = value;
    EXPECT_NE(comparability_key_on_one_gpu(other), key) << where;
  }
}

}  // namespace
}  // namespace syslab::runner
