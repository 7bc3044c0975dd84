#include "tests/comm/backends.hpp"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <thread>

#include "comm/local/local.hpp"
#include "comm/nccl/communicator.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "comm/shm/shm.hpp"
#include "device/queue.hpp"
#include "tests/comm/fake_nccl.hpp"
#include "tests/comm/ranks_fixture.hpp"

namespace syslab::comm {

namespace {

constexpr const char* kFakeNccl = "SYSLAB_TEST_FAKE_NCCL";

RankEnd end_of(const std::exception_ptr& thrown) {
  RankEnd end;
  if (thrown == nullptr) return end;
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    end.kind = error.kind();
    end.error = error.what();
  } catch (const std::exception& error) {
    end.error = error.what();
  }
  return end;
}

std::vector<RankEnd> run_as_threads(int size, CommunicatorOptions options, const RankBody& body) {
  std::vector<std::string> results(static_cast<std::size_t>(size));
  const auto errors = try_local(
      size, options, [&](Communicator& ranks) { results[static_cast<std::size_t>(ranks.rank())] = body(ranks); });
  std::vector<RankEnd> ends;
  for (const std::exception_ptr& error : errors) {
    ends.push_back(end_of(error));
    ends.back().result = std::move(results[ends.size() - 1]);
  }
  return ends;
}

// Slots so small that a few thousand elements go through all of them several times.
ShmOptions small_slots() {
  ShmOptions memory;
  memory.slot_bytes = 4096;
  memory.depth = 3;
  return memory;
}

RankEnd end_of(Communicator& ranks, const RankBody& body) {
  std::string result;
  std::exception_ptr thrown;
  try {
    result = body(ranks);
  } catch (const std::exception& error) {
    thrown = std::current_exception();
    ranks.abort(error.what());
  }
  RankEnd end = end_of(thrown);
  end.result = std::move(result);
  return end;
}

std::vector<RankEnd> run_shm_as_threads(int size, CommunicatorOptions options, const RankBody& body) {
  auto ranks = make_shm_for_threads(size, options, small_slots());
  std::vector<RankEnd> ends(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    threads.emplace_back([&, rank] {
      ends[rank] = end_of(*ranks[rank], body);
      ranks[rank].reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ends;
}

// Over the fake library, which has the operations that are not done by copies; slots as small as above.
NcclOptions small_copies(const char* fake) {
  void* const library = ::dlopen(fake, RTLD_NOW);
  if (library == nullptr) throw Error(ErrorKind::internal, ::dlerror());
  reinterpret_cast<decltype(fake_enqueue_by)*>(::dlsym(library, "fake_enqueue_by"))(
      [](void* stream, std::function<void()> work) {
        device::enqueue({device::Kind::cpu, stream}, std::move(work));
      });
  NcclOptions options;
  options.library = fake;
  options.place = {};
  options.copy_engines = {.slot_bytes = 2048, .slots = 2, .least_bytes = 0};
  return options;
}

std::vector<RankEnd> run_copy_engines_as_threads(int size, CommunicatorOptions options, const RankBody& body) {
  const NcclOptions nccl = small_copies(std::getenv(kFakeNccl));
  const TestFolder folder;
  std::vector<RankEnd> ends(static_cast<std::size_t>(size));
  as_threads(size, [&](int rank) {
    const std::shared_ptr<Rendezvous> rendezvous = open_rendezvous(
        {.address = "file:" + folder.path().string(), .rank = rank, .size = size, .limit = options.limit});
    const auto ranks = make_nccl(rendezvous, options, nccl);
    ends[static_cast<std::size_t>(rank)] = end_of(*ranks, body);
  });
  return ends;
}

// How a rank ended, through a pipe: the kind's number, −1 for none, and the lengths of the two texts before them.
void write_end(int fd, const RankEnd& end) {
  std::ostringstream text;
  text << (end.kind ? static_cast<int>(*end.kind) : -1) << ' ' << end.result.size() << ' ' << end.error.size() << '\n'
       << end.result << end.error;
  const std::string bytes = text.str();
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t wrote = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (wrote <= 0) return;
    done += static_cast<std::size_t>(wrote);
  }
}

RankEnd read_end(int fd) {
  std::string text;
  std::array<char, 4096> chunk;
  for (ssize_t got = 0; (got = ::read(fd, chunk.data(), chunk.size())) > 0;) {
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
  std::istringstream head(text);
  int kind = -1;
  std::size_t result = 0, error = 0;
  if (!(head >> kind >> result >> error)) return {.result = {}, .kind = {}, .error = "the rank ended without a word"};
  const std::size_t begin = text.find('\n') + 1;
  RankEnd end;
  end.result = text.substr(begin, result);
  end.error = text.substr(begin + result, error);
  if (kind >= 0) end.kind = static_cast<ErrorKind>(kind);
  return end;
}

// Forks: what a body does to this process's memory stays in the rank. The tests' own process has one thread here.
std::vector<RankEnd> run_shm_as_processes(int size, CommunicatorOptions options, const RankBody& body) {
  std::string directory = (std::filesystem::temp_directory_path() / "comm-ranks-XXXXXX").string();
  if (::mkdtemp(directory.data()) == nullptr) throw Error(ErrorKind::internal, "no temporary directory");
  std::vector<std::array<int, 2>> pipes;
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) throw Error(ErrorKind::internal, "no pipe");
    const pid_t child = ::fork();
    if (child == 0) {
      RankEnd end;
      try {
        const auto ranks = connect_shm(directory, rank, size, options, small_slots());
        end = end_of(*ranks, body);
      } catch (...) {
        end = end_of(std::current_exception());
      }
      write_end(ends[1], end);
      ::_exit(0);
    }
    ::close(ends[1]);
    pipes.push_back(ends);
    children.push_back(child);
  }
  std::vector<RankEnd> ends;
  for (const auto& pipe : pipes) {
    ends.push_back(read_end(pipe[0]));
    ::close(pipe[0]);
  }
  for (const pid_t child : children) ::waitpid(child, nullptr, 0);
  std::filesystem::remove_all(directory);
  return ends;
}

}  // namespace

std::span<const Backend> backends() {
  static const std::vector<Backend> all = [] {
    std::vector<Backend> made = {
        {.name = "local", .run = run_as_threads},
        {.name = "shm", .run = run_shm_as_threads},
        {.name = "shm_processes", .run = run_shm_as_processes, .forks = true},
    };
    if (std::getenv(kFakeNccl) != nullptr) {
      made.push_back({.name = "copy_engines",
                      .run = run_copy_engines_as_threads,
                      .compares_signatures = false,
                      .counts_moved = false,
                      .hears = false});
    }
    return made;
  }();
  return all;
}

}  // namespace syslab::comm
