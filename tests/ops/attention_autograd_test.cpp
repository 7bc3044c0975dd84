// What autograd keeps and holds, in matrices of scores; that its passes are right is attention_rungs_test.cpp's matter.
#include "ops/attention/autograd.hpp"

#include <cstring>

#include "attention_fixture.hpp"
#include "tests/ops/host_rungs.hpp"

namespace syslab::attention {
namespace {

// Long and narrow: a matrix of scores is 64 times as large as Q, so that whole matrices can be counted.
const Problem kProblem{.batch = 2, .heads_q = 2, .heads_kv = 2, .seq_q = 256, .seq_k = 256, .head_dim = 4};

struct Counted {
  const char* name;
  double kept, forward, backward;
};

double matrices(std::size_t bytes) {
  return static_cast<double>(bytes) /
         (4.0 * static_cast<double>(kProblem.batch * kProblem.heads_q * kProblem.seq_q * kProblem.seq_k));
}

TEST(Autograd, KeepsAndHoldsTheMatricesThatItsTableSays) {
  for (const Counted& counted : {Counted{"literal", 2, 4, 6}, {"fused_softmax", 1, 1, 2}, {"flash_tiled", 0, 0, 0}}) {
    const AutogradRung& rung = find_autograd_rung(counted.name);
    const std::size_t kept = rung.saved_bytes(kProblem);
    EXPECT_NEAR(matrices(kept), counted.kept, 0.02) << counted.name;
    if (counted.kept == 0) continue;  // its workspace is O(S·D), which attention_flash_test.cpp holds it to
    EXPECT_NEAR(matrices(kept + rung.workspace_bytes(kProblem, Pass::forward)), counted.forward, 0.1) << counted.name;
    EXPECT_NEAR(matrices(kept + rung.workspace_bytes(kProblem, Pass::backward)), counted.backward, 0.2) << counted.name;
  }
}

// Reports derive memory from these counts, of GPU rungs in fp32 as well.
TEST(Autograd, TellsTheMatricesAsFacts) {
  const auto told = [](const char* name) {
    std::string all;
    for (const RungFact& fact : find_autograd_rung(name).facts) {
      if (fact.unit == "matrices") all += fact.name + " " + fact.value + ";";
    }
    return all;
  };
  for (const char* name : {"literal", "naive_cuda_literal"}) {
    EXPECT_EQ(told(name), "kept_matrices 2;forward_matrices 2;backward_matrices 4;") << name;
  }
  for (const char* name : {"fused_softmax", "naive_cuda"}) {
    EXPECT_EQ(told(name), "kept_matrices 1;forward_matrices 0;backward_matrices 1;") << name;
  }
  EXPECT_EQ(told("flash_tiled"), "");
}

TEST(AttentionLadder, TellsTheTilesOfForwardPassesAsFacts) {
  const auto told = [](std::string_view name) {
    std::string all;
    for (const RungFact& fact : find_rung(name).facts) {
      if (fact.unit == "queries × keys") all += fact.name + " " + fact.value + ";";
    }
    return all;
  };
  EXPECT_EQ(told("flash_tiled"), "forward_tile 96 × 128;");
  const std::string mma =
      "forward_tile_32 128 × 128;forward_tile_64 128 × 64;forward_tile_128 128 × 48;forward_tile_256 64 × 32;";
  EXPECT_EQ(told("flash_mma"), mma);
  EXPECT_EQ(told("flash_mma_deterministic"), mma);
  for (const char* name : {"flash_fp32", "flash_tf32"}) {
    EXPECT_EQ(told(name),
              "forward_tile_16 128 × 64;forward_tile_32 128 × 64;forward_tile_64 64 × 64;forward_tile_128 64 × 16;")
        << name;
  }
}

// Bytes around what the rung was lent must stay as they were, and two passes on lent memory give what as_rung gives.
TEST(Autograd, StaysInsideWhatItAsksFor) {
  for (const AutogradRung& rung : ops::host_rungs(autograd_ladder())) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      Problem problem{.heads_q = 4, .heads_kv = 2, .seq_q = 37, .seq_k = 53, .head_dim = 9, .mask = Mask::top_left};
      problem.dtype = dtype;
      Tensors own(problem, 7), lent(problem, 7);
      own.run_forward(as_rung(rung));
      own.run_backward(as_rung(rung));

      constexpr std::size_t kGuard = 256;
      struct Guarded {
        std::size_t bytes;
        device::Buffer memory;
        explicit Guarded(std::size_t size) : bytes(size), memory(size + 2 * kGuard, "guarded") {
          std::memset(memory.data(), 0x5A, memory.bytes());
        }
        ops::Workspace lend() { return {memory.as<std::byte>() + kGuard, bytes}; }
        bool whole() const {
          const auto* begin = memory.as<unsigned char>();
          const auto is_mark = [](unsigned char byte) { return byte == 0x5A; };
          return std::all_of(begin, begin + kGuard, is_mark) &&
                 std::all_of(begin + kGuard + bytes, begin + memory.bytes(), is_mark);
        }
      };
      Guarded saved(rung.saved_bytes(problem)), forward(rung.workspace_bytes(problem, Pass::forward)),
          backward(rung.workspace_bytes(problem, Pass::backward));
      rung.forward(problem, lent.forward(), saved.lend(), forward.lend(), {});
      rung.backward(problem, lent.backward(), saved.lend(), backward.lend(), {});
      EXPECT_TRUE(saved.whole() && forward.whole() && backward.whole()) << rung.name;
      EXPECT_EQ(to_doubles(lent.forward().out), to_doubles(own.forward().out)) << rung.name;
      EXPECT_EQ(to_doubles(lent.backward().dq), to_doubles(own.backward().dq)) << rung.name;
      EXPECT_EQ(to_doubles(lent.backward().dk), to_doubles(own.backward().dk)) << rung.name;
      EXPECT_EQ(to_doubles(lent.backward().dv), to_doubles(own.backward().dv)) << rung.name;
    }
  }
}

