#include "model/arena.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/split_float.hpp"
#include "device/memory_log.hpp"
#include "model/weights/convert.hpp"
#include "ops/elementwise/elementwise.hpp"
#include "tests/model/refusal.hpp"

namespace syslab::model {
namespace {

ModelConfig odd_model() {
  ModelConfig config{.vocab = 7, .context = 4, .d_model = 9, .d_ff = 5, .layers = 2, .heads = 3};
  config.rope_theta = std::nullopt;
  return config;
}

ParameterArena arena_with(const ArenaOptions& options) { return {ParameterLayout(odd_model()), options, {}}; }

std::vector<double> counting(std::int64_t elements) {
  std::vector<double> values(static_cast<std::size_t>(elements));
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

TEST(ParameterArena, IsZeroAtFirst) {
  const ParameterArena arena = arena_with({.copy_dtype = DType::f16});
  for (int plane = 0; plane < kPlanes; ++plane) {
    if (static_cast<Plane>(plane) == Plane::low) continue;
    const std::vector<double> values = to_doubles(arena.whole(static_cast<Plane>(plane)));
    EXPECT_EQ(static_cast<std::int64_t>(values.size()), arena.layout().elements());
    EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](double v) { return v == 0; }));
  }
}

TEST(ParameterArena, HasThePlanesThatWereAskedFor) {
  const ParameterArena bare = arena_with({.gradients = false, .moments = false});
  EXPECT_TRUE(bare.has(Plane::weight));
  for (const Plane plane : {Plane::copy, Plane::low, Plane::gradient, Plane::first_moment, Plane::second_moment}) {
    EXPECT_FALSE(bare.has(plane));
    EXPECT_EQ(bare.bytes(plane), 0U);
    EXPECT_THROW(bare.whole(plane), Error);
  }
  EXPECT_EQ(bare.compute_plane(), Plane::weight);

  const ParameterArena full = arena_with({.copy_dtype = DType::bf16});
  EXPECT_EQ(full.compute_plane(), Plane::copy);
  EXPECT_EQ(full.dtype(Plane::copy), DType::bf16);
  EXPECT_EQ(full.dtype(Plane::gradient), DType::f32);
  EXPECT_EQ(full.bytes(), static_cast<std::size_t>(full.layout().elements()) * (4 + 2 + 4 + 4 + 4));
}

TEST(ParameterArena, MemoryIsAccountedByWhatItIsForAndComesBack) {
  device::MemoryLog& log = device::MemoryLog::global();
  const std::int64_t before = log.live_bytes();
  const std::size_t events = log.events().size();
  {
    const ParameterArena arena = arena_with({.dtype = DType::f64});
    EXPECT_EQ(log.live_bytes() - before, static_cast<std::int64_t>(arena.bytes()));
    std::vector<device::MemoryCategory> categories;
    for (const auto& event : log.events()) categories.push_back(event.category);
    using device::MemoryCategory;
    EXPECT_EQ(std::vector(categories.begin() + static_cast<std::ptrdiff_t>(events), categories.end()),
              (std::vector{MemoryCategory::parameter, MemoryCategory::gradient, MemoryCategory::optimizer,
                           MemoryCategory::optimizer}));
  }
  EXPECT_EQ(log.live_bytes(), before);
}

TEST(ParameterArena, ATensorIsWrittenWhereItsViewLooksAndNowhereElse) {
  ParameterArena arena = arena_with({});
  const int index = arena.layout().layer(1).k;
  const std::vector<double> values = counting(81);
  arena.write(Plane::gradient, index, 0, ConstTensorView(values.data(), DType::f64, {81}));
  EXPECT_EQ(to_doubles(arena.view(Plane::gradient, index)), values);
  EXPECT_EQ(arena.read(Plane::gradient, index), values);
  const std::vector<double> all = to_doubles(arena.whole(Plane::gradient));
  EXPECT_EQ(std::accumulate(all.begin(), all.end(), 0.0), 81 * 82 / 2.0);
  const std::vector<double> weights = to_doubles(arena.whole(Plane::weight));
  EXPECT_EQ(std::count(weights.begin(), weights.end(), 0.0), arena.layout().elements());
}

