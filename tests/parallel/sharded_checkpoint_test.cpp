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
using test::DividedRig;
using test::small_config;
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

void save(DividedRig& rig, comm::Communicator& ranks, const fs::path& directory, int step,
          const train::Settings& settings = kSettings) {
  save_sharded(ranks, directory, rig.own_pieces(), {.step = step, .next_batch = 7}, settings, {});
}

train::TrainingState load(DividedRig& rig, comm::Communicator& ranks, const fs::path& directory,
                          const train::Settings& settings = kSettings) {
  const train::TrainingState state = load_sharded(ranks, directory, rig.wanted_pieces(), settings, {});
  rig.resumed(state);
  return state;
}

// All of a state by plane and parameter, whoever has it.
using Whole = std::map<std::string, std::vector<float>>;
void collect(Whole& whole, const std::vector<StatePiece>& pieces) {
  const model::ParameterLayout layout(small_config());
  for (const StatePiece& piece : pieces) {
    std::vector<float>& all = whole[std::string(to_string(piece.plane)) + " " + piece.parameter];
    all.resize(static_cast<std::size_t>(layout.info(layout.index_of(piece.parameter)).shape.elements()), -1);
    std::copy_n(piece.values.as<float>(), piece.values.elements(), all.begin() + piece.first);
  }
}
Whole held(DividedRig& rig) {
  Whole whole;
  collect(whole, rig.wanted_pieces());
  return whole;
}

TEST_F(ShardedCheckpoint, IsResumedByAnyNumberOfRanksDividedInAnyWay) {
  for (const auto& [savers, saved_as] :
       {std::pair(2, Sharding::zero1), std::pair(2, Sharding::none), std::pair(3, Sharding::optimizer),
        std::pair(3, Sharding::zero3), std::pair(6, Sharding::zero2)}) {
    Whole saved;
    std::int64_t elements = 0;
    double next_loss = 0;
    std::mutex mutex;
    with_ranks(savers, [&, sharding = saved_as](comm::Communicator& ranks, Stream, Stream communication) {
      DividedRig rig(ranks, sharding, communication);
      rig.take(0);
      rig.take(1);
      save(rig, ranks, directory_, 2);
      const std::vector<StatePiece> own = rig.own_pieces();
      {
        const std::lock_guard lock(mutex);
        collect(saved, own);
        for (const StatePiece& piece : own) elements += piece.values.elements();
      }
      ranks.barrier();
      const double loss = rig.take(2);
      if (ranks.rank() == 0) next_loss = loss;
    });
    EXPECT_EQ(elements, 3 * model::parameter_count(small_config())) << to_string(saved_as) << ": each element once";
    EXPECT_EQ(shards().size(), static_cast<std::size_t>(savers));
    for (const auto& [count, loaded_as] :
         {std::pair(1, Sharding::zero1), std::pair(2, Sharding::zero2), std::pair(3, Sharding::none),
          std::pair(2, Sharding::optimizer), std::pair(2, Sharding::zero3), std::pair(6, Sharding::zero3)}) {
      SCOPED_TRACE(std::to_string(savers) + " " + std::string(to_string(saved_as)) + ", then " + std::to_string(count) +
                   " " + std::string(to_string(loaded_as)));
      Whole loaded;
      with_ranks(count, [&, sharding = loaded_as](comm::Communicator& ranks, Stream, Stream communication) {
        DividedRig rig(ranks, sharding, communication);
        const train::TrainingState state = load(rig, ranks, directory_);
        EXPECT_EQ(state.step, 2);
        EXPECT_EQ(state.next_batch, 7U);
        {
          const std::lock_guard lock(mutex);
          collect(loaded, rig.wanted_pieces());
        }
        ranks.barrier();
        EXPECT_NEAR(rig.take(2), next_loss, 1e-5 * next_loss);  // rows are summed in another order
        rig.check();
      });
      EXPECT_TRUE(loaded == saved);
    }
  }
}

// Also where one updates slices in turn and the other at the end of a step.
TEST_F(ShardedCheckpoint, GoesOnToTheBitWhereAsManyRanksResume) {
  const auto run = [&](Sharding sharding, bool saved_in_turn, bool resumed_in_turn) {
    with_ranks(2, [&](comm::Communicator& ranks, Stream, Stream communication) {
      DividedRig whole(ranks, sharding, communication, saved_in_turn);
      whole.take(0);
      whole.take(1);
      save(whole, ranks, directory_, 2);
      DividedRig resumed(ranks, sharding, communication, resumed_in_turn);
      EXPECT_FALSE(held(resumed) == held(whole)) << to_string(sharding);
      load(resumed, ranks, directory_);
      for (int i = 2; i < 4; ++i) {
        whole.take(i);
        resumed.take(i);
      }
      EXPECT_TRUE(held(resumed) == held(whole)) << to_string(sharding) << saved_in_turn << resumed_in_turn;
    });
  };
  for (const Sharding sharding : kShardings) run(sharding, false, false);
  for (const Sharding sharding : {Sharding::zero1, Sharding::zero2}) {
    run(sharding, true, false);
    run(sharding, false, true);
  }
}

