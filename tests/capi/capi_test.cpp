// The C interface as its callers see it: this file links libsyslab.so and nothing of what is inside.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>

#include "capi/syslab.h"
#include "tests/capi/c_tensor.hpp"

namespace syslab::capi {
namespace {

syslab_attention_options defaults() {
  syslab_attention_options options{};
  options.struct_size = sizeof(options);
  return options;
}

// One attention call's tensors, three-dimensional and contiguous.
struct Call {
  CTensor q, k, v, out, lse, dout, dq, dk, dv;

  explicit Call(DType dtype = DType::f32, std::int64_t batch = 2, std::int64_t queries = 33, std::int64_t keys = 33,
                std::int64_t dim = 8)
      : q(dtype, {batch, queries, dim}),
        k(dtype, {batch, keys, dim}),
        v(dtype, {batch, keys, dim}),
        out(dtype, {batch, queries, dim}),
        lse(DType::f32, {batch, queries}),
        dout(dtype, {batch, queries, dim}),
        dq(dtype, {batch, queries, dim}),
        dk(dtype, {batch, keys, dim}),
        dv(dtype, {batch, keys, dim}) {
    q.randomize(1), k.randomize(2), v.randomize(3), dout.randomize(4);
  }

  // What a caller would say of memory there; nobody may look at it.
  void everything_on(DLDevice device) {
    for (CTensor* one : {&q, &k, &v, &out, &lse, &dout, &dq, &dk, &dv}) one->tensor.device = device;
  }

  int forward(const syslab_attention_options* options = nullptr) {
    return syslab_attention_forward(q.get(), k.get(), v.get(), out.get(), lse.get(), options, nullptr);
  }
  int backward(const syslab_attention_options* options = nullptr) {
    return syslab_attention_backward(q.get(), k.get(), v.get(), out.get(), lse.get(), dout.get(), dq.get(), dk.get(),
                                     dv.get(), options, nullptr);
  }
};

// Softmax attention by its definition, in double; (B, S, D) without heads. Returns O, fills `lse`.
std::vector<double> by_definition(const Call& call, std::int64_t batch, std::int64_t queries, std::int64_t keys,
                                  std::int64_t dim, double scale, int causal, std::vector<double>& lse) {
  const std::vector<double> q = call.q.values(), k = call.k.values(), v = call.v.values();
  std::vector<double> out(q.size());
  lse.assign(static_cast<std::size_t>(batch * queries), 0);
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t i = 0; i < queries; ++i) {
      double sum = 0;
      std::vector<double> row(static_cast<std::size_t>(dim));
      for (std::int64_t j = 0; j < keys; ++j) {
        if ((causal == 1 && j > i) || (causal == 2 && j > i + keys - queries)) continue;
        double score = 0;
        for (std::int64_t d = 0; d < dim; ++d) {
          score += q[static_cast<std::size_t>((b * queries + i) * dim + d)] *
                   k[static_cast<std::size_t>((b * keys + j) * dim + d)];
        }
        const double weight = std::exp(score * scale);
        sum += weight;
        for (std::int64_t d = 0; d < dim; ++d) {
          row[static_cast<std::size_t>(d)] += weight * v[static_cast<std::size_t>((b * keys + j) * dim + d)];
        }
      }
      for (std::int64_t d = 0; d < dim; ++d) {
        out[static_cast<std::size_t>((b * queries + i) * dim + d)] = row[static_cast<std::size_t>(d)] / sum;
      }
      lse[static_cast<std::size_t>(b * queries + i)] = std::log(sum);
    }
  }
  return out;
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], tolerance) << "element " << i;
}

TEST(CInterface, ForwardIsAttentionByItsDefinition) {
  for (const int causal : {0, 1, 2}) {
    for (const float scale : {0.0F, 0.7F}) {
      Call call(DType::f32, 2, 19, 33, 8);
      syslab_attention_options options = defaults();
      options.causal = causal;
      options.scale = scale;
      ASSERT_EQ(call.forward(&options), SYSLAB_OK) << syslab_last_error();
      std::vector<double> lse;
      const double used = scale == 0.0F ? 1 / std::sqrt(8.0) : static_cast<double>(scale);
      const std::vector<double> out = by_definition(call, 2, 19, 33, 8, used, causal, lse);
      expect_near(call.out.values(), out, 2e-6);
      expect_near(call.lse.values(), lse, 2e-6);
    }
  }
}

