// Whatever happens to a save, at whichever of its calls: the file holds one whole checkpoint, the one before or the new
// one. Processes are forked and killed.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "model/initialise.hpp"
#include "tests/model/refusal.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/train/file_faults.hpp"
#include "train/checkpoint.hpp"

namespace syslab::train {
namespace {

using model::ParameterArena;
using test::FileFault;

class CheckpointFaults : public ::testing::Test {
 protected:
  CheckpointFaults() { initialise(arena_, 1); }

  void save(std::int64_t step) const { save_checkpoint(folder_ / "c", arena_, {.step = step}, {}); }
  std::vector<std::string> calls_of_a_save() const {
    const FileFault none;
    save(1);
    return none.calls();
  }
  // The step of the checkpoint that is there, which is whole.
  std::int64_t step_there() const {
    ParameterArena back = arena_of_model();
    const TrainingState state = load_checkpoint(folder_ / "c", back, {});
    EXPECT_EQ(to_doubles(back.whole(model::Plane::weight)), to_doubles(arena_.whole(model::Plane::weight)));
    return state.step;
  }

  static ParameterArena arena_of_model() { return {model::ParameterLayout(model::find_model("tiny")), {}, {}}; }

  ParameterArena arena_ = arena_of_model();
  test::TemporaryFolder folder_;
};

// A power cut is not tested; that the file is synced before it is renamed, and its folder behind that, is.
TEST_F(CheckpointFaults, AFileIsWrittenAsideSyncedAndRenamed) {
  std::vector<std::string> calls = calls_of_a_save();
  EXPECT_GT(std::erase(calls, "write"), 0U);
  EXPECT_EQ(calls, (std::vector<std::string>{"fallocate", "fsync", "rename c", "fsync folder"}));
}

TEST_F(CheckpointFaults, WhicheverCallFailsTheCheckpointBeforeStays) {
  const std::vector<std::string> calls = calls_of_a_save();
  for (int at = 0; at < static_cast<int>(calls.size()); ++at) {
    SCOPED_TRACE("call " + std::to_string(at) + ": " + calls[static_cast<std::size_t>(at)]);
    if (calls[static_cast<std::size_t>(at)] == "fsync folder") continue;  // nothing better can be done than to go on
    EXPECT_TRUE(test::refuses(
        [&] {
          const FileFault fault(at, ENOSPC);
          save(2);
        },
        "cannot write", "No space left on device"));
    EXPECT_EQ(folder_.names(), std::vector<std::string>{"c"});
    EXPECT_EQ(step_there(), 1);
  }
  save(3);
  EXPECT_EQ(step_there(), 3);
}

TEST_F(CheckpointFaults, AProcessThatIsKilledAtAnyCallLeavesAWholeCheckpoint) {
  const std::vector<std::string> calls = calls_of_a_save();
  const auto renamed = std::ranges::find(calls, "rename c") - calls.begin();
  for (int at = 0; at < static_cast<int>(calls.size()); ++at) {
    SCOPED_TRACE("before call " + std::to_string(at) + ": " + calls[static_cast<std::size_t>(at)]);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const FileFault fault(at, FileFault::kKill);
      save(2);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it was not killed";
    EXPECT_EQ(step_there(), at <= renamed ? 1 : 2);
    save(1);
    EXPECT_EQ(folder_.names(), std::vector<std::string>{"c"}) << "what was left is removed by the next save";
  }
}

}  // namespace
}  // namespace syslab::train