TEST_F(ShardedCheckpoint, RefusesWhatIsTornMissingOrAnothersByItsName) {
  with_ranks(2, [&](comm::Communicator& ranks, Stream, Stream communication) {
    DividedRig rig(ranks, Sharding::zero1, communication);
    save(rig, ranks, directory_, 1);
  });
  const std::vector<fs::path> files = shards();
  const auto refused = [&](const std::string& why, const std::string& name,
                           const train::Settings& settings = kSettings) {
    const auto thrown = comm::try_local(3, {.limit = std::chrono::seconds(20)}, [&](comm::Communicator& ranks) {
      const device::OwnedStream communication = device::OwnedStream::queue();
      DividedRig rig(ranks, Sharding::zero1, communication);
      const Whole before = held(rig);
      try {
        load(rig, ranks, directory_, settings);
      } catch (...) {
        EXPECT_TRUE(held(rig) == before);
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
    DividedRig rig(ranks, Sharding::zero1, communication);
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
    DividedRig rig(ranks, Sharding::zero1, communication);
    save(rig, ranks, directory_, 1);
  });
  const auto thrown = comm::try_local(2, {.limit = std::chrono::seconds(20)}, [&](comm::Communicator& ranks) {
    const device::OwnedStream communication = device::OwnedStream::queue();
    DividedRig rig(ranks, Sharding::zero1, communication);
    if (ranks.rank() == 1) throw Error(ErrorKind::internal, "lost");
    save(rig, ranks, directory_, 2);
  });
  for (const std::exception_ptr& error : thrown) EXPECT_TRUE(test::threw(error, "lost"));
  with_ranks(3, [&](comm::Communicator& ranks, Stream, Stream communication) {
    DividedRig rig(ranks, Sharding::zero2, communication);
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

// Two ranks that both think an element theirs: which of the two would be resumed?
TEST_F(ShardedCheckpoint, IsNotMadeOfPiecesThatOverlap) {
  std::vector<float> values(10);
  const auto piece = [&](std::int64_t first, std::int64_t count) {
    return StatePiece{.parameter = "w", .first = first, .values = {values.data(), DType::f32, {count}}};
  };
  with_ranks(2, [&](comm::Communicator& ranks, Stream, Stream) {
    const bool first = ranks.rank() == 0;
    save_sharded(ranks, directory_, std::array{first ? piece(0, 4) : piece(4, 6)}, {.step = 1}, kSettings, {});
    for (const std::int64_t begin : {0, 2, 3}) {
      const std::vector<fs::path> before = shards();
      ranks.barrier();
      try {
        save_sharded(ranks, directory_, std::array{first ? piece(0, 4) : piece(begin, 2)}, {.step = 2}, kSettings, {});
        ADD_FAILURE() << "saved element " << begin << " twice";
      } catch (const Error& error) {
        const std::string why = "element " + std::to_string(begin) + " of 'weight w' is in two of the saved pieces";
        EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
      }
      ranks.barrier();
      EXPECT_EQ(shards(), before);
    }
    EXPECT_EQ(load_sharded(ranks, directory_, std::array{piece(0, 10)}, kSettings, {}).step, 1);
    // Nothing is nobody's.
    save_sharded(ranks, directory_, std::array{first ? piece(0, 10) : piece(3, 0)}, {.step = 3}, kSettings, {});
  });
}

// A checkpoint of somebody else's making.
TEST_F(ShardedCheckpoint, IsNotResumedFromPiecesThatOverlap) {
  with_ranks(1, [&](comm::Communicator& ranks, Stream, Stream) {
    std::vector<float> values(10);
    model::FileMetadata named;
    for (const auto& [first, count] : {std::pair(0, 6), std::pair(4, 6)}) {
      const StatePiece piece{.parameter = "w", .first = first, .values = {values.data(), DType::f32, {count}}};
      const fs::path aside = directory_ / std::to_string(first);
      save_sharded(ranks, aside, std::array{piece}, {}, kSettings, {});
      named.merge(model::FileMetadata(model::SafetensorsReader(aside / "manifest.safetensors").metadata()));
      for (const auto& entry : fs::directory_iterator(aside)) {
        if (entry.path().filename().string().starts_with("shard-")) {
          fs::rename(entry.path(), directory_ / entry.path().filename());
        }
      }
    }
    model::SafetensorsWriter(directory_ / "manifest.safetensors", {}, named).finish();
    // Also where what is wanted lies outside of what is there twice.
    for (const std::int64_t count : {10, 2}) {
      const StatePiece wanted{.parameter = "w", .values = {values.data(), DType::f32, {count}}};
      try {
        load_sharded(ranks, directory_, std::array{wanted}, kSettings, {});
        ADD_FAILURE() << "resumed one of two";
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("element 4 of 'weight w' is in two of"), std::string::npos)
            << error.what();
      }
    }
  });
}

}  // namespace
}  // namespace syslab::parallel
