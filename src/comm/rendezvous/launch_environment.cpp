#include "comm/rendezvous/launch_environment.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "comm/rendezvous/slurm_names.hpp"
#include "core/error.hpp"
#include "core/files/hash.hpp"

extern char** environ;

namespace syslab::comm {
namespace {

constexpr const char* kLoopback = "127.0.0.1";

// A number and the name it was given under, for messages.
struct Setting {
  std::string name;
  int value = 0;
  std::string text() const { return fmt::format("{}={}", name, value); }
};

std::string_view text_of(const Variables& variables, std::string_view name) {
  const auto found = variables.find(name);
  return found == variables.end() ? std::string_view{} : std::string_view(found->second);
}

std::optional<Setting> number(const Variables& variables, std::string_view name) {
  const std::string_view text = text_of(variables, name);
  if (text.empty()) return std::nullopt;
  Setting setting{std::string(name)};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), setting.value);
  if (error != std::errc{} || end != text.data() + text.size() || setting.value < 0) {
    throw Error(ErrorKind::usage, fmt::format("{}={} is no number of ranks; it is a whole number from 0", name, text));
  }
  return setting;
}

// The first of several names that is set.
std::optional<Setting> number(const Variables& variables, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    if (auto found = number(variables, name)) return found;
  }
  return std::nullopt;
}

// What one source says.
struct Said {
  std::string source;
  std::optional<Setting> rank, size, local_rank, local_size;
};

void expect_below(const Setting& rank, const Setting& size) {
  if (rank.value >= size.value) {
    throw Error(ErrorKind::usage, fmt::format("{} and {} contradict each other: ranks count from 0 and stay below the "
                                              "size; set both as the launcher has them, or neither",
                                              rank.text(), size.text()));
  }
}

void expect_whole(const Said& said, std::string_view rank_name, std::string_view size_name) {
  if (said.rank && said.size) return;
  if (!said.rank && !said.size) return;
  const Setting& there = said.rank ? *said.rank : *said.size;
  throw Error(ErrorKind::usage, fmt::format("{} is set and {} is not: a rank needs both; set it, or unset {}",
                                            there.text(), said.rank ? size_name : rank_name, there.name));
}

LaunchEnvironment to_environment(const Said& said) {
  const Setting &rank = *said.rank, &size = *said.size;
  if (size.value < 1) throw Error(ErrorKind::usage, fmt::format("{}: there is at least one rank", size.text()));
  expect_below(rank, size);
  LaunchEnvironment made;
  made.source = said.source;
  made.rank = rank.value;
  made.size = size.value;
  if (said.local_size && said.local_size->value > size.value) {
    throw Error(ErrorKind::usage,
                fmt::format("{} and {} contradict each other: a host has no more ranks than there are",
                            said.local_size->text(), size.text()));
  }
  made.local_size = said.local_size ? said.local_size->value : size.value;
  made.local_rank = said.local_rank ? said.local_rank->value : rank.value % std::max(made.local_size, 1);
  made.one_host = said.local_size && made.local_size == made.size;
  if (said.local_rank) expect_below(*said.local_rank, said.local_size ? *said.local_size : size);
  return made;
}

// A port that ranks of one job derive alike, below those that the system gives to clients (32768 and up on Linux).
// Another job may derive the same: the rendezvous tries the ports behind it and tells jobs apart by their tokens.
int port_of(std::string_view token) {
  return 18'000 + static_cast<int>(std::stoul(sha256_hex(token).substr(0, 6), nullptr, 16) % 14'000);
}

std::string tcp(const LaunchEnvironment& made, int port, std::string_view token) {
  const std::string_view host = made.one_host ? std::string_view(kLoopback) : made.host;
  const bool bare_ipv6 = host.find(':') != std::string_view::npos && !host.starts_with('[');
  return fmt::format("tcp://{}{}{}:{}/{}", bare_ipv6 ? "[" : "", host, bare_ipv6 ? "]" : "", port, token);
}

