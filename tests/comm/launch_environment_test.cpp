#include "comm/rendezvous/launch_environment.hpp"

#include <gtest/gtest.h>

#include "comm/rendezvous/slurm_names.hpp"
#include "core/error.hpp"

namespace syslab::comm {
namespace {

Variables torchrun() {
  return {{"RANK", "3"},
          {"WORLD_SIZE", "4"},
          {"LOCAL_RANK", "1"},
          {"LOCAL_WORLD_SIZE", "2"},
          {"MASTER_ADDR", "node7"},
          {"MASTER_PORT", "29500"},
          {"TORCHELASTIC_RUN_ID", "job"},
          {"TORCHELASTIC_RESTART_COUNT", "0"},
          {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
}

Variables open_mpi() {
  return {{"OMPI_COMM_WORLD_RANK", "1"},
          {"OMPI_COMM_WORLD_SIZE", "2"},
          {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
          {"PMIX_NAMESPACE", "1234"}};
}

Variables slurm() {
  return {{"SLURM_PROCID", "5"},
          {"SLURM_NTASKS", "7"},
          {"SLURM_LOCALID", "1"},
          {"SLURM_NODEID", "2"},
          {"SLURM_STEP_NODELIST", "gpu[07-09,12]"},
          {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"},
          {"SLURM_JOB_ID", "99"},
          {"SLURM_STEP_ID", "0"}};
}

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

std::string refusal(const Variables& variables, const LaunchOptions& options = {}) {
  try {
    const LaunchEnvironment made = launch_environment(variables, options);
    return "accepted: " + made.source;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(LaunchEnvironment, RanksThatAreAllOnOneHostMeetOnItsLoopback) {
  Variables one_host = with(torchrun(), {{"LOCAL_WORLD_SIZE", "4"}, {"LOCAL_RANK", "1"}});
  EXPECT_EQ(launch_environment(one_host).rendezvous, "tcp://127.0.0.1:29501/job.0");
  // Who does not say how many are here may mean several hosts.
  one_host.erase("LOCAL_WORLD_SIZE");
  EXPECT_EQ(launch_environment(one_host).rendezvous, "tcp://node7:29501/job.0");
}

TEST(LaunchEnvironment, NobodySaysAnythingIsOneProcess) {
  const LaunchEnvironment made = launch_environment({{"PATH", "/bin"}});
  EXPECT_EQ(made.rank, 0);
  EXPECT_EQ(made.size, 1);
  EXPECT_EQ(made.local_size, 1);
  EXPECT_EQ(made.source, "one process");
  EXPECT_EQ(made.rendezvous, "");
}

TEST(LaunchEnvironment, TorchrunIsReadAndItsAgentsPortIsLeftAlone) {
  LaunchEnvironment made = launch_environment(torchrun());
  EXPECT_EQ(made.rank, 3);
  EXPECT_EQ(made.size, 4);
  EXPECT_EQ(made.local_rank, 1);
  EXPECT_EQ(made.local_size, 2);
  EXPECT_EQ(made.host, "node7");
  EXPECT_EQ(made.source, "torchrun");
  EXPECT_EQ(made.rendezvous, "tcp://node7:29501/job.0");
  made = launch_environment(with(torchrun(), {{"TORCHELASTIC_USE_AGENT_STORE", "False"}}));
  EXPECT_EQ(made.rendezvous, "tcp://node7:29500/job.0");
  // A restart is another job to the rendezvous.
  made = launch_environment(with(torchrun(), {{"TORCHELASTIC_RESTART_COUNT", "1"}}));
  EXPECT_EQ(made.rendezvous, "tcp://node7:29501/job.1");
}

TEST(LaunchEnvironment, OpenMpiOnOneHostMeetsOnTheLoopback) {
  const LaunchEnvironment made = launch_environment(open_mpi());
  EXPECT_EQ(made.rank, 1);
  EXPECT_EQ(made.size, 2);
  EXPECT_EQ(made.local_rank, 1);
  EXPECT_EQ(made.source, "Open MPI");
  EXPECT_TRUE(made.rendezvous.starts_with("tcp://127.0.0.1:")) << made.rendezvous;
  EXPECT_EQ(launch_environment(with(open_mpi(), {{"OMPI_COMM_WORLD_RANK", "0"}})).rendezvous, made.rendezvous);
  EXPECT_NE(launch_environment(with(open_mpi(), {{"PMIX_NAMESPACE", "1235"}})).rendezvous, made.rendezvous);
}

TEST(LaunchEnvironment, OpenMpiOnSeveralHostsNeedsToBeToldWhere) {
  const Variables two_hosts =
      with(open_mpi(), {{"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}});
  EXPECT_EQ(launch_environment(two_hosts).rendezvous, "");
  const Variables told = with(two_hosts, {{"SYSLAB_RENDEZVOUS", "tcp://head:7000/x"}});
  EXPECT_EQ(launch_environment(told).rendezvous, "tcp://head:7000/x");
  EXPECT_EQ(launch_environment(told).source, "Open MPI");
}

TEST(LaunchEnvironment, PmiIsRead) {
  const LaunchEnvironment made = launch_environment(
      {{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "3"}, {"PMI_JOBID", "j"}});
  EXPECT_EQ(made.rank, 1);
  EXPECT_EQ(made.size, 3);
  EXPECT_EQ(made.local_size, 3);
  EXPECT_EQ(made.source, "PMI");
  EXPECT_TRUE(made.rendezvous.starts_with("tcp://127.0.0.1:")) << made.rendezvous;
}

TEST(LaunchEnvironment, ASlurmStepMeetsOnItsFirstHost) {
  const LaunchEnvironment made = launch_environment(slurm());
  EXPECT_EQ(made.rank, 5);
  EXPECT_EQ(made.size, 7);
  EXPECT_EQ(made.local_rank, 1);
  EXPECT_EQ(made.local_size, 2);
  EXPECT_EQ(made.host, "gpu07");
  EXPECT_EQ(made.source, "Slurm");
  EXPECT_TRUE(made.rendezvous.starts_with("tcp://gpu07:")) << made.rendezvous;
  EXPECT_TRUE(made.rendezvous.ends_with("/slurm-99.0")) << made.rendezvous;
}

TEST(LaunchEnvironment, ABatchScriptOfSlurmIsNoRank) {
  const LaunchEnvironment made =
      launch_environment({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_JOB_ID", "1"}});
  EXPECT_EQ(made.size, 1);
  EXPECT_EQ(made.source, "one process");
}

TEST(LaunchEnvironment, ThePrecedenceIsOptionsOwnTorchrunOpenMpiPmiSlurm) {
  Variables all = slurm();
  EXPECT_EQ(launch_environment(all).source, "Slurm");
  all = with(all, {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}});
  EXPECT_EQ(launch_environment(all).source, "PMI");
  all = with(all, open_mpi());
  EXPECT_EQ(launch_environment(all).source, "Open MPI");
  all = with(all, torchrun());  // an agent a host, started by mpirun: the sizes differ and are both right
  EXPECT_EQ(launch_environment(all).source, "torchrun");
  all = with(all, {{"SYSLAB_RANK", "6"}, {"SYSLAB_WORLD_SIZE", "9"}});
  EXPECT_EQ(launch_environment(all).rank, 6);
  LaunchOptions options;
  options.rank = 8;
  options.rendezvous = "file:here";
  const LaunchEnvironment made = launch_environment(all, options);
  EXPECT_EQ(made.rank, 8);
  EXPECT_EQ(made.size, 9);
  EXPECT_EQ(made.rendezvous, "file:here");
}

TEST(LaunchEnvironment, ContradictionsNameBothVariablesAndTheirValues) {
  std::string said = refusal(with(torchrun(), {{"RANK", "4"}}));
  EXPECT_TRUE(has(said, "RANK=4") && has(said, "WORLD_SIZE=4")) << said;
  said = refusal(with(torchrun(), {{"LOCAL_WORLD_SIZE", "5"}}));
  EXPECT_TRUE(has(said, "LOCAL_WORLD_SIZE=5") && has(said, "WORLD_SIZE=4")) << said;
  said = refusal(with(torchrun(), {{"LOCAL_RANK", "2"}}));
  EXPECT_TRUE(has(said, "LOCAL_RANK=2") && has(said, "LOCAL_WORLD_SIZE=2")) << said;
  said = refusal(with(open_mpi(), {{"RANK", "1"}, {"WORLD_SIZE", "4"}}));
  EXPECT_TRUE(has(said, "WORLD_SIZE=4") && has(said, "OMPI_COMM_WORLD_SIZE=2")) << said;
  said = refusal(with(open_mpi(), {{"RANK", "0"}, {"WORLD_SIZE", "2"}}));
  EXPECT_TRUE(has(said, "RANK=0") && has(said, "OMPI_COMM_WORLD_RANK=1")) << said;
  said = refusal({{"SYSLAB_RANK", "0"}});
  EXPECT_TRUE(has(said, "SYSLAB_RANK=0") && has(said, "SYSLAB_WORLD_SIZE")) << said;
  said = refusal({{"OMPI_COMM_WORLD_SIZE", "2"}});
  EXPECT_TRUE(has(said, "OMPI_COMM_WORLD_SIZE=2") && has(said, "OMPI_COMM_WORLD_RANK")) << said;
  LaunchOptions options;
  options.rank = 2;
  options.size = 2;
  said = refusal({}, options);
  EXPECT_TRUE(has(said, "--rank=2") && has(said, "--world-size=2")) << said;
}

TEST(LaunchEnvironment, NumbersThatAreNoneAreNamed) {
  std::string said = refusal(with(torchrun(), {{"RANK", "one"}}));
  EXPECT_TRUE(has(said, "RANK=one")) << said;
  said = refusal({{"SYSLAB_RANK", "-1"}, {"SYSLAB_WORLD_SIZE", "2"}});
  EXPECT_TRUE(has(said, "SYSLAB_RANK=-1")) << said;
  said = refusal({{"SYSLAB_RANK", "0"}, {"SYSLAB_WORLD_SIZE", "0"}});
  EXPECT_TRUE(has(said, "SYSLAB_WORLD_SIZE=0")) << said;
}

TEST(LaunchEnvironment, RankAloneIsACommonNameAndMeansNothing) {
  EXPECT_EQ(launch_environment({{"RANK", "colonel"}, {"OMPI_COMM_WORLD_SIZE", ""}}).source, "one process");
}

TEST(SlurmNames, HostListsAndTaskCountsAreExpanded) {
  EXPECT_EQ(slurm_first_host("gpu[07-09,12],login1"), "gpu07");
  EXPECT_EQ(slurm_first_host("rack[2-3]node[1,4]"), "rack2node1");
  EXPECT_EQ(slurm_first_host("alone"), "alone");
  EXPECT_EQ(slurm_first_host("one,two"), "one");
  EXPECT_EQ(slurm_first_host("broken[1-2"), "");
  EXPECT_EQ(slurm_tasks_per_node("2(x3),1"), (std::vector<int>{2, 2, 2, 1}));
  EXPECT_EQ(slurm_tasks_per_node(""), std::vector<int>{});
  EXPECT_EQ(slurm_tasks_per_node("2(y3)"), std::vector<int>{});
}

}  // namespace
}  // namespace syslab::comm
