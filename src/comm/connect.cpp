#include "comm/connect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>

#include "comm/rendezvous/control.hpp"
#include "comm/rendezvous/process_name.hpp"
#include "comm/shm/shm.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "device/launch.hpp"

namespace syslab::comm {
namespace {

using namespace std::chrono_literals;

// The store and the control plane beside a communicator.
class Connection final : public Companion {
 public:
  Connection(std::shared_ptr<Store> store, Communicator& ranks, const ConnectOptions& options)
      : store_(std::move(store)), ranks_(ranks), dump_(options.dump), control_(*store_, watching(options)) {}

  void set_phase(std::string_view phase, std::uint64_t step) override { control_.set_phase(phase, step); }

  void leave() noexcept override {
    // Left by an exception, this rank will not come to what the others wait for.
    if (std::uncaught_exceptions() > exceptions_ && !ranks_.failed()) control_.fail("it was ended by an error");
    control_.leave();
    // Rank 0 keeps the store until all have left it: not for those who will not.
    if (ranks_.failed()) store_->fail(ranks_.failure());
  }

 private:
  ControlOptions watching(const ConnectOptions& options) {
    ControlOptions control;
    control.limit = options.limit;
    // The backend's own end has that budget; beyond it nothing is waited for.
    control.budget = options.nccl.budget + 500ms;
    control.progress = [this] {
      ranks_.look();
      return progress_of(ranks_.recorder());
    };
    control.failure = [this] { return ranks_.failed() ? Ending{ranks_.blame(), ranks_.failure(), {}, 0} : Ending{}; };
    control.end = [this](const Ending& ending) { ranks_.fail(ending.reason, ending); };
    control.last_words = [this] { return last_words(); };
    return control;
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

  std::shared_ptr<Store> store_;
  Communicator& ranks_;
  const std::filesystem::path dump_;
  const int exceptions_ = std::uncaught_exceptions();
  Control control_;
};

void expect_one_host(Store& store, std::string_view backend, std::chrono::milliseconds limit) {
  const std::string system = this_process().system;
  const std::vector<std::string> all = store.gather("meeting/host", system, limit);
  for (std::size_t other = 0; other < all.size(); ++other) {
    if (all[other] == system) continue;
    throw Error(ErrorKind::usage,
                fmt::format("ranks {} and {} are on two hosts, and {} joins ranks of one: ask for the backend nccl, or "
                            "start all ranks on one host",
                            store.rank(), other, backend));
  }
}

// A folder of this launch for the files by which Gloo's ranks find each other; gone with the object of rank 0, or of
// any rank that fails meanwhile.
class MeetingFolder {
 public:
  MeetingFolder(Store& store, std::chrono::milliseconds limit) : owner_(store.rank() == 0) {
    if (!store.directory().empty()) {
      // Gone with the store's own files, should rank 0 be killed meanwhile.
      path_ = store.directory() / "meeting";
      if (owner_) std::filesystem::create_directory(path_);
      store.wait_all("meeting/made", limit);
    } else if (owner_) {
      std::string name = (std::filesystem::temp_directory_path() / "syslab-ranks-XXXXXX").string();
      if (::mkdtemp(name.data()) == nullptr)
        throw_errno(ErrorKind::comm, "make a folder '" + name + "'", errno, "mkdtemp");
      path_ = name;
      store.set("meeting/folder", name);
    } else {
      path_ = store.get("meeting/folder", limit);
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
  std::filesystem::path path_;
};

CommunicatorOptions communicator_options(const ConnectOptions& options) {
  return {.limit = options.limit, .check_signatures = options.check_signatures};
}

using Make = std::unique_ptr<Communicator> (*)(const std::shared_ptr<Store>& store, const ConnectOptions& options);

std::unique_ptr<Communicator> shm(const std::shared_ptr<Store>& store, const ConnectOptions& options) {
  expect_one_host(*store, "shm", options.limit);
  return connect_shm(*store, communicator_options(options));
}

std::unique_ptr<Communicator> gloo(const std::shared_ptr<Store>& store, const ConnectOptions& options) {
  expect_one_host(*store, "gloo", options.limit);
  const MeetingFolder folder(*store, options.limit);
  auto made = connect_gloo(folder.path(), store->rank(), store->size(), communicator_options(options));
  store->wait_all("gloo/met", options.limit);
  return made;
}

std::unique_ptr<Communicator> nccl(const std::shared_ptr<Store>& store, const ConnectOptions& options) {
  return make_nccl(store, communicator_options(options), options.nccl);
}

std::unique_ptr<Communicator> copy_engines(const std::shared_ptr<Store>& store, const ConnectOptions& options) {
  expect_one_host(*store, "copy_engines", options.limit);
  NcclOptions nccl = options.nccl;
  if (!nccl.copy_engines) {
    const char* const said = std::getenv("SYSLAB_COPY_ENGINES");
    nccl.copy_engines = parse_copy_engine_options(said == nullptr ? "" : said);
  }
  return make_nccl(store, communicator_options(options), nccl);
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
  for (const Backend& backend : kBackends) {
    if (backend.name == name) return backend;
  }
  std::vector<std::string> names;
  for (const Backend& backend : kBackends) names.emplace_back(backend.name);
  throw Error(ErrorKind::usage, unknown_name("backend", name, names));
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

std::vector<std::string_view> backend_names() {
  std::vector<std::string_view> names;
  for (const Backend& backend : kBackends) {
    if (backend.name != "gloo" || gloo_is_built()) names.push_back(backend.name);
  }
  return names;
}

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
  const std::shared_ptr<Store> store =
      open_store({.rendezvous = launch.rendezvous, .rank = launch.rank, .size = launch.size, .limit = options.limit});
  try {
    Fields fields{{"backend", options.backend}, {"limit of waits", fmt::format("{} ms", options.limit.count())}};
    fields.insert(fields.end(), options.agree.begin(), options.agree.end());
    agree(*store, "connect", fields, options.limit);
    std::unique_ptr<Communicator> ranks = backend.make(store, options);
    ranks->accompany(std::make_shared<Connection>(store, *ranks, options));
    return ranks;
  } catch (const std::exception& error) {
    // The others wait for this rank: they hear why it does not come.
    store->fail(fmt::format("rank {} cannot join: {}", launch.rank, error.what()));
    throw;
  }
}

}  // namespace syslab::comm
