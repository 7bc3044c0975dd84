// The law of a divided state: whatever a job does, in whatever order, its state has the bits of one process that does
// the same. Programs are drawn whole and shrink command by command.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <ostream>

#include "tests/laws/expect_law.hpp"
#include "tests/parallel/exact_ranks.hpp"
#include "tests/parallel/ranks_fixture.hpp"

namespace syslab::property {
namespace {

constexpr int kTensors = 4;
constexpr std::int64_t kRows = 8;

// Of which one that makes no sense where it stands does nothing, so that every part of a program is one.
struct Command {
  enum class Kind { step, join } kind = Kind::step;
  std::int64_t rows = 1;
  int parts = 1;
  std::vector<std::int64_t> users;
};

std::string text_of(const ExactWay& way) {
  return fmt::format("{}{}, gradients {}", to_string(way.sharding), way.in_turn ? " in turn" : "",
                     way.wire ? to_string(*way.wire) : "as they lie");
}

// By what was drawn below 5, 2 and 3.
ExactWay way_of(int sharding, int in_turn, int wire) {
  constexpr std::optional<DType> kWires[] = {std::nullopt, DType::bf16, DType::f16};
  return {parallel::kShardings[static_cast<std::size_t>(sharding)], in_turn == 1, kWires[wire]};
}

std::ostream& operator<<(std::ostream& out, const Command& command) {
  switch (command.kind) {
    case Command::Kind::step:
      return out << fmt::format("step of {} rows in {} parts, tensors used by {}", command.rows, command.parts,
                                fmt::join(command.users, " "));
    case Command::Kind::join:
      return out << "the next tensor joins";
  }
  return out;
}

rc::Gen<Command> command() {
  const auto below = [](int end) { return rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, end)); };
  return rc::gen::map(
      rc::gen::tuple(below(8), below(kRows), below(3),
                     rc::gen::container<std::vector<int>>(kTensors, below(2 * static_cast<int>(kRows)))),
      [](const std::tuple<int, int, int, std::vector<int>>& drawn) {
        const auto& [kind, rows, parts, unused] = drawn;
        Command made{.kind = kind == 0 ? Command::Kind::join : Command::Kind::step,
                     .rows = 1 + rows,
                     .parts = 1 + parts,
                     .users = {}};
        // Most tensors are used by all rows.
        for (const int one : unused) made.users.push_back(std::max<std::int64_t>(made.rows - one, 0));
        for (std::size_t i = 0; i < unused.size(); ++i) {
          if (unused[i] >= kRows) made.users[i] = made.rows;
        }
        return made;
      });
}

ExactModel drawn_model() {
  ExactModel model{.seed = static_cast<std::uint64_t>(drawn_size("seed", 0, 100'000))};
  const int tensors = drawn_size("tensors", 1, kTensors + 1);
  for (int i = 0; i < tensors; ++i) {
    const std::int64_t rows = i == 0 ? drawn_size("rows of the first", 2, 6) : drawn_size("rows", 1, 6);
    model.tensors.push_back({fmt::format("t{}", i), rows, drawn_size("width", 1, 5)});
  }
  model.cuts = static_cast<unsigned>(drawn_size("cuts", 0, 1 << (kTensors - 1)));
  model.grouped = drawn_size("grouped", 0, 2) == 1;
  return model;
}

// As a rank, what one process does, too; what it finds to differ.
std::string run(const ExactModel& model, const std::vector<Command>& program, const ExactWay& way,
                comm::Communicator& ranks, device::Stream compute, device::Stream communication) {
  ExactAlone alone(model);
  const auto training = exact_ranks(model, way, ranks, compute, communication);
  training->join(1);
  for (const Command& command : program) {
    if (command.kind == Command::Kind::step) {
      const ExactStep step{alone.state().step, command.rows, command.parts, command.users};
      alone.take(step);
      training->take(step);
    } else if (alone.state().joined < model.size()) {
      alone.join();
      training->join(alone.state().joined);
    }
  }
  const std::string found = alone.state().difference(model, training->pieces());
  ranks.barrier();  // nobody's weights are on their way any more
  return found;
}

TEST(ShardedStateLaws, AnyProgramHasTheBitsOfOneProcess) {
  expect_law("parallel.sharded_state", 150, [&](check::Observation&) {
    const ExactModel model = drawn_model();
    const int ranks = drawn_size("ranks", 1, 5);
    ExactWay way = way_of(drawn_size("sharding", 0, 5), drawn_size("in turn", 0, 2), drawn_size("wire", 0, 3));
    if (model.grouped && way.sharding != Sharding::none) way.sharding = Sharding::optimizer;
    const auto program = *rc::gen::resize(12, rc::gen::container<std::vector<Command>>(command())).as("program");
    std::mutex mutex;
    std::string found;
    test::with_ranks(ranks, [&](comm::Communicator& group, device::Stream compute, device::Stream communication) {
      const std::string told = run(model, program, way, group, compute, communication);
      const std::lock_guard lock(mutex);
      if (!told.empty() && found.empty()) found = fmt::format("rank {}: {}", group.rank(), told);
    });
    if (!found.empty()) RC_FAIL(fmt::format("{} ranks, {}: {}", ranks, text_of(way), found));
  });
}

}  // namespace
}  // namespace syslab::property
