// Laws of collectives, over every backend (tests/comm/backends.cpp): C1 to C8 of the design.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <sstream>
#include <thread>

#include "check/search.hpp"
#include "device/queue.hpp"
#include "device/stream.hpp"
#include "tests/comm/backends.hpp"
#include "tests/comm/collective.hpp"
#include "tests/laws/search_test.hpp"

namespace syslab::comm {
namespace {

class CollectiveLaws : public testing::TestWithParam<Backend> {
 protected:
  static void expect_law(const char* id, int cases, const std::function<void()>& property) {
    const check::LawRequest request = property::ci_request(check::Contract::full, cases);
    const check::LawResult result = check::search(id, request, [&](check::Observation&) { property(); });
    EXPECT_EQ(result.outcome, check::Outcome::passed)
        << property::story({.id = id, .statement = "", .search = {}}, result);
  }

  static std::vector<std::string> run(int ranks, const RankBody& body) {
    const auto ends = GetParam().run(ranks, {.limit = std::chrono::seconds(20)}, body);
    std::vector<std::string> results;
    for (const RankEnd& end : ends) {
      if (!end.well()) throw std::runtime_error("a rank failed: " + end.error);
      results.push_back(end.result);
    }
    return results;
  }

  static std::vector<std::string> run(const Collective& one, bool on_queue = false) {
    return run(one.ranks, [&](Communicator& ranks) {
      const auto queue = on_queue ? device::OwnedStream::queue() : device::OwnedStream();
      return run_collective(one, ranks, queue);
    });
  }
};

class OrderedCollectiveLaws : public CollectiveLaws {};

template <typename T>
T one_of(const char* name, std::initializer_list<T> values) {
  return *rc::gen::elementOf(std::vector<T>(values)).as(name);
}

int drawn(const char* name, int first, int end) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(first, end)).as(name);
}

// Around everything that cuts a buffer: ranks, blocks of the sum, slots of shared memory; and several slots.
std::int64_t drawn_count(int ranks) {
  const auto n = static_cast<std::int64_t>(ranks);
  if (drawn("large", 0, 8) == 0) {
    const std::int64_t slot = one_of<std::int64_t>("slot", {1024, 8192, 32768, 65536, 131072});
    return slot + drawn("beside the slot", -1, 2);
  }
  return one_of<std::int64_t>("count", {0, 1, n - 1, n, n + 1, 2 * n + 1, 7, 63, 1000 + drawn("more", 0, 100)});
}

Collective drawn_collective(int most_ranks, Values values) {
  Collective one;
  one.ranks = drawn("ranks", 1, most_ranks + 1);
  one.operation = one_of(
      "operation", {Operation::all_reduce, Operation::reduce_scatter, Operation::all_gather, Operation::broadcast});
  one.dtype = one_of("dtype", {DType::f32, DType::f64, DType::bf16, DType::f16});
  one.reduction = one_of("reduction", {Reduction::sum, Reduction::max, Reduction::min});
  one.count = drawn_count(one.ranks);
  one.root = drawn("root", 0, one.ranks);
  one.in_place = drawn("in place", 0, 2) == 1;
  one.offset = drawn("offset", 0, 4);
  one.values = values;
  one.seed = static_cast<std::uint64_t>(drawn("seed", 0, 1 << 30));
  return one;
}

TEST_P(CollectiveLaws, EveryOperationEqualsTheOracleAndTouchesNothingElse) {
  expect_law("comm.equals_oracle", 150, [] {
    const Collective one = drawn_collective(GetParam().most_ranks, Values::whole);
    const auto results = run(one, drawn("on a queue", 0, 2) == 1);
    for (int rank = 0; rank < one.ranks; ++rank) {
      RC_ASSERT(results[static_cast<std::size_t>(rank)] == expected(one, rank));
    }
  });
}