TEST(CInterface, BackwardIsTheGradientOfForward) {
  // Σ dout·out against a step in one element of q, k and v; fp32 outputs allow central differences to about 1e-3.
  Call call(DType::f32, 1, 5, 6, 4);
  syslab_attention_options options = defaults();
  options.causal = 1;
  ASSERT_EQ(call.forward(&options), SYSLAB_OK) << syslab_last_error();
  ASSERT_EQ(call.backward(&options), SYSLAB_OK) << syslab_last_error();
  const std::vector<double> weights = call.dout.values();
  const auto loss = [&] {
    EXPECT_EQ(call.forward(&options), SYSLAB_OK);
    const std::vector<double> out = call.out.values();
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) sum += out[i] * weights[i];
    return sum;
  };
  const auto check = [&](CTensor& input, const CTensor& gradient) {
    const std::vector<double> expected = gradient.values();
    auto* elements = static_cast<float*>(input.tensor.data);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const float at = elements[i], step = 1e-2F;
      elements[i] = at + step;
      const double above = loss();
      elements[i] = at - step;
      const double below = loss();
      elements[i] = at;
      ASSERT_NEAR((above - below) / (2 * static_cast<double>(step)), expected[i], 2e-3) << "element " << i;
    }
  };
  check(call.q, call.dq);
  check(call.k, call.dk);
  check(call.v, call.dv);
}

TEST(CInterface, LayoutChangesNoBit) {
  // (B, S, D), null strides, (B, H, S, D), and (B, S, H, D) seen as (B, H, S, D) hold the same numbers.
  Call plain(DType::bf16, 3, 21, 21, 16);
  ASSERT_EQ(plain.forward(), SYSLAB_OK) << syslab_last_error();
  const std::vector<double> expected = plain.out.values();

  for (DLTensor* tensor : {plain.q.get(), plain.k.get(), plain.v.get(), plain.out.get(), plain.lse.get()}) {
    tensor->strides = nullptr;
  }
  std::memset(plain.out.bytes().data(), 0xa5, plain.out.bytes().size());
  ASSERT_EQ(plain.forward(), SYSLAB_OK) << syslab_last_error();
  EXPECT_EQ(plain.out.values(), expected);

  // Three heads of one batch element, interleaved in memory: strides (S·H·D, D, H·D, 1).
  const std::vector<std::int64_t> shape{1, 3, 21, 16}, strides{21 * 48, 16, 48, 1};
  CTensor q(DType::bf16, shape, strides), k(DType::bf16, shape, strides), v(DType::bf16, shape, strides);
  CTensor out(DType::bf16, shape, strides), lse(DType::f32, {1, 3, 21}, {63, 1, 3});
  const auto scatter = [](CTensor& to, CTensor& from) {
    auto* target = static_cast<bf16*>(to.tensor.data);
    auto* source = static_cast<bf16*>(from.tensor.data);
    for (int h = 0; h < 3; ++h) {
      for (int i = 0; i < 21; ++i) std::copy_n(source + (h * 21 + i) * 16, 16, target + i * 48 + h * 16);
    }
  };
  scatter(q, plain.q), scatter(k, plain.k), scatter(v, plain.v);
  ASSERT_EQ(syslab_attention_forward(q.get(), k.get(), v.get(), out.get(), lse.get(), nullptr, nullptr), SYSLAB_OK)
      << syslab_last_error();
  EXPECT_EQ(out.values(), expected);
  EXPECT_EQ(lse.values(), plain.lse.values());
}

TEST(CInterface, StridesMayBeNegative) {
  // Keys and values stored last to first and read backwards.
  Call forwards, backwards;
  ASSERT_EQ(forwards.forward(), SYSLAB_OK);
  for (CTensor* tensor : {&backwards.k, &backwards.v}) {
    auto* rows = static_cast<float*>(tensor->tensor.data);
    for (std::int64_t b = 0; b < 2; ++b) {
      for (std::int64_t i = 0; i < 33 / 2; ++i) {
        std::swap_ranges(rows + (b * 33 + i) * 8, rows + (b * 33 + i + 1) * 8, rows + (b * 33 + 32 - i) * 8);
      }
    }
    tensor->tensor.strides[1] = -8;
    tensor->tensor.byte_offset = 32 * 8 * sizeof(float);
  }
  ASSERT_EQ(backwards.forward(), SYSLAB_OK) << syslab_last_error();
  EXPECT_EQ(backwards.out.bytes(), forwards.out.bytes());
}