TEST(ParameterArena, QueriesKeysAndValuesAreOneMatrix) {
  ParameterArena arena = arena_with({});
  const LayerIndices at = arena.layout().layer(0);
  const std::vector<double> values = counting(3 * 81);
  int part = 0;
  for (const int index : {at.q, at.k, at.v}) {
    arena.write(Plane::weight, index, 0, ConstTensorView(values.data() + 81 * part++, DType::f64, {81}));
  }
  const TensorView fused = arena.qkv(Plane::weight, 0);
  EXPECT_EQ(fused.shape, (Shape{27, 9}));
  EXPECT_EQ(to_doubles(fused), values);
}

TEST(ParameterArena, WritingWeightsRoundsTheirCopyToo) {
  for (const DType copy : {DType::bf16, DType::f16}) {
    ParameterArena arena = arena_with({.copy_dtype = copy});
    const int index = arena.layout().lm_head();
    const double third = 1.0 / 3;
    arena.write(Plane::weight, index, 5, ConstTensorView(&third, DType::f64, {1}));
    EXPECT_EQ(arena.read(Plane::weight, index)[5], static_cast<double>(static_cast<float>(third)));
    const double rounded = copy == DType::bf16 ? to_double(to_bf16(1.0F / 3)) : to_double(to_f16(1.0F / 3));
    EXPECT_EQ(arena.read(Plane::copy, index)[5], rounded);
    EXPECT_NE(rounded, third);
  }
}

constexpr ArenaOptions kSplit{.copy_dtype = DType::bf16, .split = true};

TEST(ParameterArena, WeightsInHalvesAreFourBytesAndReadWhole) {
  ParameterArena arena = arena_with(kSplit);
  EXPECT_TRUE(arena.has(Plane::weight));
  EXPECT_EQ(arena.dtype(Plane::weight), DType::f32);
  EXPECT_EQ(arena.planes_of_weights(), (std::vector{Plane::copy, Plane::low}));
  EXPECT_EQ(arena.bytes(Plane::weight), 0U);
  const std::size_t gains = 5 * (9 * 4 + 8);  // two norms of two layers and the last: values and places
  EXPECT_EQ(arena.bytes(), static_cast<std::size_t>(arena.layout().elements()) * (2 + 2 + 4 + 4 + 4) + gains);
  EXPECT_THROW(arena.whole(Plane::weight), Error);
  EXPECT_THROW(arena.view(Plane::weight, 0), Error);

  for (int index = 0; index < arena.layout().size(); ++index) {
    const std::int64_t elements = arena.layout().info(index).shape.elements();
    std::vector<double> values = counting(elements);
    for (double& value : values) value = static_cast<float>((value + 100 * index) / 3);
    arena.write(Plane::weight, index, 0, ConstTensorView(values.data(), DType::f64, {elements}));
    EXPECT_EQ(arena.read(Plane::weight, index), values);
    double part[2] = {};
    arena.read(Plane::weight, index, elements - 2, TensorView(part, DType::f64, {2}));
    EXPECT_EQ(part[1], values.back());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint16_t high = split(static_cast<float>(values[i])).high;
      ASSERT_EQ(arena.read(Plane::copy, index)[i], to_double(bf16{high})) << arena.layout().info(index).name;
    }
  }
  // What a pass is lent: norms as they are, the others' upper halves.
  for (const int index : {arena.layout().layer(0).ln1, arena.layout().layer(1).ln2, arena.layout().ln_final()}) {
    EXPECT_EQ(to_doubles(arena.weights(index)), arena.read(Plane::weight, index));
    EXPECT_EQ(arena.weights(index).dtype, DType::f32);
  }
  for (const int index : {arena.layout().embedding(), arena.layout().lm_head(), arena.layout().layer(1).w2}) {
    EXPECT_EQ(to_doubles(arena.weights(index)), arena.read(Plane::copy, index));
  }
}

