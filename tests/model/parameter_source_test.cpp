// A model whose weights somebody else lends: the same bits as with an arena of its own, in the order that was foretold.
#include "model/parameter_source.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "device/memory_log.hpp"
#include "model/reads.hpp"
#include "tests/model/model_fixture.hpp"

namespace syslab::model {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

// Lends copies of an arena's weights, which hold NaN before and after.
class Lender final : public ParameterSource {
 public:
  explicit Lender(const ParameterArena& arena) : arena_(arena), gradients_(empty()), lent_(empty()) {}

  ConstTensorView weights(int parameter) const override {
    EXPECT_EQ(out_, -1) << "two brackets at once";
    out_ = parameter;
    reads.push_back(parameter);
    const ConstTensorView from = arena_.weights(parameter);
    return write(lent_, parameter, to_doubles(from), from.shape);
  }
  void done(int parameter) const override {
    EXPECT_EQ(std::exchange(out_, -1), parameter);
    const Shape shape = arena_.layout().bracket_shape(parameter);
    write(lent_, parameter, std::vector<double>(static_cast<std::size_t>(shape.elements()), kNothing), shape);
  }
  GradientPlace gradient(int parameter, bool add) const override {
    const Shape shape = arena_.layout().bracket_shape(parameter);
    return {
        write(gradients_, parameter, std::vector<double>(static_cast<std::size_t>(shape.elements()), kNothing), shape),
        add};
  }

  // Tensor by tensor, out of the brackets.
  std::vector<double> gradient_of(int parameter) const {
    const ParameterLayout& layout = arena_.layout();
    const int first = layout.bracket(parameter).front();
    const std::size_t at = static_cast<std::size_t>(layout.offset(parameter) - layout.offset(first));
    const auto begin = gradients_[static_cast<std::size_t>(first)].begin() + static_cast<std::ptrdiff_t>(at);
    return {begin, begin + layout.info(parameter).shape.elements()};
  }

  mutable std::vector<int> reads;

 private:
  using Memory = std::vector<std::vector<float>>;  // by first parameter of a bracket

  Memory empty() const { return Memory(static_cast<std::size_t>(arena_.layout().size())); }
  static TensorView write(Memory& memory, int parameter, const std::vector<double>& values, const Shape& shape) {
    std::vector<float>& to = memory[static_cast<std::size_t>(parameter)];
    to.assign(values.begin(), values.end());
    return {to.data(), DType::f32, shape};
  }

  const ParameterArena& arena_;
  mutable Memory gradients_, lent_;
  mutable int out_ = -1;
};

TEST(ParameterSource, LendsWhatAnArenaHoldsForTheSameBits) {
  ModelConfig config = tiny_config();
  config.layers = 3;
  const Sequences batch = random_sequences(config, 2, 32);
  for (const Variant variant : {Variant::eager, Variant::fused}) {
    for (const double blocks : {0.0, 0.5, 1.0, 2.0}) {
      const Recompute recompute = segments_of(blocks);
      Transformer own(config, {.variant = variant, .recompute = recompute}, {});
      set_weights(own);
      const Outcome expected = outcome_of(own, batch);

      const Lender lender(own.parameters());
      const std::int64_t before = device::MemoryLog::global().live_bytes();
      Transformer model(config, {.variant = variant, .recompute = recompute, .source = &lender}, {});
      EXPECT_EQ(model.parameters().bytes(), 0U);
      const std::int64_t tables = 2 * config.context * config.head_dim() / 2 * 4;
      EXPECT_EQ(device::MemoryLog::global().live_bytes() - before, tables) << "RoPE's, and no weights";

      const Uploaded uploaded(batch, {});
      Activations kept = model.forward(uploaded.tokens());
      EXPECT_EQ(lender.reads, forward_reads(own.parameters().layout()));
      model.loss_and_gradient(kept, uploaded.targets(), one(model));
      EXPECT_EQ(values_of(kept.loss, {}).front(), expected.loss);
      std::vector<int> finals;
      model.backward(std::move(kept), {.grad_final = [&](int parameter, device::Stream) {
                       const std::vector<double> found = lender.gradient_of(parameter);
                       EXPECT_EQ(found, expected.gradients.at(own.parameters().layout().info(parameter).name));
                       finals.push_back(parameter);
                     }});
      const std::span<const int> order = own.parameters().layout().arena_order();
      EXPECT_EQ(finals, std::vector(order.begin(), order.end()));
      EXPECT_EQ(lender.reads, training_reads(own.parameters().layout(), recompute, keeps_all(own.options()))) << blocks;
    }
  }
}

TEST(ParameterSource, NamesABracketByItsFirstTensor) {
  const ParameterLayout layout(tiny_config());
  const LayerIndices at = layout.layer(1);
  EXPECT_EQ(std::vector(layout.bracket(at.v).begin(), layout.bracket(at.v).end()), (std::vector{at.q, at.k, at.v}));
  EXPECT_EQ(layout.bracket_shape(at.q), layout.qkv_shape());
  EXPECT_EQ(layout.bracket_shape(at.w3), (Shape{2 * layout.config().d_ff, layout.config().d_model}));
  EXPECT_EQ(layout.bracket_shape(at.output), layout.info(at.output).shape);
  EXPECT_EQ(layout.bracket_shape(at.ln1), (Shape{64}));
}

}  // namespace
}  // namespace syslab::model