TEST(CInterface, ByteOffsetsMoveTheData) {
  Call call, moved;
  ASSERT_EQ(call.forward(), SYSLAB_OK);
  std::vector<std::byte> memory(call.q.bytes().size() + 12);
  std::memcpy(memory.data() + 12, call.q.bytes().data(), call.q.bytes().size());
  moved.q.tensor.data = memory.data();
  moved.q.tensor.byte_offset = 12;
  ASSERT_EQ(moved.forward(), SYSLAB_OK) << syslab_last_error();
  EXPECT_EQ(moved.out.values(), call.out.values());
}

TEST(CInterface, GroupedQueriesReadTheirSharedKeys) {
  const auto copies = [](CTensor& to, CTensor& from, std::size_t heads, std::size_t times) {
    const std::size_t bytes = from.bytes().size() / heads;
    for (std::size_t head = 0; head < heads * times; ++head) {
      std::memcpy(to.bytes().data() + head * bytes, from.bytes().data() + head / times * bytes, bytes);
    }
  };
  CTensor q(DType::f32, {1, 6, 17, 8}), k(DType::f32, {1, 2, 17, 8}), v(DType::f32, {1, 2, 17, 8});
  q.randomize(1), k.randomize(2), v.randomize(3);
  CTensor k_full(DType::f32, {1, 6, 17, 8}), v_full(DType::f32, {1, 6, 17, 8});
  copies(k_full, k, 2, 3), copies(v_full, v, 2, 3);
  CTensor out(DType::f32, {1, 6, 17, 8}), lse(DType::f32, {1, 6, 17});
  CTensor out_full(DType::f32, {1, 6, 17, 8}), lse_full(DType::f32, {1, 6, 17});
  ASSERT_EQ(syslab_attention_forward(q.get(), k.get(), v.get(), out.get(), lse.get(), nullptr, nullptr), SYSLAB_OK)
      << syslab_last_error();
  ASSERT_EQ(
      syslab_attention_forward(q.get(), k_full.get(), v_full.get(), out_full.get(), lse_full.get(), nullptr, nullptr),
      SYSLAB_OK);
  EXPECT_EQ(out.bytes(), out_full.bytes());
}

TEST(CInterface, OlderAndNewerCallersMeet) {
  Call call;
  const auto forward_with = [&](const void* options) {
    return call.forward(static_cast<const syslab_attention_options*>(options));
  };
  // An older caller knows the fields up to `causal`; what follows in its memory is not ours to read.
  syslab_attention_options old = defaults();
  old.struct_size = offsetof(syslab_attention_options, deterministic);
  old.implementation = "no such thing";
  EXPECT_EQ(forward_with(&old), SYSLAB_OK) << syslab_last_error();
  // Nor is a size that ends inside a pointer, or between a pointer and its length, half an answer.
  old.workspace = &old;
  for (std::uint32_t size = sizeof(std::uint32_t); size < sizeof(old); ++size) {
    if (size >= offsetof(syslab_attention_options, workspace)) old.implementation = nullptr;
    old.struct_size = size;
    EXPECT_EQ(forward_with(&old), SYSLAB_OK) << size << " bytes: " << syslab_last_error();
  }

  struct Newer {
    syslab_attention_options known;
    std::uint64_t added;
  } newer{};
  newer.known.struct_size = sizeof(newer);
  EXPECT_EQ(forward_with(&newer), SYSLAB_OK) << syslab_last_error();
  newer.added = 1;
  EXPECT_EQ(forward_with(&newer), SYSLAB_ERROR_USAGE);
  EXPECT_NE(std::string(syslab_last_error()).find("does not know"), std::string::npos) << syslab_last_error();

  syslab_attention_options unset{};
  EXPECT_EQ(forward_with(&unset), SYSLAB_ERROR_USAGE);
  EXPECT_NE(std::string(syslab_last_error()).find("struct_size is 0"), std::string::npos) << syslab_last_error();
}

