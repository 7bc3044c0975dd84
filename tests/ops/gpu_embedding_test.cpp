#include "tests/ops/embedding_fixture.hpp"
#include "tests/ops/gpu_model_tensors.hpp"

namespace syslab::embedding {
namespace {

using ops::There;

class GpuEmbedding : public device::GpuTest {
 protected:
  void run(Instance& i, bool accumulate = false, std::int64_t shift = 0) {
    const Rung& rung = find_rung("fused_cuda");
    const There table(i.table, stream, shift), x(i.x, stream, shift), dx(i.dx, stream, shift),
        dtable(i.dtable, stream, shift);
    const device::Buffer ids = to_gpu(i.ids);
    const device::Buffer workspace(rung.workspace_bytes(i.problem, Pass::backward), "workspace", stream);
    device::fill_bytes(workspace.data(), 0xff, workspace.bytes(), stream);  // it holds nothing that may be counted on
    rung.forward(i.problem, {ids.as<std::int64_t>(), table.view, x.view}, {}, stream);
    rung.backward(i.problem, {ids.as<std::int64_t>(), dx.view, dtable.view, accumulate},
                  {workspace.data(), workspace.bytes()}, stream);
    x.bring_back(i.x);
    dtable.bring_back(i.dtable);
  }
};

const std::vector<std::pair<DType, DType>> kDtypes = {{DType::f32, DType::f32},
                                                      {DType::f32, DType::bf16},
                                                      {DType::f32, DType::f16},
                                                      {DType::bf16, DType::bf16},
                                                      {DType::f16, DType::f16}};

TEST_F(GpuEmbedding, StaysWithinItsBoundAtEveryEdge) {
  for (const auto& [table, x] : kDtypes) {
    for (const std::int64_t rows : {1, 15, 16, 17, 1023, 1024, 1025, 3000}) {
      for (const std::int64_t vocab : {1, 2, 131, 132, 133, 700}) {
        for (const std::int64_t dim : {1, 7, 8, 64, 100, 520}) {
          if (rows * dim > 200'000 || vocab * dim > 100'000) continue;
          Instance i({rows, vocab, dim, table, x}, static_cast<unsigned>(rows + vocab));
          run(i);
          ASSERT_LE(i.worst(), 1.0) << to_string(i.problem);
        }
      }
    }
  }
}

TEST_F(GpuEmbedding, OneTokenAllTheTimeIsSummedInPieces) {
  for (const std::int64_t rows : {16, 17, 33, 5000}) {
    for (const std::int64_t id : {0, 3, 9}) {
      Instance i({.rows = rows, .vocab = 10, .dim = 136});
      std::fill(i.ids.begin(), i.ids.end(), id);
      run(i);
      ASSERT_LE(i.worst(), 1.0) << rows << " times " << id;
    }
  }
}

// Runs of every length around the pieces' 16, beginning at every place in them.
TEST_F(GpuEmbedding, RunsOfAnyLengthMayBeginAnywhereInAPiece) {
  for (const std::int64_t before : {0, 1, 5, 15, 16, 31}) {
    Instance i({.rows = 1200, .vocab = 60, .dim = 16, .x_dtype = DType::bf16});
    std::size_t at = 0;
    for (std::int64_t n = 0; n < before; ++n) i.ids[at++] = 0;
    for (std::int64_t id = 1; at < i.ids.size(); ++id) {
      for (std::int64_t n = 0; n < 10 + id && at < i.ids.size(); ++n) i.ids[at++] = id;
    }
    run(i);
    ASSERT_LE(i.worst(), 1.0) << before;
  }
}

TEST_F(GpuEmbedding, MostTokensRareAndSomeFrequent) {
  Instance i({.rows = 4096, .vocab = 3000, .dim = 72, .x_dtype = DType::bf16});
  std::mt19937 random(9);
  for (std::int64_t& id : i.ids) {  // as words are: the n-th with a share of 1/n
    id = static_cast<std::int64_t>(std::exp(std::uniform_real_distribution<double>(0, std::log(3000.0))(random))) - 1;
  }
  Instance again = i;
  run(i);
  run(again);
  EXPECT_LE(i.worst(), 1.0);
  EXPECT_EQ(i.dtable.bytes, again.dtable.bytes);
}

TEST_F(GpuEmbedding, AccumulatingAddsToWhatIsThere) {
  for (const std::int64_t vocab : {3, 500}) {
    Instance i({.rows = 900, .vocab = vocab, .dim = 40});
    std::mt19937 random(8);
    i.dtable.fill_normal(random);
    const ops::Tensor before = i.dtable;
    run(i, true);
    const Expected expected = backward_oracle(i.problem, i.ids, i.dx.view(), before.view());
    const std::vector<double> found = i.dtable.values();
    for (std::size_t at = 0; at < found.size(); ++at) {
      ASSERT_LE(std::abs(found[at] - expected.value[at]), expected.tolerance[at]) << at;
    }
  }
}

TEST_F(GpuEmbedding, RowsMayLieApartAndBeginAnywhere) {
  for (const auto& [table, x] : kDtypes) {
    for (const std::int64_t gap : {0, 1, 8}) {
      for (const std::int64_t shift : {0, 1, 8}) {
        Instance i({150, 40, 64, table, x}, 3, gap);
        run(i, false, shift);
        ASSERT_LE(i.worst(), 1.0) << to_string(i.problem) << " gap " << gap << " shift " << shift;
        EXPECT_TRUE(i.x.gaps_are_untouched() && i.dtable.gaps_are_untouched());
      }
    }
  }
}

TEST_F(GpuEmbedding, AnIdOutsideTheTableIsNaNAndCountsNowhere) {
  Instance i({.rows = 70, .vocab = 4, .dim = 24});
  const std::vector<std::int64_t> outside{-1, 4, INT64_MIN, INT64_MAX, (std::int64_t{1} << 32) + 1};
  for (std::size_t n = 0; n < outside.size(); ++n) i.ids[n * 9] = outside[n];
  run(i);
  const std::vector<double> x = i.x.values();
  for (std::size_t n = 0; n < outside.size(); ++n) EXPECT_TRUE(std::isnan(x[n * 9 * 24]));
  EXPECT_FALSE(std::isnan(x[24]));
  EXPECT_LE(i.worst(), 1.0);
  std::fill(i.ids.begin(), i.ids.end(), -1);
  run(i);
  EXPECT_LE(i.worst(), 1.0);  // all zeros
}

}  // namespace
}  // namespace syslab::embedding