// MASTER_ADDR and MASTER_PORT, which torchrun sets and others export by hand.
void use_master(const Variables& variables, LaunchEnvironment& made, std::string_view token) {
  const std::string_view store = text_of(variables, "TORCHELASTIC_USE_AGENT_STORE");
  const bool agent_listens = store == "True" || store == "true" || store == "1";
  made.host = text_of(variables, "MASTER_ADDR");
  const auto port = number(variables, "MASTER_PORT");
  if (made.host.empty() || !port) return;
  made.rendezvous = tcp(made, port->value + (agent_listens ? 1 : 0), token);
}

// All ranks are on this host: the loopback address and a port derived from the job's name suffice, without any file.
void use_loopback(LaunchEnvironment& made, std::string_view token) {
  if (token.empty() || made.local_size != made.size) return;
  made.host = kLoopback;
  made.rendezvous = tcp(made, port_of(token), token);
}

std::optional<LaunchEnvironment> from_own(const Variables& variables, const LaunchOptions& options) {
  Said said{"options"};
  const auto choose = [&](std::optional<int> option, const char* option_name, std::string_view variable) {
    return option ? std::optional<Setting>({option_name, *option}) : number(variables, variable);
  };
  said.rank = choose(options.rank, "--rank", "SYSLAB_RANK");
  said.size = choose(options.size, "--world-size", "SYSLAB_WORLD_SIZE");
  said.local_rank = choose(options.local_rank, "--local-rank", "SYSLAB_LOCAL_RANK");
  said.local_size = choose(options.local_size, "--local-world-size", "SYSLAB_LOCAL_WORLD_SIZE");
  if (!options.rank && !options.size) said.source = "SYSLAB_RANK and SYSLAB_WORLD_SIZE";
  expect_whole(said, "SYSLAB_RANK", "SYSLAB_WORLD_SIZE");
  if (!said.rank) return std::nullopt;
  LaunchEnvironment made = to_environment(said);
  use_master(variables, made, "syslab");
  return made;
}

Said said_by_open_mpi(const Variables& variables) {
  return {"Open MPI", number(variables, "OMPI_COMM_WORLD_RANK"), number(variables, "OMPI_COMM_WORLD_SIZE"),
          number(variables, "OMPI_COMM_WORLD_LOCAL_RANK"), number(variables, "OMPI_COMM_WORLD_LOCAL_SIZE")};
}

Said said_by_pmi(const Variables& variables) {
  return {"PMI", number(variables, "PMI_RANK"), number(variables, "PMI_SIZE"),
          number(variables, {"MPI_LOCALRANKID", "SLURM_LOCALID"}), number(variables, "MPI_LOCALNRANKS")};
}

// RANK and WORLD_SIZE set by hand in addition to a launcher's own are contradictory. torchrun's are not: it may itself
// have been started by mpirun, once a host.
void expect_agreement(const Said& by_hand, const Said& launcher) {
  const auto compare = [&](const std::optional<Setting>& one, const std::optional<Setting>& other) {
    if (!one || !other || one->value == other->value) return;
    throw Error(ErrorKind::usage,
                fmt::format("{} and {} ({}) contradict each other: unset the one that is not meant, or say SYSLAB_RANK "
                            "and SYSLAB_WORLD_SIZE",
                            one->text(), other->text(), launcher.source));
  };
  compare(by_hand.size, launcher.size);
  compare(by_hand.rank, launcher.rank);
}

std::optional<LaunchEnvironment> from_torchrun(const Variables& variables) {
  const std::string_view run = text_of(variables, "TORCHELASTIC_RUN_ID");
  const bool agent = !run.empty();
  // Only one of them is set: it belongs to something else, since both names are common.
  if (!agent && (text_of(variables, "RANK").empty() || text_of(variables, "WORLD_SIZE").empty())) return std::nullopt;
  const Said said{agent ? "torchrun" : "RANK and WORLD_SIZE", number(variables, "RANK"),
                  number(variables, "WORLD_SIZE"), number(variables, "LOCAL_RANK"),
                  number(variables, "LOCAL_WORLD_SIZE")};
  expect_whole(said, "RANK", "WORLD_SIZE");
  if (!said.rank) return std::nullopt;
  if (!agent) {
    expect_agreement(said, said_by_open_mpi(variables));
    expect_agreement(said, said_by_pmi(variables));
  }
  LaunchEnvironment made = to_environment(said);
  // A restart is another run: ranks left from the first must not join the second.
  const std::string token =
      agent ? fmt::format("{}.{}", run, text_of(variables, "TORCHELASTIC_RESTART_COUNT")) : "syslab";
  use_master(variables, made, token);
  return made;
}