TEST(CInterface, ImpossibleTensorsAreRefusedByName) {
  const auto refusal = [](auto&& spoil) -> std::string {
    Call call;
    spoil(call);
    EXPECT_EQ(call.forward(), SYSLAB_ERROR_USAGE);
    return syslab_last_error();
  };
  const auto expect = [](const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << "'" << part << "' is not in: " << message;
  };
  expect(refusal([](Call& c) { c.q.tensor.device = {kDLCUDA, 3}; }), "k is on the CPU, q is on GPU 3");
  expect(refusal([](Call& c) { c.k.tensor.device = {kDLMetal, 0}; }), "k is on a device of DLPack type 8");
  expect(refusal([](Call& c) { c.v.tensor.dtype = {kDLFloat, 64, 1}; }), "v has DLPack type code 2, 64 bits");
  expect(refusal([](Call& c) { c.v.tensor.dtype = {kDLFloat, 32, 4}; }), "4 lanes");
  expect(refusal([](Call& c) { c.out.tensor.ndim = 2; }), "out has 2 dimensions");
  expect(refusal([](Call& c) { c.lse.tensor.dtype = {kDLBfloat, 16, 1}; }), "lse is bf16; it must be fp32");
  expect(refusal([](Call& c) { c.q.tensor.data = nullptr; }), "q has no memory");
  expect(refusal([](Call& c) { c.q.tensor.shape = nullptr; }), "q has no shape");
  expect(refusal([](Call& c) { c.q.tensor.byte_offset = 2; }), "no multiple of 4 bytes");
  expect(refusal([](Call& c) { c.k.tensor.strides[2] = 2; }), "k has strides");
  expect(refusal([](Call& c) { c.k.tensor.shape[2] = 4; }), "k");
  expect(refusal([](Call& c) { c.v.tensor.shape[1] = 32; }), "v");
  expect(refusal([](Call& c) { c.lse.tensor.shape[1] = 32; }), "lse");

  Call call;
  EXPECT_EQ(
      syslab_attention_forward(nullptr, call.k.get(), call.v.get(), call.out.get(), call.lse.get(), nullptr, nullptr),
      SYSLAB_ERROR_USAGE);
  expect(syslab_last_error(), "syslab_attention_forward: q is NULL");
  CTensor four(DType::f32, {2, 1, 33, 8});
  EXPECT_EQ(syslab_attention_forward(four.get(), call.k.get(), call.v.get(), call.out.get(), call.lse.get(), nullptr,
                                     nullptr),
            SYSLAB_ERROR_USAGE);
  expect(syslab_last_error(), "k has 3 dimensions where q has 4");
}

TEST(CInterface, AGpuThatThisProcessCannotUseIsAnErrorOfTheDevice) {
  Call call;
  call.everything_on({kDLCUDA, 99});
  const int status = call.forward();
  EXPECT_TRUE(status == SYSLAB_ERROR_DEVICE || status == SYSLAB_ERROR_USAGE) << status;  // USAGE where there are others
  EXPECT_NE(std::string(syslab_last_error()).find("the tensors lie on GPU 99"), std::string::npos);
}

TEST(CInterface, ImpossibleOptionsAreRefused) {
  const auto refusal = [](auto&& spoil) -> std::string {
    Call call;
    syslab_attention_options options = defaults();
    spoil(options);
    EXPECT_EQ(call.forward(&options), SYSLAB_ERROR_USAGE);
    return syslab_last_error();
  };
  EXPECT_NE(refusal([](auto& o) { o.causal = 3; }).find("options.causal is 3"), std::string::npos);
  EXPECT_NE(refusal([](auto& o) { o.scale = NAN; }).find("scale"), std::string::npos);
  const std::string unknown = refusal([](auto& o) { o.implementation = "nave"; });
  EXPECT_NE(unknown.find("'naive'"), std::string::npos) << unknown;
  const std::string wrong_dtype = refusal([](auto& o) { o.implementation = "reference"; });
  EXPECT_NE(wrong_dtype.find("fp64"), std::string::npos) << wrong_dtype;
}

TEST(CInterface, OutputsThatShareMemoryAreRefused) {
  Call call;
  call.out.tensor.data = call.q.tensor.data;
  EXPECT_EQ(call.forward(), SYSLAB_ERROR_USAGE);
  EXPECT_NE(std::string(syslab_last_error()).find("out shares memory with q"), std::string::npos)
      << syslab_last_error();

  Call shifted;  // the last byte of v is the first of out
  std::vector<float> memory(2 * 2 * 33 * 8);
  shifted.v.tensor.data = memory.data();
  shifted.out.tensor.data = memory.data() + 2 * 33 * 8 - 1;
  EXPECT_EQ(shifted.forward(), SYSLAB_ERROR_USAGE);
  shifted.out.tensor.data = memory.data() + 2 * 33 * 8;
  EXPECT_EQ(shifted.forward(), SYSLAB_OK) << syslab_last_error();

  Call broadcast;
  broadcast.out.tensor.strides[0] = 0;
  EXPECT_EQ(broadcast.forward(), SYSLAB_ERROR_USAGE);
  EXPECT_NE(std::string(syslab_last_error()).find("two of its elements"), std::string::npos) << syslab_last_error();
}

