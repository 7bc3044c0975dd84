// What a divided state is saved as, any number of ranks resumes; what is torn or another's is refused by its name.
#include "parallel/sharded_checkpoint.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>

#include "tests/parallel/sharded_fixture.hpp"

namespace syslab::parallel {
namespace {

namespace fs = std::filesystem;
using device::Stream;
using test::kRate;
using test::kRows;
using test::ShardedRig;
using test::with_ranks;

class ShardedCheckpoint : public ::testing::Test {
 protected:
  ShardedCheckpoint()
      : directory_(fs::temp_directory_path() / ("sharded_checkpoint_" + std::to_string(::getpid()) + "_" +
                                                ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(directory_);
  }
  ~ShardedCheckpoint() override {
    std::error_code ignored;
    fs::remove_all(directory_, ignored);
  }

  std::vector<fs::path> shards() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(directory_)) {
      if (entry.path().filename().string().starts_with("shard-")) found.push_back(entry.path());
    }
    std::ranges::sort(found);
    return found;
  }

  fs::path directory_;
};

const train::Settings kSettings{{"model.d_model", "32"}};

void steps(ShardedRig& rig, comm::Communicator& ranks, int first, int end) {
  const std::int64_t rows = kRows / ranks.size();
  for (int i = first; i < end; ++i) {
    rig.load(i, 0, ranks.rank() * rows, rows);
    rig.step->run(kRate);
    static_cast<void>(rig.step->result());
  }
}

void save(ShardedRig& rig, comm::Communicator& ranks, const fs::path& directory, int step,
          const train::Settings& settings = kSettings) {
  save_sharded(ranks, directory, rig.zero->own_pieces(), {.step = step, .next_batch = 7}, settings, {});
}

train::TrainingState load(ShardedRig& rig, comm::Communicator& ranks, const fs::path& directory,
                          const train::Settings& settings = kSettings) {
  const train::TrainingState state = load_sharded(ranks, directory, rig.zero->wanted_pieces(), settings, {});
  rig.zero->refresh_copy();
  rig.step->training().optimizer().set_steps(state.step);
  return state;
}

// All of a state by plane and parameter, whoever has it.
using Whole = std::map<std::string, std::vector<float>>;
void collect(Whole& whole, const model::ParameterLayout& layout, const std::vector<StatePiece>& pieces) {
  for (const StatePiece& piece : pieces) {
    std::vector<float>& all = whole[std::string(to_string(piece.plane)) + " " + piece.parameter];
    all.resize(static_cast<std::size_t>(layout.info(layout.index_of(piece.parameter)).shape.elements()), -1);
    std::copy_n(piece.values.as<float>(), piece.values.elements(), all.begin() + piece.first);
  }
}

TEST_F(ShardedCheckpoint, IsResumedByAnyNumberOfRanksDividedInAnyWay) {
  Whole saved;
  std::mutex mutex;
  with_ranks(2, [&](comm::Communicator& ranks, Stream, Stream communication) {
    ShardedRig rig(ranks, Sharding::zero1, {}, kRows / 2, communication);
    steps(rig, ranks, 0, 2);
    save(rig, ranks, directory_, 2);
    const std::lock_guard lock(mutex);
    collect(saved, rig.arena().layout(), rig.zero->own_pieces());
  });
  EXPECT_EQ(shards().size(), 2U);
  for (const auto& [count, sharding] : {std::pair(1, Sharding::zero1), std::pair(2, Sharding::zero2),
                                        std::pair(3, Sharding::zero1), std::pair(6, Sharding::zero2)}) {
    Whole loaded;
    with_ranks(count, [&](comm::Communicator& ranks, Stream, Stream communication) {
      ShardedRig rig(ranks, sharding, {}, kRows / ranks.size(), communication);
      const train::TrainingState state = load(rig, ranks, directory_);
      EXPECT_EQ(state.step, 2);
      EXPECT_EQ(state.next_batch, 7U);
      {
        const std::lock_guard lock(mutex);
        collect(loaded, rig.arena().layout(), rig.zero->wanted_pieces());
      }
      ranks.barrier();
      steps(rig, ranks, 2, 3);
      rig.step->check();
    });
    EXPECT_TRUE(loaded == saved) << count << " ranks, " << to_string(sharding);
  }
}

TEST_F(ShardedCheckpoint, GoesOnToTheBitWhereAsManyRanksResume) {
  with_ranks(2, [&](comm::Communicator& ranks, Stream, Stream communication) {
    ShardedRig whole(ranks, Sharding::zero2, {}, kRows / 2, communication);
    steps(whole, ranks, 0, 2);
    save(whole, ranks, directory_, 2);
    steps(whole, ranks, 2, 4);
    ShardedRig resumed(ranks, Sharding::zero2, {}, kRows / 2, communication);
    load(resumed, ranks, directory_);
    steps(resumed, ranks, 2, 4);
    EXPECT_TRUE(resumed.weights() == whole.weights());
  });
}

TEST_F(ShardedCheckpoint, RefusesWhatIsTornMissingOrAnothersByItsName) {
  with_ranks(2, [&](comm::Communicator& ranks, Stream, Stream communication) {
    ShardedRig rig(ranks, Sharding::zero1, {}, kRows / 2, communication);
    save(rig, ranks, directory_, 1);
  });
  const std::vector<fs::path> files = shards();
  const auto refused = [&](const std::string& why, const std::string& name,
                           const train::Settings& settings = kSettings) {
    const auto thrown = comm::try_local(3, {.limit = std::chrono::seconds(20)}, [&](comm::Communicator& ranks) {
      const device::OwnedStream communication = device::OwnedStream::queue();
      ShardedRig rig(ranks, Sharding::zero1, {}, 2, communication);
      const auto before = rig.weights();
      try {
        load(rig, ranks, directory_, settings);
      } catch (...) {
        EXPECT_TRUE(rig.weights() == before);
        throw;
      }
    });
    for (const std::exception_ptr& error : thrown) EXPECT_TRUE(test::threw(error, why, name));
  };
  refused("model.d_model was 32 and is 64 now", "manifest", {{"model.d_model", "64"}});

  const std::string second = files[1].filename().string();
  const auto size = fs::file_size(files[1]);
  fs::copy_file(files[1], directory_ / "kept");
  {
    std::fstream file(files[1], std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(size) - 100);
    file.put('\x55');
  }
  refused("not what was saved", second);
  fs::copy_file(directory_ / "kept", files[1], fs::copy_options::overwrite_existing);
  fs::resize_file(files[1], size - 4);
  refused("cut", second);
  fs::remove(files[1]);
  refused("cannot open", second);
  fs::remove(directory_ / "manifest.safetensors");
  refused("cannot open", "manifest");
}

TEST_F(ShardedCheckpoint, KeepsTheOneBeforeWhereARankCannotWrite) {
  with_ranks(2, [&](comm::Communicator& ranks, Stream, Stream communication) {
    ShardedRig rig(ranks, Sharding::zero1, {}, kRows / 2, communication);
    save(rig, ranks, directory_, 1);
    ranks.barrier();
    const std::vector<fs::path> before = shards();
    // Rank 1's directory is a file's.
    const fs::path other = ranks.rank() == 1 ? before[0] / "below" : directory_;
    try {
      save(rig, ranks, other, 2);
      ADD_FAILURE() << "saved below a file";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("rank 1: "), std::string::npos) << error.what();
    }
    ranks.barrier();
    EXPECT_EQ(shards(), before);
    EXPECT_EQ(load(rig, ranks, directory_).step, 1);
    // What somebody who was lost has left goes with the next save.
    if (ranks.rank() == 0) std::ofstream(directory_ / "shard-of-one-who-was-lost") << "half";
    ranks.barrier();
    save(rig, ranks, directory_, 3);
    EXPECT_EQ(shards().size(), 2U);
    EXPECT_EQ(load(rig, ranks, directory_).step, 3);
  });
}