TEST_P(OrderedCollectiveLaws, SumsGoInTheOrderOfRanksAndRoundOnce) {
  expect_law("comm.in_rank_order", 100, [] {
    const Collective one = drawn_collective(GetParam().most_ranks, Values::any);
    const auto results = run(one);
    for (int rank = 0; rank < one.ranks; ++rank) {
      RC_ASSERT(results[static_cast<std::size_t>(rank)] == expected(one, rank));
    }
  });
}

TEST_P(CollectiveLaws, AllRanksHaveTheSameBitsAndHaveThemAgain) {
  expect_law("comm.same_bits", 60, [] {
    Collective one = drawn_collective(GetParam().most_ranks, Values::any);
    one.operation = Operation::all_reduce;
    const auto results = run(one), again = run(one, true);
    for (const std::string& result : results) RC_ASSERT(result == results[0]);
    RC_ASSERT(results == again);
  });
}

TEST_P(OrderedCollectiveLaws, ReducingIsScatteringThenGathering) {
  expect_law("comm.reduce_is_scatter_then_gather", 60, [] {
    Collective one = drawn_collective(GetParam().most_ranks, Values::any);
    const std::int64_t part = one.count;
    one.operation = Operation::all_reduce;
    one.count = part * one.ranks;
    const auto whole = run(one);
    const auto composed = run(one.ranks, [&](Communicator& ranks) {
      const std::size_t width = size_of(one.dtype);
      std::vector<std::byte> all(static_cast<std::size_t>(one.count) * width);
      for (std::int64_t i = 0; i < one.count; ++i) {
        store(one.dtype, element(one, ranks.rank(), i), all.data() + static_cast<std::size_t>(i) * width);
      }
      const TensorView buffer{all.data(), one.dtype, Shape{one.count}};
      const TensorView piece{all.data() + static_cast<std::size_t>(part * ranks.rank()) * width, one.dtype,
                             Shape{part}};
      ranks.reduce_scatter(buffer, piece, one.reduction, {}, {});
      ranks.all_gather(piece, buffer, {}, {});
      return std::string(reinterpret_cast<const char*>(all.data()), all.size());
    });
    RC_ASSERT(whole == composed);
  });
}

TEST_P(OrderedCollectiveLaws, CuttingABufferChangesNoBits) {
  expect_law("comm.cuts", 60, [] {
    Collective one = drawn_collective(GetParam().most_ranks, Values::any);
    one.operation = Operation::all_reduce;
    std::vector<std::int64_t> ends;
    for (int cut = drawn("cuts", 0, 6); cut > 0; --cut) {
      ends.push_back(drawn("cut at", 0, static_cast<int>(one.count) + 1));
    }
    ends.push_back(one.count);
    std::sort(ends.begin(), ends.end());
    const auto whole = run(one);
    const auto cut = run(one.ranks, [&](Communicator& ranks) {
      const std::size_t width = size_of(one.dtype);
      std::vector<std::byte> all(static_cast<std::size_t>(one.count) * width);
      for (std::int64_t i = 0; i < one.count; ++i) {
        store(one.dtype, element(one, ranks.rank(), i), all.data() + static_cast<std::size_t>(i) * width);
      }
      std::int64_t begin = 0;
      for (const std::int64_t end : ends) {
        std::byte* at = all.data() + static_cast<std::size_t>(begin) * width;
        ranks.all_reduce({at, one.dtype, Shape{end - begin}}, one.reduction, {}, {});
        begin = end;
      }
      return std::string(reinterpret_cast<const char*>(all.data()), all.size());
    });
    RC_ASSERT(whole == cut);
  });
}

