#include "agents/seats.hpp"

#include <gtest/gtest.h>

namespace syslab::agents {
namespace {

Seat seat(const std::string& host, const std::string& processors, int count, int local_rank,
          std::vector<std::string> gpus = {}) {
  Seat made;
  made.host = host;
  made.system = "boot of " + host;
  made.processors = processors;
  made.processor_count = count;
  made.local_rank = local_rank;
  made.gpus = std::move(gpus);
  return made;
}

TEST(Seats, RanksThatMayUseTheSameProcessorsShareThem) {
  const std::vector<Seat> free{seat("a", "0-7", 8, 0), seat("a", "0-7", 8, 1), seat("b", "0-7", 8, 0)};
  EXPECT_EQ(threads_of(free, 0, 1), 8);  // the other two have nothing to do in a case of one rank
  EXPECT_EQ(threads_of(free, 0, 3), 4);
  EXPECT_EQ(threads_of(free, 1, 3), 4);
  EXPECT_EQ(threads_of(free, 2, 3), 8);
}

TEST(Seats, RanksThatWereBoundApartKeepTheirOwn) {
  const std::vector<Seat> bound{seat("a", "0-3", 4, 0), seat("a", "4-7", 4, 1)};
  EXPECT_EQ(threads_of(bound, 0, 2), 4);
  EXPECT_EQ(threads_of(bound, 1, 2), 4);
}

TEST(Seats, ThreadsThatTheLauncherHasSetStay) {
  std::vector<Seat> seats{seat("a", "0-7", 8, 0), seat("a", "0-7", 8, 1)};
  seats[1].threads_are_set = true;
  EXPECT_EQ(threads_of(seats, 0, 2), 4);
  EXPECT_EQ(threads_of(seats, 1, 2), 0);
}

TEST(Seats, NoRankHasFewerThanOneThread) {
  const std::vector<Seat> seats(5, seat("a", "0", 1, 0));
  EXPECT_EQ(threads_of(seats, 4, 5), 1);
}

TEST(Seats, OneHostIsOneNameAndOneSystem) {
  const std::vector<Seat> seats{seat("a", "0", 1, 0), seat("a", "0", 1, 1), seat("b", "0", 1, 0)};
  EXPECT_TRUE(on_one_host(seats, 2));
  EXPECT_FALSE(on_one_host(seats, 3));
  std::vector<Seat> twins = seats;  // two containers of one name
  twins[1].system = "another boot";
  EXPECT_FALSE(on_one_host(twins, 2));
}

TEST(Seats, EachRankHasTheGpuOfItsPlaceOnItsHost) {
  const std::vector<Seat> seats{seat("a", "0", 1, 0, {"0", "1"}), seat("a", "0", 1, 1, {"0", "1"}),
                                seat("b", "0", 1, 0, {"0", "1"}), seat("b", "0", 1, 1, {"0", "1"})};
  EXPECT_EQ(gpu_of(seats[1]), 1);
  EXPECT_EQ(gpu_of(seats[2]), 0);
  EXPECT_EQ(ranks_with_a_gpu(seats), 4);
}

TEST(Seats, OfARankThatSeesOneGpuAloneThatIsIts) {
  // srun --gpus-per-task=1
  const std::vector<Seat> seats{seat("a", "0", 1, 0, {"2"}), seat("a", "0", 1, 1, {"3"})};
  EXPECT_EQ(gpu_of(seats[1]), 0);
  EXPECT_EQ(ranks_with_a_gpu(seats), 2);
}

TEST(Seats, RanksBeyondTheGpusHaveNone) {
  const std::vector<Seat> crowded(3, seat("a", "0", 1, 0, {"0"}));
  EXPECT_EQ(ranks_with_a_gpu(crowded), 1);
  const std::vector<Seat> none{seat("a", "0", 1, 0), seat("b", "0", 1, 0, {"0"})};
  EXPECT_EQ(ranks_with_a_gpu(none), 0);
}

TEST(Seats, AreToldByHost) {
  const std::vector<Seat> seats{seat("a", "0", 1, 0), seat("b", "0", 1, 0), seat("a", "0", 1, 1)};
  EXPECT_EQ(text_of(seats), "3 ranks on a (0 and 2) and b (1)");
}

TEST(Seats, ThisProcessHasAHostAndAProcessor) {
  const Seat own = this_seat(0);
  EXPECT_FALSE(own.host.empty());
  EXPECT_FALSE(own.system.empty());
  EXPECT_GE(own.processor_count, 1);
}

}  // namespace
}  // namespace syslab::agents
