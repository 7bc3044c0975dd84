// The law of a divided state: whatever a job does, in whatever order, its state has the bits of one process that does
// the same. Programs are drawn whole and shrink command by command.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <ostream>

#include "parallel/sharded_checkpoint.hpp"
#include "tests/laws/expect_law.hpp"
#include "tests/parallel/exact_ranks.hpp"
#include "tests/parallel/ranks_fixture.hpp"
#include "tests/temporary_folder.hpp"

namespace syslab::property {
namespace {

constexpr int kTensors = 4;
constexpr std::int64_t kRows = 8;

// Of which those that make no sense where they stand do nothing, so that every part of a program is one.
struct Command {
  enum class Kind { step, save, failing_save, resume, join } kind = Kind::step;
  std::int64_t rows = 1;
  int parts = 1;
  std::vector<std::int64_t> users;
  int ranks = 1;  // of resume; of failing_save, who fails
  ExactWay way;
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
    case Command::Kind::save:
      return out << "save";
    case Command::Kind::failing_save:
      return out << "save that rank " << command.ranks << " cannot write";
    case Command::Kind::resume:
      return out << fmt::format("resume on {} ranks, {}", command.ranks, text_of(command.way));
    case Command::Kind::join:
      return out << "the next tensor joins";
  }
  return out;
}

rc::Gen<Command> command() {
  const auto below = [](int end) { return rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, end)); };
  return rc::gen::map(
      rc::gen::tuple(below(12), below(kRows), below(3),
                     rc::gen::container<std::vector<int>>(kTensors, below(2 * static_cast<int>(kRows))), below(4),
                     below(static_cast<int>(parallel::kShardings.size())), below(2), below(3)),
      [](const std::tuple<int, int, int, std::vector<int>, int, int, int, int>& drawn) {
        const auto& [kind, rows, parts, unused, ranks, sharding, in_turn, wire] = drawn;
        Command made{.rows = 1 + rows, .parts = 1 + parts, .users = {}, .ranks = 1 + ranks};
        made.kind = kind < 6    ? Command::Kind::step
                    : kind < 8  ? Command::Kind::save
                    : kind == 8 ? Command::Kind::failing_save
                    : kind < 11 ? Command::Kind::resume
                                : Command::Kind::join;
        // Most tensors are used by all rows.
        for (const int one : unused) made.users.push_back(std::max<std::int64_t>(made.rows - one, 0));
        for (std::size_t i = 0; i < unused.size(); ++i) {
          if (unused[i] >= kRows) made.users[i] = made.rows;
        }
        made.way = way_of(sharding, in_turn, wire);
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

// What ranks do from their start to their end, and the states that one process has meanwhile.
struct Segment {
  int ranks = 1;
  ExactWay way;
  std::optional<ExactState> from;
  struct Act {
    Command command;
    ExactStep step;
    ExactState after;
  };
  std::vector<Act> acts;
  ExactState end;
};

ExactWay possible(const ExactModel& model, ExactWay asked) {
  if (model.grouped && asked.sharding != Sharding::none) asked.sharding = Sharding::optimizer;
  return asked;
}

// One process does it all.
std::vector<Segment> planned(const ExactModel& model, const std::vector<Command>& program, int ranks,
                             const ExactWay& way) {
  std::vector<Segment> segments{{.ranks = ranks, .way = possible(model, way), .from = {}, .acts = {}, .end = {}}};
  std::optional<ExactState> saved;
  auto alone = std::make_unique<ExactAlone>(model);
  for (const Command& command : program) {
    if (command.kind == Command::Kind::resume && saved) {
      segments.back().end = alone->state();
      segments.push_back(
          {.ranks = command.ranks, .way = possible(model, command.way), .from = saved, .acts = {}, .end = {}});
      alone = std::make_unique<ExactAlone>(model, *saved);
    }
    if (command.kind == Command::Kind::resume) continue;
    Segment::Act act{.command = command, .step = {}, .after = {}};
    if (command.kind == Command::Kind::step) {
      act.step = {alone->state().step, command.rows, command.parts, command.users};
      alone->take(act.step);
    }
    if (command.kind == Command::Kind::join && alone->state().joined < model.size()) alone->join();
    act.after = alone->state();
    if (command.kind == Command::Kind::save) saved = act.after;
    segments.back().acts.push_back(std::move(act));
  }
  segments.back().end = alone->state();
  return segments;
}

// As a rank; what it finds to differ.
std::string run(const ExactModel& model, const Segment& segment, const std::filesystem::path& directory,
                comm::Communicator& ranks, device::Stream compute, device::Stream communication) {
  const auto training = exact_ranks(model, segment.way, ranks, compute, communication);
  training->join(segment.from ? segment.from->joined : 1);
  if (segment.from) {
    const train::TrainingState state = parallel::load_sharded(ranks, directory, training->wanted_pieces(), {}, compute);
    if (state.step != segment.from->step) return fmt::format("step {} was resumed", state.step);
    training->optimizer().set_steps(state.group_steps);
    if (const std::string found = segment.from->difference(model, training->wanted_pieces()); !found.empty()) {
      return "resumed: " + found;
    }
    ranks.barrier();
  }
  for (const Segment::Act& act : segment.acts) {
    const train::TrainingState state{.step = act.after.step, .group_steps = act.after.group_steps};
    switch (act.command.kind) {
      case Command::Kind::step:
        training->take(act.step);
        break;
      case Command::Kind::join:
        training->join(act.after.joined);
        break;
      case Command::Kind::failing_save:
        try {
          const bool fails = ranks.rank() == act.command.ranks % ranks.size();
          parallel::save_sharded(ranks, fails ? "/dev/null/below" : directory, training->own_pieces(), state, {},
                                 compute);
          return "a save that cannot be written was written";
        } catch (const Error& error) {
          if (error.kind() != ErrorKind::usage) throw;
        }
        break;
      default:
        parallel::save_sharded(ranks, directory, training->own_pieces(), state, {}, compute);
        if (training->optimizer().steps() != act.after.group_steps) return "groups have counted other steps";
    }
  }
  const std::string found = segment.end.difference(model, training->wanted_pieces());
  ranks.barrier();  // nobody's weights are on their way any more
  return found;
}

TEST(ShardedStateLaws, AnyProgramHasTheBitsOfOneProcess) {
  const test::TemporaryFolder folder;
  expect_law("parallel.sharded_state", 150, [&](check::Observation&) {
    const ExactModel model = drawn_model();
    const int ranks = drawn_size("ranks", 1, 5);
    const ExactWay way = way_of(drawn_size("sharding", 0, 5), drawn_size("in turn", 0, 2), drawn_size("wire", 0, 3));
    const auto program = *rc::gen::resize(12, rc::gen::container<std::vector<Command>>(command())).as("program");
    std::filesystem::remove_all(folder / "run");
    int number = 0;
    for (const Segment& segment : planned(model, program, ranks, way)) {
      std::mutex mutex;
      std::string found;
      test::with_ranks(segment.ranks,
                       [&](comm::Communicator& group, device::Stream compute, device::Stream communication) {
                         const std::string told = run(model, segment, folder / "run", group, compute, communication);
                         const std::lock_guard lock(mutex);
                         if (!told.empty() && found.empty()) found = fmt::format("rank {}: {}", group.rank(), told);
                       });
      if (!found.empty()) {
        RC_FAIL(fmt::format("run {} ({} ranks, {}): {}", number, segment.ranks, text_of(segment.way), found));
      }
      ++number;
    }
  });
}

}  // namespace
}  // namespace syslab::property