TEST(Autograd, TooLittleMemoryToSaveInIsRefused) {
  for (const AutogradRung& rung : ops::host_rungs(autograd_ladder())) {
    const Problem problem{.seq_q = 16, .seq_k = 16, .head_dim = 8};
    const std::size_t needed = rung.saved_bytes(problem);
    if (needed == 0) continue;
    Tensors tensors(problem, 3);
    const device::Buffer memory(needed + 16, "test");
    for (const ops::Workspace& saved :
         {ops::Workspace{}, {memory.data(), needed - 1}, {memory.as<std::byte>() + 4, needed}}) {
      for (const bool forward : {true, false}) {
        try {
          forward ? rung.forward(problem, tensors.forward(), saved, {}, {})
                  : rung.backward(problem, tensors.backward(), saved, {}, {});
          ADD_FAILURE() << rung.name << ": no error";
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::usage);
          EXPECT_NE(std::string(error.what()).find(rung.name + ": `saved` is"), std::string::npos) << error.what();
        }
      }
    }
  }
}

TEST(Autograd, TooLittleWorkspaceIsReplacedByMemoryOfTheCall) {
  for (const AutogradRung& rung : ops::host_rungs(autograd_ladder())) {
    const Problem problem{.seq_q = 40, .seq_k = 40, .head_dim = 8, .mask = Mask::top_left};
    Tensors tensors(problem, 4);
    const device::Buffer saved(rung.saved_bytes(problem), "test");
    rung.forward(problem, tensors.forward(), {saved.data(), saved.bytes()}, {}, {});
    rung.backward(problem, tensors.backward(), {saved.data(), saved.bytes()}, {}, {});
    tensors.check_forward();
    tensors.check_backward();
  }
}

TEST(Autograd, UnknownNamesAreToldWithTheNearest) { EXPECT_THROW(find_autograd_rung("litteral"), Error); }

}  // namespace
}  // namespace syslab::attention