TEST(CInterface, PackedTensorsThatInterleaveAreTakenApart) {
  // Gradients of a packed projection: (B, S, 3, H, D), dq, dk and dv seen as (B, H, S, D).
  constexpr std::int64_t B = 2, S = 9, H = 2, D = 8;
  const std::vector<std::int64_t> shape{B, H, S, D}, strides{S * 3 * H * D, D, 3 * H * D, 1};
  CTensor q(DType::f32, {B, H, S, D}), k(DType::f32, shape), v(DType::f32, shape), out(DType::f32, shape);
  CTensor dout(DType::f32, shape), lse(DType::f32, {B, H, S});
  q.randomize(1), k.randomize(2), v.randomize(3), dout.randomize(4);
  ASSERT_EQ(syslab_attention_forward(q.get(), k.get(), v.get(), out.get(), lse.get(), nullptr, nullptr), SYSLAB_OK);
  CTensor dq(DType::f32, shape), dk(DType::f32, shape), dv(DType::f32, shape);
  const auto backward = [&](CTensor& a, CTensor& b, CTensor& c) {
    return syslab_attention_backward(q.get(), k.get(), v.get(), out.get(), lse.get(), dout.get(), a.get(), b.get(),
                                     c.get(), nullptr, nullptr);
  };
  ASSERT_EQ(backward(dq, dk, dv), SYSLAB_OK) << syslab_last_error();

  std::vector<float> packed(B * S * 3 * H * D);
  CTensor pq(DType::f32, shape, strides), pk(DType::f32, shape, strides), pv(DType::f32, shape, strides);
  pq.tensor.data = packed.data();
  pk.tensor.data = packed.data() + H * D;
  pv.tensor.data = packed.data() + 2 * H * D;
  ASSERT_EQ(backward(pq, pk, pv), SYSLAB_OK) << syslab_last_error();
  const std::vector<double> expected = dk.values();
  for (std::int64_t b = 0, at = 0; b < B; ++b) {
    for (std::int64_t h = 0; h < H; ++h) {
      for (std::int64_t i = 0; i < S; ++i) {
        for (std::int64_t d = 0; d < D; ++d, ++at) {
          const std::int64_t offset = ((b * S + i) * 3 + 1) * H * D + h * D + d;
          ASSERT_EQ(static_cast<double>(packed[static_cast<std::size_t>(offset)]),
                    expected[static_cast<std::size_t>(at)]);
        }
      }
    }
  }
  pk.tensor.data = packed.data() + H * D - 1;  // one element into dq
  EXPECT_EQ(backward(pq, pk, pv), SYSLAB_ERROR_USAGE);
  EXPECT_NE(std::string(syslab_last_error()).find("shares memory"), std::string::npos);
}

TEST(CInterface, AWorkspaceOfTheAskedSizeChangesNoBit) {
  Call own, given;
  ASSERT_EQ(own.forward(), SYSLAB_OK);
  ASSERT_EQ(own.backward(), SYSLAB_OK);
  size_t forward_bytes = 0, backward_bytes = 0;
  void* data = given.q.tensor.data;
  given.q.tensor.data = nullptr;  // only shapes are looked at
  ASSERT_EQ(syslab_attention_workspace(given.q.get(), given.k.get(), given.v.get(), 0, nullptr, &forward_bytes),
            SYSLAB_OK)
      << syslab_last_error();
  ASSERT_EQ(syslab_attention_workspace(given.q.get(), given.k.get(), given.v.get(), 1, nullptr, &backward_bytes),
            SYSLAB_OK);
  given.q.tensor.data = data;

  const std::size_t bytes = std::max(forward_bytes, backward_bytes);
  ASSERT_GT(bytes, 0U);
  std::vector<std::byte> memory(bytes + 256, std::byte{0x5a});
  const std::size_t to_boundary = (128 - reinterpret_cast<std::uintptr_t>(memory.data()) % 128) % 128;
  syslab_attention_options options = defaults();
  options.workspace = memory.data() + to_boundary;
  options.workspace_bytes = forward_bytes;
  ASSERT_EQ(given.forward(&options), SYSLAB_OK) << syslab_last_error();
  options.workspace_bytes = backward_bytes;
  ASSERT_EQ(given.backward(&options), SYSLAB_OK) << syslab_last_error();
  EXPECT_EQ(given.out.bytes(), own.out.bytes());
  EXPECT_EQ(given.dk.bytes(), own.dk.bytes());
  for (std::size_t at = to_boundary + bytes; at < memory.size(); ++at) {
    ASSERT_EQ(memory[at], std::byte{0x5a}) << "written beyond the workspace";
  }

  options.workspace_bytes = backward_bytes - 1;
  EXPECT_EQ(given.backward(&options), SYSLAB_ERROR_USAGE);
  EXPECT_NE(std::string(syslab_last_error()).find(std::to_string(backward_bytes)), std::string::npos)
      << syslab_last_error();
  options.workspace_bytes = bytes + 128;
  options.workspace = memory.data() + to_boundary + 4;
  EXPECT_EQ(given.backward(&options), SYSLAB_ERROR_USAGE);
}