TEST_P(CollectiveLaws, OperationsOnManyStreamsNeverMix) {
  expect_law("comm.streams", 40, [] {
    const int ranks_drawn = drawn("ranks", 2, GetParam().most_ranks + 1);
    std::vector<Collective> many(static_cast<std::size_t>(drawn("operations", 1, 9)));
    for (Collective& one : many) {
      const int root = drawn("root", 0, ranks_drawn);
      one = drawn_collective(1, Values::whole);
      one.ranks = ranks_drawn;
      one.root = root;
    }
    const auto seed = static_cast<unsigned>(drawn("streams and delays", 0, 1 << 30));
    const auto results = run(ranks_drawn, [&](Communicator& ranks) {
      const std::vector<device::OwnedStream> queues = [] {
        std::vector<device::OwnedStream> made;
        for (int i = 0; i < 3; ++i) made.push_back(device::OwnedStream::queue());
        return made;
      }();
      std::vector<CollectiveBuffers> buffers;
      for (const Collective& one : many) buffers.emplace_back(one, ranks.rank());
      std::minstd_rand random(seed + static_cast<unsigned>(ranks.rank()));  // each rank its own streams and delays
      Work last;
      for (CollectiveBuffers& buffer : buffers) {
        const device::Stream stream = queues[random() % queues.size()];
        if (random() % 3 == 0) {
          const auto delay = std::chrono::microseconds(random() % 500);
          device::enqueue(stream, [delay] { std::this_thread::sleep_for(delay); });
        }
        last = buffer.call(ranks, stream);
      }
      ranks.wait(last);
      std::string result;
      for (const CollectiveBuffers& buffer : buffers) result += buffer.result() + '|';
      return result;
    });
    for (int rank = 0; rank < ranks_drawn; ++rank) {
      std::string wanted;
      for (const Collective& one : many) wanted += expected(one, rank) + '|';
      RC_ASSERT(results[static_cast<std::size_t>(rank)] == wanted);
    }
  });
}

TEST_P(CollectiveLaws, CountersEqualTheFormulaToTheByte) {
  expect_law("comm.counters", 60, [] {
    const int n = drawn("ranks", 1, GetParam().most_ranks + 1);
    std::vector<Collective> many(static_cast<std::size_t>(drawn("operations", 1, 6)));
    std::uint64_t calls = 0, payload = 0, sent_by_all = 0;
    for (Collective& one : many) {
      one = drawn_collective(1, Values::whole);
      one.ranks = n;
      const std::uint64_t part = static_cast<std::uint64_t>(one.count) * size_of(one.dtype);
      const bool parts = one.operation == Operation::reduce_scatter || one.operation == Operation::all_gather;
      const std::uint64_t bytes = part * static_cast<std::uint64_t>(parts ? n : 1);
      const std::uint64_t times = one.operation == Operation::all_reduce ? 2 : 1;
      ++calls;
      payload += bytes;
      sent_by_all += times * static_cast<std::uint64_t>(n - 1) * bytes;  // n times the formula
    }
    const auto results = run(n, [&](Communicator& ranks) {
      for (const Collective& one : many) run_collective(one, ranks, {});
      const Counters::Row all = ranks.counters().total("gradient");
      return std::to_string(all.calls) + ' ' + std::to_string(all.payload_bytes) + ' ' +
             std::to_string(all.moved_bytes) + ' ' + std::to_string(all.wire_bytes);
    });
    std::uint64_t moved_by_all = 0;
    double wire_by_all = 0;
    for (const std::string& result : results) {
      std::uint64_t its_calls = 0, its_payload = 0, its_moved = 0;
      double its_wire = 0;
      std::istringstream(result) >> its_calls >> its_payload >> its_moved >> its_wire;
      RC_ASSERT(its_calls == calls);
      RC_ASSERT(its_payload == payload);
      moved_by_all += its_moved;
      wire_by_all += its_wire;
    }
    RC_ASSERT(std::abs(wire_by_all - static_cast<double>(sent_by_all)) <= 1e-3);
    if (GetParam().counts_moved) RC_ASSERT(moved_by_all == sent_by_all);
  });
}

