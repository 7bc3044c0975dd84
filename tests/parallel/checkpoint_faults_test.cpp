// Whatever befalls a save of a divided state, at whichever of its calls: a directory holds one whole checkpoint, the
// one before or the new one, and all ranks that live hear what happened. Processes are forked: part of the program that
// ThreadSanitizer does not run.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <stdexcept>

#include "comm/connect.hpp"
#include "parallel/sharded_checkpoint.hpp"
#include "tests/comm/ranks_fixture.hpp"
#include "tests/parallel/file_faults.hpp"
#include "tests/parallel/ranks_fixture.hpp"
#include "tests/temporary_folder.hpp"

namespace syslab::parallel {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using comm::as_threads;
using comm::in_a_process;
using test::FileFault;
using Calls = std::vector<std::string>;

constexpr std::int64_t kElements = 24;
constexpr std::array kPlanes{StatePlane::weight, StatePlane::second_moment};

// Another number for every element of every plane of every step.
float number(std::int64_t step, std::size_t plane, std::int64_t element) {
  return static_cast<float>(1000 * step + 100 * static_cast<std::int64_t>(plane) + element);
}

// Elements [first, end) of all planes of a state.
class State {
 public:
  State(std::int64_t first, std::int64_t end) : first_(first) {
    for (std::vector<float>& plane : values_) plane.assign(static_cast<std::size_t>(end - first), -1);
  }
  void fill(std::int64_t step) {
    for (std::size_t plane = 0; plane < kPlanes.size(); ++plane) {
      for (std::size_t i = 0; i < values_[plane].size(); ++i) {
        values_[plane][i] = number(step, plane, first_ + static_cast<std::int64_t>(i));
      }
    }
  }
  std::vector<StatePiece> pieces() {
    std::vector<StatePiece> made;
    for (std::size_t plane = 0; plane < kPlanes.size(); ++plane) {
      made.push_back({kPlanes[plane],
                      "w",
                      first_,
                      {values_[plane].data(), DType::f32, {static_cast<std::int64_t>(values_[plane].size())}}});
    }
    return made;
  }
  bool operator==(const State&) const = default;

 private:
  std::int64_t first_;
  std::array<std::vector<float>, kPlanes.size()> values_;
};

void save(comm::Communicator& ranks, const fs::path& directory, std::int64_t step) {
  State own(kElements * ranks.rank() / ranks.size(), kElements * (ranks.rank() + 1) / ranks.size());
  own.fill(step);
  save_sharded(ranks, directory, own.pieces(), {.step = step}, {}, {});
}

std::vector<std::exception_ptr> try_ranks(int count, const std::function<void(comm::Communicator&)>& body) {
  return comm::try_local(count, {.limit = 20s}, body);
}

// By as many threads; calls of each.
std::vector<Calls> save_well(int count, const fs::path& directory, std::int64_t step) {
  std::vector<Calls> calls(static_cast<std::size_t>(count));
  comm::run_local(count, {.limit = 20s}, [&](comm::Communicator& ranks) {
    const FileFault none;
    save(ranks, directory, step);
    calls[static_cast<std::size_t>(ranks.rank())] = none.calls();
  });
  return calls;
}

// The step of the checkpoint that is there, as each of `count` ranks finds it, whole.
std::int64_t step_of(const fs::path& directory, int count = 1) {
  std::int64_t found = -1;
  std::mutex mutex;
  comm::run_local(count, {.limit = 20s}, [&](comm::Communicator& ranks) {
    State all(0, kElements), expected(0, kElements);
    const train::TrainingState state = load_sharded(ranks, directory, all.pieces(), {}, {});
    expected.fill(state.step);
    EXPECT_TRUE(all == expected) << "what was loaded is not of step " << state.step << " alone";
    const std::lock_guard lock(mutex);
    found = state.step;
  });
  return found;
}

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

// Where `call` stands among a rank's calls.
int index_of(const Calls& calls, std::string_view call) {
  const auto found = std::ranges::find_if(calls, [&](const std::string& one) { return one.starts_with(call); });
  EXPECT_NE(found, calls.end()) << call;
  return static_cast<int>(found - calls.begin());
}

class CheckpointFaults : public ::testing::Test {
 protected:
  fs::path begin_anew() {  // with a checkpoint of step 1 by two ranks
    fs::remove_all(folder_ / "run");
    calls_ = save_well(2, folder_ / "run", 1);
    return folder_ / "run";
  }
  // Goes on with the next save, which leaves nothing of what was lost.
  static void expect_usable(const fs::path& directory, std::int64_t step) {
    EXPECT_EQ(step_of(directory), step);
    save_well(2, directory, 3);
    EXPECT_EQ(step_of(directory, 3), 3);
    EXPECT_EQ(names_in(directory).size(), 3U) << "a manifest and two shards";
  }

