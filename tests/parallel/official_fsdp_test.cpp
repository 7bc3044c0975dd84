// The hand-out's FSDP tests (tests/test_fsdp.py of 2026), said again: an embedding, two linear layers between norms and
// a head; two ranks; three steps of SGD with a rate of 0.01 on the cross-entropy of the last position; in fp32 and with
// fp16 as the dtype that weights are gathered and computed in. After every step all whole parameters are those of one
// process on all rows, to the tolerances given there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/dtype.hpp"
#include "parallel/fsdp/fsdp.hpp"
#include "parallel/replicas.hpp"
#include "tests/parallel/ranks_fixture.hpp"

namespace syslab::parallel {
namespace {

using device::Stream;

constexpr std::int64_t kVocab = 100, kRows = 20;
constexpr double kRate = 0.01, kEpsilon = 1e-5;

enum Matrix { kEmbedding, kUp, kDown, kHead };
constexpr std::int64_t kShapes[4][2] = {{kVocab, 64}, {128, 64}, {64, 128}, {kVocab, 64}};
constexpr std::int64_t kNorms[2] = {64, 128};

using Values = std::vector<double>;

// As numbers of the compute dtype.
Values rounded(Values values, bool half) {
  for (double& value : values) {
    const auto single = static_cast<float>(value);
    value = half ? to_float(to_f16(single)) : single;
  }
  return values;
}

Values to_values(const ConstTensorView& view) { return to_doubles(view); }

// Who has the weights, and takes gradients.
class Holder {
 public:
  virtual ~Holder() = default;
  virtual Values read(Matrix matrix) = 0;  // in the compute dtype
  virtual void write(Matrix matrix, const Values& gradient) = 0;
  virtual Values norm(int number) = 0;
  virtual void write_norm(int number, const Values& gradient) = 0;
};

// y (rows, out) = x (rows, in) · wᵀ
Values product(const Values& x, const Values& w, Matrix matrix, bool half) {
  const auto [out, in] = kShapes[matrix];
  const auto rows = static_cast<std::int64_t>(x.size()) / in;
  Values y(static_cast<std::size_t>(rows * out));
  for (std::int64_t i = 0; i < rows * out; ++i) {
    const auto* row = x.data() + i / out * in;
    y[static_cast<std::size_t>(i)] = std::inner_product(row, row + in, w.data() + i % out * in, 0.0);
  }
  return rounded(std::move(y), half);
}

// Both gradients of it; returns that of x.
Values product_backward(const Values& dy, const Values& x, const Values& w, Matrix matrix, bool half, Values& dw) {
  const auto [out, in] = kShapes[matrix];
  dw.assign(w.size(), 0);
  Values dx(x.size());
  for (std::size_t i = 0; i < dy.size(); ++i) {
    const std::size_t row = i / static_cast<std::size_t>(out), o = i % static_cast<std::size_t>(out);
    for (std::size_t k = 0; k < static_cast<std::size_t>(in); ++k) {
      const std::size_t at = row * static_cast<std::size_t>(in) + k, in_w = o * static_cast<std::size_t>(in) + k;
      dw[in_w] += dy[i] * x[at];
      dx[at] += dy[i] * w[in_w];
    }
  }
  dw = rounded(std::move(dw), half);
  return rounded(std::move(dx), half);
}

double root_of(const double* row, std::int64_t dim) {
  return std::sqrt(std::inner_product(row, row + dim, row, 0.0) / static_cast<double>(dim) + kEpsilon);
}

Values normalised(const Values& x, const Values& w, bool half) {
  const auto dim = static_cast<std::int64_t>(w.size());
  Values y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t k = i % w.size();
    y[i] = w[k] * x[i] / root_of(x.data() + (i - k), dim);
  }
  return rounded(std::move(y), half);
}

Values normalised_backward(const Values& dy, const Values& x, const Values& w, bool half, Values& dw) {
  const auto dim = static_cast<std::int64_t>(w.size());
  dw.assign(w.size(), 0);
  Values dx(x.size());
  for (std::size_t first = 0; first < x.size(); first += w.size()) {
    const double root = root_of(x.data() + first, dim);
    double dot = 0;
    for (std::size_t k = 0; k < w.size(); ++k) {
      dw[k] += dy[first + k] * x[first + k] / root;
      dot += dy[first + k] * w[k] * x[first + k];
    }
    for (std::size_t k = 0; k < w.size(); ++k) {
      dx[first + k] =
          dy[first + k] * w[k] / root - x[first + k] * dot / (root * root * root * static_cast<double>(dim));
    }
  }
  return rounded(std::move(dx), half);
}

// The last position of some rows: no other has a part in the loss, nor in its gradients.
struct Tokens {
  std::vector<std::int64_t> ids, targets;
};

void pass(Holder& holder, const Tokens& tokens, bool half) {
  const auto table = holder.read(kEmbedding);
  Values x;
  for (const std::int64_t id : tokens.ids) x.insert(x.end(), table.begin() + id * 64, table.begin() + (id + 1) * 64);
  const Values first = holder.norm(0), second = holder.norm(1);
  const Values a = normalised(x, first, half), up = product(a, holder.read(kUp), kUp, half);
  Values h = up;
  for (double& one : h) one = std::max(one, 0.0);
  const Values b = normalised(h, second, half), c = product(b, holder.read(kDown), kDown, half);
  Values dlogits = product(c, holder.read(kHead), kHead, half);
  for (std::size_t row = 0; row < tokens.ids.size(); ++row) {
    const std::span<double> logits(dlogits.data() + row * kVocab, kVocab);
    const double most = *std::ranges::max_element(logits);
    double sum = 0;
    for (double& one : logits) sum += one = std::exp(one - most);
    for (double& one : logits) one /= sum * kRows;
    logits[static_cast<std::size_t>(tokens.targets[row])] -= 1.0 / kRows;
  }
  dlogits = rounded(std::move(dlogits), half);

  Values dw;
  const auto back = [&](const Values& dy, const Values& input, Matrix matrix) {
    Values dx = product_backward(dy, input, holder.read(matrix), matrix, half, dw);
    holder.write(matrix, dw);
    return dx;
  };
  const Values db = back(back(dlogits, c, kHead), b, kDown);
  Values dup = normalised_backward(db, h, second, half, dw);
  holder.write_norm(1, dw);
  for (std::size_t i = 0; i < dup.size(); ++i) dup[i] = up[i] > 0 ? dup[i] : 0;
  const Values dx = normalised_backward(back(dup, a, kUp), x, first, half, dw);
  holder.write_norm(0, dw);
  Values dtable(table.size());
  for (std::size_t i = 0; i < dx.size(); ++i) {
    dtable[static_cast<std::size_t>(tokens.ids[i / 64]) * 64 + i % 64] += dx[i];
  }
  holder.write(kEmbedding, rounded(std::move(dtable), half));
}

Values drawn(std::size_t count, std::uint64_t seed, double scale) {
  const RandomStream random(seed);
  Values values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(scale * random.normal(i));
  return values;
}

// One process: everything by itself, kept in fp32.
class Alone final : public Holder {
 public:
  explicit Alone(bool half) : half_(half) {
    for (int i = 0; i < 4; ++i) {
      const auto count = static_cast<std::size_t>(kShapes[i][0] * kShapes[i][1]);
      weights.push_back(drawn(count, 42 + static_cast<std::uint64_t>(i), i == kEmbedding ? 1 : 0.1));
    }
    for (const std::int64_t dim : kNorms) weights.emplace_back(static_cast<std::size_t>(dim), 1.0);
    gradients_.resize(weights.size());
  }
  Values read(Matrix matrix) override { return rounded(weights[matrix], half_); }
  void write(Matrix matrix, const Values& gradient) override { gradients_[matrix] = gradient; }
  Values norm(int number) override { return weights[4 + static_cast<std::size_t>(number)]; }
  void write_norm(int number, const Values& gradient) override {
    gradients_[4 + static_cast<std::size_t>(number)] = rounded(gradient, false);
  }
  void update() {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      for (std::size_t k = 0; k < weights[i].size(); ++k) {
        weights[i][k] = static_cast<float>(weights[i][k] - kRate * gradients_[i][k]);
      }
    }
  }
  std::vector<Values> weights;  // matrices, then norms

