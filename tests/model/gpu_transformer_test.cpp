// The model on a GPU: every precision and variant against fp64 on the CPU.
#include "device/memory_log.hpp"
#include "model/against_reference.hpp"
#include "tests/device/gpu_fixture.hpp"
#include "tests/model/model_fixture.hpp"
#include "tests/model/refusal.hpp"
#include "tests/model/smallest_sizes.hpp"

namespace syslab::model {
namespace {

class GpuTransformer : public device::GpuTest {
 protected:
  Transformer model_in(Precision precision, Variant variant = Variant::fused) const {
    Transformer model(tiny_config(), {.precision = precision, .variant = variant}, stream);
    set_weights(model);
    return model;
  }
};

constexpr Precision kPrecisions[] = {Precision::fp32, Precision::tf32, Precision::bf16_amp, Precision::fp16_amp,
                                     Precision::bf16_fused};

TEST_F(GpuTransformer, EveryPrecisionAndVariantStaysWithTheReference) {
  for (const char* name : {"small", "xl26", "10B"}) {  // heads of 64, 80 and 128
    for (const Precision precision : kPrecisions) {
      for (const Variant variant : {Variant::eager, Variant::fused}) {
        const TransformerOptions options{.precision = precision, .variant = variant};
        for (const StepCheck& one : against_reference(find_model(name), options, stream, 5)) {
          EXPECT_LE(one.error, one.tolerance) << one.name << ": " << one.message;
          RecordProperty(std::string(name) + "." + std::string(to_string(precision)) + "." +
                             std::string(to_string(variant)) + "." + one.name,
                         std::to_string(one.error));
        }
      }
    }
  }
}

TEST_F(GpuTransformer, StaysWithTheReferenceAtOnePosition) {
  for (const Precision precision : kPrecisions) {
    for (const Variant variant : {Variant::eager, Variant::fused}) {
      for (std::uint64_t seed = 0; seed < 4; ++seed) {
        const TransformerOptions options{.precision = precision, .variant = variant};
        for (const StepCheck& one : against_reference(kOnePosition.config(), options, stream, seed)) {
          EXPECT_LE(one.error, one.tolerance) << one.name << ": " << one.message;
        }
      }
    }
  }
}

// A softmax over one key: dQ is nothing, and here a thousandth of dV.
TEST_F(GpuTransformer, IsFoundWrongInBf16WhereQueriesOfOnePositionLearn) {
  const auto learns = [](Kernels& kernels) {
    kernels.attention.backward = [right = kernels.attention](const auto& problem, const auto& args,
                                                             const attention::Saved& saved, ops::Workspace workspace,
                                                             device::Stream stream) {
      right.backward(problem, args, saved, workspace, stream);
      std::vector<bf16> given(static_cast<std::size_t>(problem.head_dim));
      const std::size_t bytes = given.size() * sizeof(bf16);
      for (std::int64_t b = 0; b < problem.batch; ++b) {
        for (std::int64_t h = 0; h < problem.heads_q; ++h) {
          const auto row = [&](const auto& view) {
            return view.template as<bf16>() + b * view.stride(0) + h * view.stride(1);
          };
          device::copy_now(given.data(), row(args.dv), bytes, stream);
          for (bf16& one : given) one = to_bf16(1e-3F * to_float(one));
          device::copy_now(row(args.dq), given.data(), bytes, stream);
        }
      }
    };
  };
  for (const bool wrong : {false, true}) {
    TransformerOptions options{.precision = Precision::bf16_fused};
    if (wrong) options.plant = learns;
    const std::vector<StepCheck> found = against_reference(kOnePosition.config(), options, stream, 3);
    EXPECT_EQ(found.back().error > found.back().tolerance, wrong) << found.back().message;
  }
}

TEST_F(GpuTransformer, AttentionIsWhatTheDispatchRuleSaysOfThePassNotOfOneSequence) {
  ModelConfig config = tiny_config();
  config.d_model = 1024;
  config.heads = 16;
  config.context = 512;
  config.layers = 1;
  Transformer model(config, {.precision = Precision::bf16_fused}, stream);
  set_weights(model);
  for (const std::int64_t batch : {4, 1}) {
    const Sequences sequences = random_sequences(config, batch, config.context);
    outcome_of(model, sequences);
    const attention::Problem problem{.batch = batch,
                                     .heads_q = config.heads,
                                     .heads_kv = config.heads,
                                     .seq_q = config.context,
                                     .seq_k = config.context,
                                     .head_dim = config.head_dim(),
                                     .mask = attention::Mask::top_left,
                                     .dtype = DType::bf16};
    const attention::Where where = attention::where_of(stream);
    EXPECT_EQ(model.kernels().attention_because, dispatch(problem, Pass::forward, where).because) << batch;
    EXPECT_EQ(model.kernels().attention.name, dispatch(problem, Pass::forward, where).rung->name) << batch;
    if (where.sm == 90) {
      EXPECT_EQ(model.kernels().attention.name, batch == 4 ? "flash_wgmma" : "flash_mma");
    }
  }
}

TEST_F(GpuTransformer, EqualInputsGiveEqualBits) {
  const Sequences sequences = random_sequences(tiny_config(), 2, 32);
  for (const Precision precision : kPrecisions) {
    Transformer model = model_in(precision);
    const Outcome once = outcome_of(model, sequences), again = outcome_of(model, sequences);
    EXPECT_EQ(once.logits, again.logits) << to_string(precision);
    EXPECT_EQ(once.gradients, again.gradients) << to_string(precision);
  }
}

TEST_F(GpuTransformer, RecomputedActivationsGiveTheBitsOfKeptOnes) {
  ModelConfig config = tiny_config();
  config.layers = 3;
  const Sequences sequences = random_sequences(config, 2, 32);
  for (const Precision precision : kPrecisions) {
    for (const Variant variant : {Variant::eager, Variant::fused}) {
      Outcome kept;
      for (const double blocks : {0.0, 0.5, 1.0, 2.0}) {
        Transformer model(config, {.precision = precision, .variant = variant, .recompute = segments_of(blocks)},
                          stream);
        set_weights(model);
        const Outcome found = outcome_of(model, sequences);
        if (blocks == 0) kept = found;
        EXPECT_EQ(found.logits, kept.logits) << to_string(precision) << ", segments of " << blocks;
        EXPECT_EQ(found.gradients, kept.gradients) << to_string(precision) << ", segments of " << blocks;
      }
    }
  }
}

// What norms give and the gate's output are kept on demand alone.
TEST_F(GpuTransformer, NormsAndGatesMadeAgainGiveTheBitsOfKeptOnes) {
  const std::tuple<int, int, int> sizes[] = {{64, 128, 32}, {2560, 512, 40}, {1280, 328, 17}};
  for (const auto& [d_model, d_ff, rows] : sizes) {
    ModelConfig config = tiny_config();
    config.d_model = d_model;
    config.d_ff = d_ff;
    config.heads = d_model / 32;
    const Sequences sequences = random_sequences(config, 2, rows);
    for (const Precision precision : kPrecisions) {
      std::vector<Outcome> found;
      for (const bool keeps_all : {true, false}) {
        Transformer model(config, {.precision = precision, .keeps_all = keeps_all}, stream);
        set_weights(model);
        found.push_back(outcome_of(model, sequences));
      }
      EXPECT_EQ(found[0].logits, found[1].logits) << to_string(precision) << ", " << to_string(config);
      EXPECT_EQ(found[0].gradients, found[1].gradients) << to_string(precision) << ", " << to_string(config);
    }
  }
}

TEST_F(GpuTransformer, TensorsHaveTheDtypesOfAutocast) {
  Transformer model = model_in(Precision::bf16_amp, Variant::eager);
  std::map<std::string, DType> dtypes;
  model.observe([&](const std::string& name, const ConstTensorView& tensor) { dtypes[name] = tensor.dtype; });
  outcome_of(model, random_sequences(tiny_config(), 2, 32));
  EXPECT_EQ(dtypes.at("embedding"), DType::f32);
  EXPECT_EQ(dtypes.at("layers.0.ln1.normalized"), DType::f32);
  EXPECT_EQ(dtypes.at("layers.0.attn.qkv"), DType::bf16);
  EXPECT_EQ(dtypes.at("layers.0.attn.out"), DType::bf16);
  EXPECT_EQ(dtypes.at("layers.0.ln2.residual"), DType::f32);
  EXPECT_EQ(dtypes.at("layers.0.ffn.gated"), DType::bf16);
  EXPECT_EQ(dtypes.at("logits"), DType::bf16);
  EXPECT_EQ(dtypes.at("loss"), DType::f32);
  EXPECT_EQ(model.parameters().dtype(Plane::gradient), DType::f32);
}

TEST_F(GpuTransformer, GivesAllMemoryBackAfterAStep) {
  Transformer model = model_in(Precision::bf16_fused);
  const Sequences sequences = random_sequences(tiny_config(), 2, 32);
  outcome_of(model, sequences);
  const std::int64_t before = device::MemoryLog::of(kGpu).live_bytes();
  outcome_of(model, sequences);
  EXPECT_EQ(device::MemoryLog::of(kGpu).live_bytes(), before);
}

TEST_F(GpuTransformer, RefusesTheReferencesPrecision) {
  EXPECT_TRUE(test::refuses([&] { model_in(Precision::fp64); }, "fp64", "CPU"));
}

}  // namespace
}  // namespace syslab::model