  test::TemporaryFolder folder_;
  std::vector<Calls> calls_;  // of a save, by rank
};

// A power cut is not tested; that what is renamed was synced before, and its folder behind it, is.
TEST_F(CheckpointFaults, EveryFileIsWrittenAsideSyncedAndRenamedAndTheManifestIsTheLast) {
  begin_anew();
  for (Calls& calls : calls_) {
    std::erase(calls, "write");
    for (std::string& call : calls) call = call.substr(0, call.find_first_of("-."));
  }
  const Calls shard{"fallocate", "fsync", "rename shard", "fsync folder"};
  EXPECT_EQ(calls_[1], shard);
  Calls all = shard;
  for (const char* call : {"fallocate", "fsync", "rename manifest", "fsync folder"}) all.emplace_back(call);
  EXPECT_EQ(calls_[0], all);
}

TEST_F(CheckpointFaults, ACallThatFailsOnAnyRankIsHeardByAllAndTheCheckpointBeforeStays) {
  const fs::path directory = begin_anew();
  const std::vector<std::string> before = names_in(directory);
  for (int failing = 0; failing < 2; ++failing) {
    const Calls& calls = calls_[static_cast<std::size_t>(failing)];
    for (int at = 0; at < static_cast<int>(calls.size()); ++at) {
      SCOPED_TRACE("rank " + std::to_string(failing) + ", call " + std::to_string(at) + ": " +
                   calls[static_cast<std::size_t>(at)]);
      if (calls[static_cast<std::size_t>(at)] == "fsync folder") continue;  // nothing better can be done than to go on
      const auto thrown = try_ranks(2, [&](comm::Communicator& ranks) {
        const FileFault fault(ranks.rank() == failing ? at : -1, ENOSPC);
        save(ranks, directory, 2);
      });
      const std::string who = "rank " + std::to_string(failing) + ": cannot write ";
      for (const std::exception_ptr& error : thrown) {
        EXPECT_TRUE(test::threw(error, who, directory.string(), "No space left on device"));
      }
      EXPECT_EQ(names_in(directory), before);
      EXPECT_EQ(step_of(directory), 1);
    }
  }
  expect_usable(directory, 1);
}

TEST_F(CheckpointFaults, RanksThatSeeOtherDirectoriesAreToldSo) {
  const fs::path directory = begin_anew();
  const std::vector<std::string> before = names_in(directory);
  for (const std::exception_ptr& error : try_ranks(2, [&](comm::Communicator& ranks) {
         save(ranks, ranks.rank() == 0 ? directory : folder_ / "elsewhere", 2);
       })) {
    EXPECT_TRUE(test::threw(error, "rank 0: ", "which rank 1 wrote", "share"));
  }
  EXPECT_EQ(names_in(directory), before);
  EXPECT_TRUE(names_in(folder_ / "elsewhere").empty());
  expect_usable(directory, 1);
}

// The limit is the kernel's own: a write that stops short, then an error.
TEST_F(CheckpointFaults, AFileThatMayNotGrowIsHeardByAll) {
  const fs::path directory = begin_anew();
  const std::vector<std::string> before = names_in(directory);
  const std::string told = in_a_process([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const struct rlimit little { 40'000, 40'000 };
    ::setrlimit(RLIMIT_FSIZE, &little);
    std::string texts;
    for (const std::exception_ptr& error : try_ranks(3, [&](comm::Communicator& ranks) {
           std::vector<float> values(ranks.rank() == 1 ? 20'000 : 10);
           const auto count = static_cast<std::int64_t>(values.size());
           const StatePiece piece{.parameter = "of " + std::to_string(ranks.rank()),
                                  .values = {values.data(), DType::f32, {count}}};
           save_sharded(ranks, directory, std::array{piece}, {.step = 2}, {}, {});
         })) {
      if (!test::threw(error, "rank 1: cannot write ", "-1-of-3.safetensors", "File too large"))
        throw std::logic_error("");
      texts += "heard ";
    }
    throw std::runtime_error(texts);
  });
  EXPECT_EQ(told, "heard heard heard ");
  EXPECT_EQ(names_in(directory), before);
  expect_usable(directory, 1);
}

// All ranks are threads of one process that ends at once.
TEST_F(CheckpointFaults, AJobThatIsKilledAtAnyCallLeavesAWholeCheckpoint) {
  begin_anew();
  const std::vector<Calls> calls = calls_;
  for (int killed = 0; killed < 2; ++killed) {
    const int renamed = killed == 0 ? index_of(calls[0], "rename manifest") : static_cast<int>(calls[1].size());
    for (int at = 0; at < static_cast<int>(calls[static_cast<std::size_t>(killed)].size()); ++at) {
      SCOPED_TRACE("rank " + std::to_string(killed) + ", before call " + std::to_string(at));
      const fs::path directory = begin_anew();
      EXPECT_EQ("", in_a_process([&] {
                  comm::run_local(2, {.limit = 20s}, [&](comm::Communicator& ranks) {
                    const FileFault fault(ranks.rank() == killed ? at : -1, FileFault::kKill);
                    save(ranks, directory, 2);
                  });
                  throw std::logic_error("it was not killed");
                }));
      expect_usable(directory, at <= renamed ? 1 : 2);
    }
  }
}

TEST_F(CheckpointFaults, AFirstSaveThatIsKilledIsNoCheckpoint) {
  begin_anew();
  const fs::path directory = folder_ / "new";
  EXPECT_EQ("", in_a_process([&] {
              comm::run_local(2, {.limit = 20s}, [&](comm::Communicator& ranks) {
                const FileFault fault(ranks.rank() == 0 ? index_of(calls_[0], "rename manifest") : -1,
                                      FileFault::kKill);
                save(ranks, directory, 2);
              });
              throw std::logic_error("it was not killed");
            }));
  EXPECT_EQ(names_in(directory).size(), 3U) << "two shards and what was to be a manifest";
  try {
    step_of(directory);
    ADD_FAILURE() << "a save that was not done was loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_TRUE(comm::has(error.what(), (directory / "manifest.safetensors").string())) << error.what();
  }
  save_well(2, directory, 1);
  expect_usable(directory, 1);
}

// Ranks are processes, one of which is killed before a rename or behind it: the others are told who it was.
TEST_F(CheckpointFaults, ARankThatIsKilledAtARenameIsNamedAndACheckpointIsThere) {
  begin_anew();
  const int shard = index_of(calls_[0], "rename shard"), manifest = index_of(calls_[0], "rename manifest");
  struct Death {
    int rank, at, left;
  };
  for (const Death& death : {Death{0, shard, 1}, Death{1, shard, 1}, Death{1, shard + 1, 1}, Death{0, manifest, 1},
                             Death{0, manifest + 1, 2}}) {
    SCOPED_TRACE("rank " + std::to_string(death.rank) + ", before call " + std::to_string(death.at));
    const fs::path directory = begin_anew();
    const fs::path place = folder_ / ("meeting-" + std::to_string(death.rank) + "-" + std::to_string(death.at));
    const std::vector<std::string> told = as_threads(2, [&](int rank) {
      throw std::runtime_error(in_a_process([&] {
        const auto ranks =
            comm::connect({.rendezvous = "file:" + place.string(), .rank = rank, .size = 2, .limit = 20s});
        const FileFault fault(rank == death.rank ? death.at : -1, FileFault::kKill);
        save(*ranks, directory, 2);
        throw std::logic_error("it was not told");
      }));
    });
    EXPECT_EQ(told[static_cast<std::size_t>(death.rank)], "") << "it was not killed";
    const std::string& heard = told[static_cast<std::size_t>(1 - death.rank)];
    EXPECT_TRUE(comm::has(heard, "rank " + std::to_string(death.rank))) << heard;
    expect_usable(directory, death.left);
  }
}

}  // namespace
}  // namespace syslab::parallel