 private:
  bool half_;
  std::vector<Values> gradients_;
};

// Of this rank.
class Sharded final : public Holder {
 public:
  explicit Sharded(Fsdp& fsdp) : fsdp_(fsdp) {}
  Values read(Matrix matrix) override {
    const Values values = to_values(fsdp_.gathered().read(3 - matrix));
    fsdp_.gathered().done(3 - matrix);
    return values;
  }
  void write(Matrix matrix, const Values& gradient) override {
    put(fsdp_.scattered().place(3 - matrix), gradient);
    fsdp_.scattered().final(3 - matrix);
  }
  Values norm(int number) override { return to_values(fsdp_.replicated(number)); }
  void write_norm(int number, const Values& gradient) override {
    put(fsdp_.scattered().replicated(number), gradient);
    fsdp_.scattered().replicated_final();
  }
  void update() {
    auto* weights = fsdp_.weights().as<float>();
    const auto* gradients = fsdp_.gradients().as<float>();
    for (std::int64_t i = 0; i < fsdp_.weights().elements(); ++i) {
      weights[i] = static_cast<float>(weights[i] - kRate * gradients[i]);
    }
  }

 private:
  static void put(const TensorView& view, const Values& values) {
    ASSERT_EQ(view.elements(), static_cast<std::int64_t>(values.size()));
    std::ranges::transform(values, view.as<float>(), [](double value) { return static_cast<float>(value); });
  }
  Fsdp& fsdp_;
};