TEST(ParameterArena, GainsAreJoinedFromWhereTheirHalvesLie) {
  ParameterArena arena = arena_with(kSplit);
  for (int index = 0; index < arena.layout().size(); ++index) {
    std::vector<double> values = counting(arena.layout().info(index).shape.elements());
    for (double& value : values) value += 1000 * index;
    arena.write(Plane::weight, index, 0,
                ConstTensorView(values.data(), DType::f64, {static_cast<std::int64_t>(values.size())}));
  }
  const ParameterArena::Gains gains = arena.gains();
  const std::vector<double> written = to_doubles(gains.values);
  std::fill_n(gains.values.as<float>(), written.size(), -1.0F);
  elementwise::find_rung("naive").join({gains.values.size(0), gains.values.size(1)},
                                       {arena.whole(Plane::copy), arena.whole(Plane::low), gains.offsets, gains.values},
                                       {});
  EXPECT_EQ(to_doubles(gains.values), written);
}

TEST(ParameterArena, PartsOfATensorAreReadAndWritten) {
  ParameterArena arena = arena_with({});
  const int index = arena.layout().embedding();
  const float values[] = {1, 2, 3};
  arena.write(Plane::weight, index, 60, ConstTensorView(values, DType::f32, {3}));
  double read[2] = {};
  arena.read(Plane::weight, index, 61, TensorView(read, DType::f64, {2}));
  EXPECT_EQ(read[0], 2);
  EXPECT_EQ(read[1], 3);
  EXPECT_THROW(arena.write(Plane::weight, index, 61, ConstTensorView(values, DType::f32, {3})), Error);
}

TEST(ParameterArena, RefusesDtypesThatAreNoMasters) {
  EXPECT_TRUE(test::refuses([] { arena_with({.dtype = DType::bf16}); }, "weights were asked for in bf16"));
  EXPECT_TRUE(test::refuses([] { arena_with({.copy_dtype = DType::f32}); }, "copy of the weights", "fp32"));
  EXPECT_TRUE(test::refuses([] { arena_with({.copy_dtype = DType::f16, .split = true}); }, "halves of fp32"));
  EXPECT_TRUE(test::refuses([] { arena_with({.split = true}); }, "halves of fp32"));
}

TEST(Convert, RoundsOnceBetweenAnyTwoDtypes) {
  const double source[] = {1.0, -2.5, 65504.0, 1.0 / 3, 0.0};
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    std::vector<std::byte> there(sizeof source);
    double back[5];
    convert(ConstTensorView(source, DType::f64, {5}), TensorView(there.data(), dtype, {5}));
    convert(ConstTensorView(there.data(), dtype, {5}), TensorView(back, DType::f64, {5}));
    for (int i = 0; i < 5; ++i) EXPECT_LE(std::abs(back[i] - source[i]), unit_roundoff(dtype) * std::abs(source[i]));
    EXPECT_EQ(back[1], -2.5);
  }
}

// Three pieces and a rest, each of which a thread of its own may have.
TEST(Convert, ALongTensorIsConvertedToItsEnd) {
  const std::vector<double> source = counting(3 * 65536 + 7);
  const Shape shape{static_cast<std::int64_t>(source.size())};
  std::vector<float> there(source.size());
  std::vector<double> back(source.size());
  convert(ConstTensorView(source.data(), DType::f64, shape), TensorView(there.data(), DType::f32, shape));
  convert(ConstTensorView(there.data(), DType::f32, shape), TensorView(back.data(), DType::f64, shape));
  EXPECT_EQ(back, source);
}

}  // namespace
}  // namespace syslab::model
