#include "comm/connect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "comm/rendezvous/control.hpp"
#include "comm/rendezvous/process_name.hpp"
#include "comm/shm/shm.hpp"
#include "core/error.hpp"
#include "core/files/temporary_folder.hpp"
#include "core/process/environment_variable.hpp"
#include "core/text/named.hpp"
#include "device/cuda/launch.hpp"

namespace syslab::comm {
namespace {

using namespace std::chrono_literals;

// The rendezvous and the control plane of a communicator.
class Connection final : public Companion {
 public:
  Connection(std::shared_ptr<Rendezvous> rendezvous, Communicator& ranks, const ConnectOptions& options)
      : rendezvous_(std::move(rendezvous)),
        ranks_(ranks),
        dump_(options.dump),
        control_(*rendezvous_, watching(options)) {}

  void set_phase(std::string_view phase, std::uint64_t step) override { control_.set_phase(phase, step); }

  void leave() noexcept override {
    // This rank ends by an exception: it will not enter the operations that the others wait in.
    if (std::uncaught_exceptions() > exceptions_ && !ranks_.failed()) control_.fail("it was ended by an error");
    control_.leave();
    // Rank 0 waits until all ranks have left the rendezvous; after a failure it must not wait for those that cannot.
    if (ranks_.failed()) rendezvous_->fail(ranks_.failure());
    // A failure may arrive through the backend sooner than through the control plane, and this rank then leaves before
    // it is told that all end.
    if (ranks_.failed() && !said_last_words_) say_last_words();
  }

 private:
  ControlOptions watching(const ConnectOptions& options) {
    ControlOptions control;
    control.limit = options.limit;
    // The time that the backend itself has to shut down; after it nobody waits any longer.
    control.budget = options.nccl.budget + 500ms;
    control.progress = [this] {
      ranks_.look();
      return progress_of(ranks_.recorder());
    };
    control.failure = [this] { return ranks_.failed() ? Ending{ranks_.blame(), ranks_.failure(), {}, 0} : Ending{}; };
    control.end = [this](const Ending& ending) { ranks_.fail(ending.reason, ending); };
    control.last_words = [this] {
      said_last_words_ = true;
      return last_words();
    };
    return control;
  }

  void say_last_words() const noexcept {
    try {
      fmt::print(stderr, "syslab: rank {} of {}: {}\n", ranks_.rank(), ranks_.size(), last_words());
    } catch (...) {  // no memory for the text: the failure itself is told by whoever waited
    }
  }

  std::string last_words() const {
    constexpr std::size_t kShown = 8;
    std::string text = "its last operations:\n" + ranks_.recorder().text(kShown);
    if (dump_.empty()) return text;
    const std::filesystem::path file = dump_ / fmt::format("recorder-{}.json", ranks_.rank());
    std::ofstream out(file);
    out << ranks_.recorder().json().dump(1) << '\n';
    return text + fmt::format("{}: '{}'", out ? "all of them are in" : "they could not be written to", file.string());
  }