std::optional<LaunchEnvironment> from_open_mpi(const Variables& variables) {
  const Said said = said_by_open_mpi(variables);
  expect_whole(said, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
  if (!said.rank) return std::nullopt;
  LaunchEnvironment made = to_environment(said);
  std::string job;
  for (const char* name : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_ess_jobid"}) {
    if (job.empty()) job = text_of(variables, name);
  }
  const std::string token = job.empty() ? "" : "mpi-" + sha256_hex(job).substr(0, 16);
  use_master(variables, made, token.empty() ? "mpi" : token);
  if (made.rendezvous.empty()) use_loopback(made, token);
  return made;
}

std::optional<LaunchEnvironment> from_pmi(const Variables& variables) {
  const Said said = said_by_pmi(variables);
  expect_whole(said, "PMI_RANK", "PMI_SIZE");
  if (!said.rank) return std::nullopt;
  LaunchEnvironment made = to_environment(said);
  std::string job(text_of(variables, "PMI_JOBID"));
  if (job.empty()) job = text_of(variables, "SLURM_JOB_ID");
  const std::string token = job.empty() ? "" : "pmi-" + sha256_hex(job).substr(0, 16);
  use_master(variables, made, token.empty() ? "pmi" : token);
  // Slurm sets PMI's variables too; ranks may then be on many hosts even if PMI's variables do not say so.
  if (made.rendezvous.empty() && said.local_size) use_loopback(made, token);
  return made;
}

std::optional<LaunchEnvironment> from_slurm(const Variables& variables) {
  // A batch script has SLURM_PROCID=0 and the job's SLURM_NTASKS without being a rank of anything: only a step (srun)
  // makes ranks, and only a step has these.
  const std::string_view nodes = text_of(variables, "SLURM_STEP_NODELIST");
  if (nodes.empty() && text_of(variables, "SLURM_STEP_NUM_TASKS").empty()) return std::nullopt;
  Said said{"Slurm", number(variables, "SLURM_PROCID"), number(variables, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}),
            number(variables, "SLURM_LOCALID"), std::nullopt};
  expect_whole(said, "SLURM_PROCID", "SLURM_NTASKS");
  if (!said.rank) return std::nullopt;
  if (const auto node = number(variables, "SLURM_NODEID")) {
    const std::vector<int> tasks = slurm_tasks_per_node(text_of(variables, "SLURM_STEP_TASKS_PER_NODE"));
    const auto index = static_cast<std::size_t>(node->value);
    if (index < tasks.size()) said.local_size = {"SLURM_STEP_TASKS_PER_NODE of this node", tasks[index]};
  }
  LaunchEnvironment made = to_environment(said);
  const std::string token =
      fmt::format("slurm-{}.{}", text_of(variables, "SLURM_JOB_ID"), text_of(variables, "SLURM_STEP_ID"));
  made.host = slurm_first_host(nodes);
  if (!made.host.empty()) made.rendezvous = tcp(made, port_of(token), token);
  return made;
}

}  // namespace

LaunchEnvironment launch_environment(const Variables& variables, const LaunchOptions& options) {
  std::optional<LaunchEnvironment> found = from_own(variables, options);
  for (const auto source : {from_torchrun, from_open_mpi, from_pmi, from_slurm}) {
    if (!found) found = source(variables);
  }
  LaunchEnvironment made = found.value_or(LaunchEnvironment{.source = "one process"});
  if (const std::string_view own = text_of(variables, "SYSLAB_RENDEZVOUS"); !own.empty()) made.rendezvous = own;
  if (!options.rendezvous.empty()) made.rendezvous = options.rendezvous;
  return made;
}

Variables process_variables() {
  Variables variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

}  // namespace syslab::comm