TEST_P(CollectiveLaws, ScalingByAPowerOfTwoScalesTheSum) {
  expect_law("comm.linear", 60, [] {
    Collective one = drawn_collective(GetParam().most_ranks, Values::coarse);
    one.operation = Operation::all_reduce;
    one.reduction = Reduction::sum;
    Collective scaled = one;
    scaled.scale = static_cast<float>(1 << drawn("power", 0, 4));
    const std::string sum = run(one)[0], of_scaled = run(scaled)[0];
    RC_ASSERT(sum.size() == of_scaled.size());
    const std::size_t width = size_of(one.dtype);
    for (std::size_t at = 0; at < sum.size(); at += width) {
      const double once = load(one.dtype, sum.data() + at), twice = load(one.dtype, of_scaled.data() + at);
      RC_ASSERT(once * static_cast<double>(scaled.scale) == twice);
    }
  });
}

TEST_P(CollectiveLaws, MessagesOfAGroupArriveInTheirOrder) {
  struct Message {
    int from = 0, to = 0;
    std::int64_t count = 0;
  };
  expect_law("comm.messages", 60, [] {
    const int n = drawn("ranks", 2, GetParam().most_ranks + 1);
    std::vector<Message> messages;
    for (int left = drawn("messages", 0, 12); left > 0; --left) {
      const int from = drawn("from", 0, n);
      messages.push_back({from, (from + drawn("to", 1, n)) % n, one_of<std::int64_t>("count", {0, 1, 5, 70000})});
    }
    const int groups = drawn("groups", 1, 4);
    const auto value = [](std::size_t message, std::int64_t i) {
      return static_cast<float>(static_cast<std::int64_t>(message) * 1000 + i % 997);
    };
    const auto results = run(n, [&](Communicator& ranks) {
      std::vector<std::vector<float>> buffers(messages.size());
      const auto queue = device::OwnedStream::queue();
      Work last;
      for (int group = 0; group < groups; ++group) {
        ranks.begin_group();
        for (std::size_t m = static_cast<std::size_t>(group); m < messages.size();
             m += static_cast<std::size_t>(groups)) {
          const Message& message = messages[m];
          std::vector<float>& buffer = buffers[m];
          buffer.assign(static_cast<std::size_t>(message.count), -1);
          const TensorView view{buffer.data(), DType::f32, Shape{message.count}};
          if (message.from == ranks.rank()) {
            for (std::int64_t i = 0; i < message.count; ++i) buffer[static_cast<std::size_t>(i)] = value(m, i);
            last = ranks.send(view, message.to, {"control"}, queue);
          } else if (message.to == ranks.rank()) {
            last = ranks.receive(view, message.from, {"control"}, queue);
          }
        }
        ranks.end_group();
      }
      if (last.sequence > 0) ranks.wait(last);
      for (std::size_t m = 0; m < messages.size(); ++m) {
        if (messages[m].to != ranks.rank()) continue;
        for (std::int64_t i = 0; i < messages[m].count; ++i) {
          if (buffers[m][static_cast<std::size_t>(i)] != value(m, i))
            return "message " + std::to_string(m) + " is wrong";
        }
      }
      return std::string();
    });
    for (const std::string& result : results) RC_ASSERT(result == "");
  });
}

std::vector<Backend> within_this_process() {
  std::vector<Backend> some(backends().begin(), backends().end());
  std::erase_if(some, [](const Backend& backend) { return backend.forks; });
  return some;
}

std::vector<Backend> in_rank_order() {
  std::vector<Backend> some = within_this_process();
  std::erase_if(some, [](const Backend& backend) { return !backend.in_rank_order; });
  return some;
}

std::string name_of_backend(const testing::TestParamInfo<Backend>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Backends, CollectiveLaws, testing::ValuesIn(within_this_process()), name_of_backend);
INSTANTIATE_TEST_SUITE_P(Backends, OrderedCollectiveLaws, testing::ValuesIn(in_rank_order()), name_of_backend);

}  // namespace
}  // namespace syslab::comm
