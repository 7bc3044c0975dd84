#include "trace/recorder.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "core/error.hpp"

namespace syslab::trace {
namespace {

using device::Listening;
using device::NvtxRange;
using device::RangeKind;

TEST(Recorder, RangesNestAsTheyDidInTheProgram) {
  Recorder recorder;
  {
    const Listening listening(recorder);
    const NvtxRange phase("forward", RangeKind::phase);
    { const NvtxRange call("gemm", RangeKind::kernel, {}, "OpenBLAS"); }
    const NvtxRange layer(std::string("layers.") + "0", RangeKind::layer);
  }
  const std::vector<Span>& spans = recorder.spans();
  ASSERT_EQ(spans.size(), 3U);
  EXPECT_EQ(spans[0].name, "forward");
  EXPECT_EQ(spans[0].kind, RangeKind::phase);
  EXPECT_EQ(spans[0].parent, std::nullopt);
  EXPECT_EQ(spans[1].name, "gemm");
  EXPECT_EQ(spans[1].kernel, "OpenBLAS");
  EXPECT_EQ(spans[1].parent, 0U);
  EXPECT_EQ(spans[2].name, "layers.0");
  EXPECT_EQ(spans[2].parent, 0U);
  EXPECT_LE(spans[0].begin, spans[1].begin);
  EXPECT_LE(spans[1].begin, spans[1].end);
  EXPECT_LE(spans[1].end, spans[2].begin);
  EXPECT_LE(spans[2].end, spans[0].end);
}

TEST(Recorder, NothingIsHeardBeforeAndAfterListening) {
  Recorder recorder;
  const NvtxRange around("before");
  { const Listening listening(recorder); }
  const NvtxRange after("after");
  EXPECT_TRUE(recorder.spans().empty());
}

TEST(Recorder, ARangeThatBeganBeforeDoesNotEndTheListenersOwn) {
  Recorder recorder;
  auto before = std::make_unique<NvtxRange>("before");
  const Listening listening(recorder);
  auto inside = std::make_unique<NvtxRange>("inside");
  before.reset();
  EXPECT_EQ(recorder.innermost(), 0U);
  inside.reset();
  EXPECT_EQ(recorder.innermost(), std::nullopt);
}

TEST(Recorder, OtherThreadsAreNotHeard) {
  Recorder recorder;
  const Listening listening(recorder);
  std::thread([] { const NvtxRange elsewhere("elsewhere"); }).join();
  EXPECT_TRUE(recorder.spans().empty());
}

TEST(Recorder, TheInnerListenerCountsAndTheOuterOneComesBack) {
  Recorder outer, inner;
  const Listening first(outer);
  {
    const Listening second(inner);
    const NvtxRange range("inner");
  }
  const NvtxRange range("outer");
  EXPECT_EQ(outer.spans().size(), 1U);
  EXPECT_EQ(inner.spans().size(), 1U);
}

TEST(Recorder, IsNotEmptiedWhileASpanIsOpen) {
  Recorder recorder;
  const Listening listening(recorder);
  {
    const NvtxRange range("open");
    EXPECT_THROW(recorder.clear(), Error);
  }
  recorder.clear();
  EXPECT_TRUE(recorder.spans().empty());
}

// Says what a tap is told, in order.
struct Notes final : SpanTap {
  std::vector<std::string> heard;
  void opened(std::size_t span, RangeKind kind, device::Stream) noexcept override {
    heard.push_back("open " + std::to_string(span) + " " + std::string(to_string(kind)));
  }
  void closed(std::size_t span) noexcept override { heard.push_back("close " + std::to_string(span)); }
};

TEST(Recorder, ATapHearsOfEverySpanWithItsPlace) {
  Notes notes;
  Recorder recorder(&notes);
  const Listening listening(recorder);
  {
    const NvtxRange phase("forward", RangeKind::phase);
    const NvtxRange call("gemm", RangeKind::kernel);
  }
  EXPECT_EQ(notes.heard, (std::vector<std::string>{"open 0 phase", "open 1 kernel", "close 1", "close 0"}));
}

}  // namespace
}  // namespace syslab::trace