FsdpParts parts_of_model(bool half) {
  FsdpParts parts;
  for (int i = 0; i < 4; ++i) {
    parts.matrices.push_back({std::to_string(i), kShapes[i][0], kShapes[i][1]});
    parts.brackets.push_back({.matrices = {3 - i}, .gathered = half ? DType::f16 : DType::f32});
    parts.units.push_back({i});
  }
  parts.replicated = {{"norm1", kNorms[0]}, {"norm2", kNorms[1]}};
  parts.forward_reads = {3, 2, 1, 0};
  parts.training_reads = {3, 2, 1, 0, 0, 1, 2};
  return parts;
}

Tokens tokens_of(const std::vector<std::int64_t>& order, std::int64_t first, std::int64_t count) {
  const RandomStream random(123);
  Tokens tokens;
  for (std::int64_t row = first; row < first + count; ++row) {
    const auto at = static_cast<std::uint64_t>(order[static_cast<std::size_t>(row)]);
    tokens.ids.push_back(random.bits(2 * at) % kVocab);
    tokens.targets.push_back(random.bits(2 * at + 1) % kVocab);
  }
  return tokens;
}

class OfficialFsdp : public ::testing::TestWithParam<bool> {};

TEST_P(OfficialFsdp, KeepsTheWholeParametersOfOneProcess) {
  const bool half = GetParam();
  const double absolute = half ? 1e-4 : 1e-6, relative = 1e-4;
  test::with_ranks(2, [&](comm::Communicator& ranks, Stream, Stream communication) {
    Alone alone(half);
    Fsdp fsdp(ranks, parts_of_model(half), {.gather = {.poison = true}}, {}, communication);
    for (int i = 0; i < 4; ++i) {
      fsdp.write(i, 0, {alone.weights[static_cast<std::size_t>(i)].data(), DType::f64, {kShapes[i][0], kShapes[i][1]}});
    }
    for (int i = 0; i < 2; ++i) {
      fsdp.write_replicated(i, 0, {alone.weights[4 + static_cast<std::size_t>(i)].data(), DType::f64, {kNorms[i]}});
    }
    Sharded sharded(fsdp);
    std::vector<std::int64_t> order(kRows);
    std::iota(order.begin(), order.end(), 0);
    for (std::uint64_t step = 0; step < 3; ++step) {
      const std::vector<Values> before = alone.weights;
      pass(alone, tokens_of(order, 0, kRows), half);
      alone.update();

      fsdp.begin(PassKind::training);
      pass(sharded, tokens_of(order, ranks.rank() * kRows / 2, kRows / 2), half);
      fsdp.end();
      fsdp.finish();
      const std::int64_t of_shards = fsdp.layout().sharded_elements();
      const TensorView gradients = fsdp.gradients();
      require_replicas(ranks, {gradients.as<float>() + of_shards, DType::f32, {fsdp.layout().elements() - of_shards}},
                       {});
      EXPECT_EQ(gradients.dtype, fsdp.weights().dtype);
      EXPECT_EQ(gradients.shape, fsdp.weights().shape);
      sharded.update();

      double moved = 0;
      for (std::size_t i = 0; i < alone.weights.size(); ++i) {
        const Values found =
            i < 4 ? fsdp.gather_now(static_cast<int>(i)) : fsdp.read_replicated(static_cast<int>(i) - 4);
        ASSERT_EQ(found.size(), alone.weights[i].size());
        for (std::size_t k = 0; k < found.size(); ++k) {
          ASSERT_NEAR(found[k], alone.weights[i][k], absolute + relative * std::abs(alone.weights[i][k]))
              << "parameter " << i << "[" << k << "], step " << step;
          moved = std::max(moved, std::abs(alone.weights[i][k] - before[i][k]));
        }
      }
      EXPECT_GT(moved, 10 * absolute) << "a step that moves nothing shows nothing";
      const RandomStream random(42 + step);
      for (std::size_t i = order.size(); i-- > 1;) std::swap(order[i], order[random.bits(i) % (i + 1)]);
    }
    fsdp.check_bytes();
  });
}

INSTANTIATE_TEST_SUITE_P(, OfficialFsdp, ::testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "Fp16" : "Fp32"); });

}  // namespace
}  // namespace syslab::parallel