  std::shared_ptr<Rendezvous> rendezvous_;
  Communicator& ranks_;
  const std::filesystem::path dump_;
  const int exceptions_ = std::uncaught_exceptions();
  std::atomic<bool> said_last_words_ = false;  // set on the control plane's thread
  Control control_;
};

void expect_one_host(Rendezvous& rendezvous, std::string_view backend, std::chrono::milliseconds limit) {
  const std::string system = this_process().system;
  const std::vector<std::string> all = rendezvous.gather("meeting/host", system, limit);
  for (std::size_t other = 0; other < all.size(); ++other) {
    if (all[other] == system) continue;
    throw Error(ErrorKind::usage,
                fmt::format("ranks {} and {} are on two hosts, and {} joins ranks of one: ask for the backend nccl, or "
                            "start all ranks on one host",
                            rendezvous.rank(), other, backend));
  }
}

// A folder for the files by which Gloo's ranks find each other in this launch. Rank 0's object removes it, or that of a
// rank that fails.
class MeetingFolder {
 public:
  MeetingFolder(Rendezvous& rendezvous, std::chrono::milliseconds limit) : owner_(rendezvous.rank() == 0) {
    if (!rendezvous.directory().empty()) {
      // Removed with the rendezvous's own files if rank 0 is killed.
      path_ = rendezvous.directory() / "meeting";
      if (owner_) std::filesystem::create_directory(path_);
      rendezvous.wait_all("meeting/made", limit);
    } else if (owner_) {
      path_ = made_.emplace().path();
      rendezvous.set("meeting/folder", path_.string());
    } else {
      path_ = rendezvous.get("meeting/folder", limit);
    }
  }
  MeetingFolder(const MeetingFolder&) = delete;
  ~MeetingFolder() {
    std::error_code ignored;
    if (owner_ || std::uncaught_exceptions() > exceptions_) std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  bool owner_;
  const int exceptions_ = std::uncaught_exceptions();
  std::optional<TemporaryFolder> made_;
  std::filesystem::path path_;
};

CommunicatorOptions communicator_options(const ConnectOptions& options) {
  return {.limit = options.limit, .check_signatures = options.check_signatures};
}

using Make = std::unique_ptr<Communicator> (*)(const std::shared_ptr<Rendezvous>& rendezvous,
                                               const ConnectOptions& options);

std::unique_ptr<Communicator> shm(const std::shared_ptr<Rendezvous>& rendezvous, const ConnectOptions& options) {
  expect_one_host(*rendezvous, "shm", options.limit);
  return connect_shm(*rendezvous, communicator_options(options));
}

std::unique_ptr<Communicator> gloo(const std::shared_ptr<Rendezvous>& rendezvous, const ConnectOptions& options) {
  expect_one_host(*rendezvous, "gloo", options.limit);
  const MeetingFolder folder(*rendezvous, options.limit);
  auto made = connect_gloo(folder.path(), rendezvous->rank(), rendezvous->size(), communicator_options(options));
  rendezvous->wait_all("gloo/met", options.limit);
  return made;
}

std::unique_ptr<Communicator> nccl(const std::shared_ptr<Rendezvous>& rendezvous, const ConnectOptions& options) {
  return make_nccl(rendezvous, communicator_options(options), options.nccl);
}

std::unique_ptr<Communicator> copy_engines(const std::shared_ptr<Rendezvous>& rendezvous,
                                           const ConnectOptions& options) {
  expect_one_host(*rendezvous, "copy_engines", options.limit);
  NcclOptions nccl = options.nccl;
  if (!nccl.copy_engines) {
    nccl.copy_engines = parse_copy_engine_options(environment_variable("SYSLAB_COPY_ENGINES"));
  }
  return make_nccl(rendezvous, communicator_options(options), nccl);
}

struct Backend {
  std::string_view name;
  Make make;  // null: for one rank alone
  device::Kind kind;
};
constexpr std::array kBackends{
    Backend{"local", nullptr, device::Kind::cpu},
    Backend{"shm", shm, device::Kind::cpu},
    Backend{"gloo", gloo, device::Kind::cpu},
    Backend{"nccl", nccl, device::Kind::cuda},
    Backend{"copy_engines", copy_engines, device::Kind::cuda},
};

const Backend& find_backend(const std::string& name) {
  if (name == "gloo" && !gloo_is_built()) {
    throw Unsupported(
        "Gloo is not in this build: it needs Gloo's library (libgloo-dev) when it is built; shm joins ranks of the CPU "
        "without it");
  }
  return find_named(kBackends, "backend", name);
}

device::Place local_gpu(const LaunchEnvironment& launch) {
  const int gpus = device::gpu_count();
  if (gpus == 0) {
    throw Error(ErrorKind::device,
                "the backend nccl needs a GPU a rank, and this process sees none: ask for the backend shm");
  }
  return {device::Kind::cuda, launch.local_rank % gpus};
}

}  // namespace

std::unique_ptr<Communicator> connect(const ConnectOptions& given) {
  const Backend& backend = find_backend(given.backend);
  LaunchOptions said;
  said.rank = given.rank;
  said.size = given.size;
  said.rendezvous = given.rendezvous;
  const LaunchEnvironment launch = launch_environment(process_variables(), said);
  ConnectOptions options = given;
  if (backend.kind == device::Kind::cuda && options.local_gpu) options.nccl.place = local_gpu(launch);
  if (launch.size == 1) {
    return make_alone(backend.kind == device::Kind::cuda ? options.nccl.place : device::Place{},
                      communicator_options(options));
  }
  if (backend.make == nullptr) {
    throw Error(
        ErrorKind::usage,
        fmt::format("the ranks of the backend {} are threads of one process, and this process is one of {}: ask for "
                    "shm",
                    backend.name, launch.size));
  }
  if (launch.rendezvous.empty()) {
    throw Error(
        ErrorKind::usage,
        fmt::format("rank {} of {} ({}) does not know where the others are: set SYSLAB_RENDEZVOUS on all ranks to "
                    "tcp://HOST:PORT/TOKEN with rank 0's host, or to file:DIRECTORY, which all see",
                    launch.rank, launch.size, launch.source));
  }
  const std::shared_ptr<Rendezvous> rendezvous =
      open_rendezvous({.address = launch.rendezvous, .rank = launch.rank, .size = launch.size, .limit = options.limit});
  try {
    Fields fields{{"backend", options.backend}, {"limit of waits", fmt::format("{} ms", options.limit.count())}};
    fields.insert(fields.end(), options.agree.begin(), options.agree.end());
    agree(*rendezvous, "connect", fields, options.limit);
    std::unique_ptr<Communicator> ranks = backend.make(rendezvous, options);
    ranks->accompany(std::make_shared<Connection>(rendezvous, *ranks, options));
    return ranks;
  } catch (const std::exception& error) {
    // The others wait for this rank: tell them why it will not join.
    rendezvous->fail(fmt::format("rank {} cannot join: {}", launch.rank, error.what()));
    throw;
  }
}

}  // namespace syslab::comm