TEST_F(ShardedCheckpoint, KeepsTheOneBeforeWhereARankIsLostOnTheWay) {
  with_ranks(2, [&](comm::Communicator& ranks, Stream, Stream communication) {
    ShardedRig rig(ranks, Sharding::zero1, {}, kRows / 2, communication);
    save(rig, ranks, directory_, 1);
  });
  const auto thrown = comm::try_local(2, {.limit = std::chrono::seconds(20)}, [&](comm::Communicator& ranks) {
    const device::OwnedStream communication = device::OwnedStream::queue();
    ShardedRig rig(ranks, Sharding::zero1, {}, kRows / 2, communication);
    if (ranks.rank() == 1) throw Error(ErrorKind::internal, "lost");
    save(rig, ranks, directory_, 2);
  });
  for (const std::exception_ptr& error : thrown) EXPECT_TRUE(test::threw(error, "lost"));
  with_ranks(3, [&](comm::Communicator& ranks, Stream, Stream communication) {
    ShardedRig rig(ranks, Sharding::zero2, {}, kRows / 3, communication);
    EXPECT_EQ(load(rig, ranks, directory_).step, 1);
  });
}

TEST_F(ShardedCheckpoint, NamesAnElementThatNobodySaved) {
  with_ranks(1, [&](comm::Communicator& ranks, Stream, Stream) {
    std::vector<float> values(10);
    const auto piece = [&](std::int64_t first, std::int64_t count) {
      return StatePiece{.parameter = "w", .first = first, .values = {values.data(), DType::f32, {count}}};
    };
    save_sharded(ranks, directory_, std::array{piece(0, 4), piece(6, 4)}, {}, kSettings, {});
    try {
      load_sharded(ranks, directory_, std::array{piece(2, 8)}, kSettings, {});
      ADD_FAILURE() << "loaded what is not there";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("no element 4 of 'w'"), std::string::npos) << error.what();
    }
    load_sharded(ranks, directory_, std::array{piece(7, 3), piece(1, 2)}, kSettings, {});
  });
}

}  // namespace
}  // namespace syslab::parallel