TEST(CInterface, SaysWhichImplementationACallTakesAndWhy) {
  Call call;
  call.q.tensor.data = nullptr;  // only shapes are looked at
  const char *implementation = nullptr, *because = nullptr;
  const auto ask = [&](const syslab_attention_options* options, int backward) {
    return syslab_attention_choice(call.q.get(), call.k.get(), call.v.get(), backward, options, &implementation,
                                   &because);
  };
  for (const int backward : {0, 1}) {
    ASSERT_EQ(ask(nullptr, backward), SYSLAB_OK) << syslab_last_error();
    EXPECT_STREQ(implementation, "flash_tiled");
    EXPECT_NE(std::string(because).find("the fastest on the CPU"), std::string::npos) << because;
  }
  syslab_attention_options options = defaults();
  options.implementation = "naive";
  ASSERT_EQ(ask(&options, 0), SYSLAB_OK) << syslab_last_error();
  EXPECT_STREQ(implementation, "naive");
  EXPECT_NE(std::string(because).find("asked for by name"), std::string::npos) << because;

  options.implementation = "flash_wgmma";
  EXPECT_EQ(ask(&options, 0), SYSLAB_ERROR_USAGE) << "it runs on a GPU";
  EXPECT_STREQ(implementation, "naive") << "a refusal writes no answer";
  EXPECT_EQ(syslab_attention_choice(call.q.get(), call.k.get(), call.v.get(), 0, nullptr, &implementation, nullptr),
            SYSLAB_ERROR_USAGE);
}

TEST(CInterface, TheLastErrorIsTheThreadsOwnAndGoesWithSuccess) {
  Call call;
  syslab_attention_options wrong = defaults();
  wrong.causal = 9;
  ASSERT_EQ(call.forward(&wrong), SYSLAB_ERROR_USAGE);
  std::thread([] { EXPECT_STREQ(syslab_last_error(), ""); }).join();
  EXPECT_STRNE(syslab_last_error(), "");
  ASSERT_EQ(call.forward(), SYSLAB_OK);
  EXPECT_STREQ(syslab_last_error(), "");
}

TEST(CInterface, MemoryThatDoesNotExistIsAStatus) {
  // S×S scores of 2^23 queries need 2^48 bytes. Broadcast inputs keep the tensors themselves small.
  constexpr std::int64_t kLong = std::int64_t{1} << 23;
  CTensor q(DType::f32, {1, kLong, 1}, {0, 0, 1}), k(DType::f32, {1, kLong, 1}, {0, 0, 1});
  CTensor v(DType::f32, {1, kLong, 1}, {0, 0, 1}), out(DType::f32, {1, kLong, 1}), lse(DType::f32, {1, kLong});
  q.randomize(1), k.randomize(2), v.randomize(3);
  syslab_attention_options options = defaults();
  options.implementation = "naive";
  EXPECT_EQ(syslab_attention_forward(q.get(), k.get(), v.get(), out.get(), lse.get(), &options, nullptr),
            SYSLAB_ERROR_OUT_OF_MEMORY);
  EXPECT_STRNE(syslab_last_error(), "");
}

TEST(CInterface, VersionsAreTold) {
  EXPECT_EQ(syslab_plugin_abi(), static_cast<std::uint32_t>(SYSLAB_PLUGIN_ABI));
  EXPECT_STREQ(syslab_version(), SYSLAB_EXPECTED_VERSION);
}

}  // namespace
}  // namespace syslab::capi
