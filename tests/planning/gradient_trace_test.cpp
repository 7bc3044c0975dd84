#include "planning/gradient_trace.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace syslab::parallel {
namespace {

std::string error_of(const std::string& text) {
  try {
    read_gradient_trace(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  ADD_FAILURE() << "read: " << text;
  return {};
}

void expect_error(const std::string& text, std::string_view part) {
  const std::string said = error_of(text);
  EXPECT_NE(said.find(part), std::string::npos) << said;
}

void expect_gradients(const GradientTrace& trace, const std::vector<TracedGradient>& expected) {
  ASSERT_EQ(trace.gradients.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(trace.gradients[i].name, expected[i].name);
    EXPECT_EQ(trace.gradients[i].bytes, expected[i].bytes);
    EXPECT_NEAR(trace.gradients[i].ready.count(), expected[i].ready.count(), 1e-12);
  }
}

TEST(GradientTrace, OfCsvIsInTheOrderOfReadiness) {
  const GradientTrace trace = read_gradient_trace(
      "# a comment\n"
      "bytes, name, ready_ms\n"
      "400,\"fc1, the first\",2.5\n"
      "\n"
      "200,fc2,1\r\n");
  EXPECT_EQ(trace.from, "CSV");
  expect_gradients(trace, {{"fc2", 200, Seconds(1e-3)}, {"fc1, the first", 400, Seconds(2.5e-3)}});
  EXPECT_EQ(trace.pieces().bytes(), 600);
  EXPECT_EQ(trace.pieces().bytes(1, 2), 400);
}

TEST(GradientTrace, OfSeveralStepsTakesTheQuantile) {
  std::string text = "step,name,bytes,ready_us\n";
  for (int step = 1; step <= 10; ++step) {
    text += std::to_string(step) + ",a,8," + std::to_string(10 * step) + "\n" + std::to_string(step) + ",b,8,500\n";
  }
  const GradientTrace trace = read_gradient_trace(text);
  EXPECT_EQ(trace.steps, 10);
  expect_gradients(trace, {{"a", 8, Seconds(90e-6)}, {"b", 8, Seconds(500e-6)}});
}

TEST(GradientTrace, OfJsonMayBeAnArrayOrNamed) {
  const std::string array = R"([{"name": "b", "bytes": 4, "ready_us": 3}, {"name": "a", "bytes": 8, "ready_us": 1}])";
  for (const std::string& text : {array, "{\"gradients\": " + array + "}"}) {
    const GradientTrace trace = read_gradient_trace(text);
    EXPECT_EQ(trace.from, "JSON");
    expect_gradients(trace, {{"a", 8, Seconds(1e-6)}, {"b", 4, Seconds(3e-6)}});
  }
}

TEST(GradientTrace, OfAChromeTraceCountsFromItsBackwardPasses) {
  const GradientTrace trace = read_gradient_trace(R"({"traceEvents": [
    {"ph": "M", "name": "process_name"},
    {"ph": "X", "name": "forward", "ts": 0, "dur": 99},
    {"ph": "X", "name": "backward", "ts": 100, "dur": 50},
    {"ph": "i", "cat": "gradient", "name": "w2", "ts": 110, "args": {"bytes": 16}},
    {"ph": "X", "cat": "gradient", "name": "w1", "ts": 120, "dur": 30, "args": {"bytes": 32}},
    {"ph": "X", "name": "backward", "ts": 300, "dur": 60},
    {"ph": "i", "cat": "gradient", "name": "w2", "ts": 320, "args": {"bytes": 16}},
    {"ph": "i", "cat": "gradient", "name": "w1", "ts": 340, "args": {"bytes": 32}}]})");
  EXPECT_EQ(trace.from, "a Chrome trace");
  EXPECT_EQ(trace.steps, 2);
  expect_gradients(trace, {{"w2", 16, Seconds(20e-6)}, {"w1", 32, Seconds(50e-6)}});
}

std::string accumulate(double ts, double dur, const std::string& dims, const std::string& type = "float") {
  return R"({"ph": "X", "cat": "cpu_op", "name": "torch::autograd::AccumulateGrad", "ts": )" + std::to_string(ts) +
         R"(, "dur": )" + std::to_string(dur) + R"(, "args": {"Input Dims": [)" + dims + R"(], "Input type": [")" +
         type + R"("]}},)";
}

std::string step(int number, double ts, double dur) {
  return R"({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#)" + std::to_string(number) + R"(", "ts": )" +
         std::to_string(ts) + R"(, "dur": )" + std::to_string(dur) + "},";
}

std::string evaluate(double ts) {
  return R"({"ph": "X", "cat": "cpu_op", "name": "autograd::engine::evaluate_function: MmBackward0", "ts": )" +
         std::to_string(ts) + R"(, "dur": 5},)";
}

std::string trace_of(std::string events) {
  events.back() = ' ';  // the last comma
  return R"({"schemaVersion": 1, "traceEvents": [)" + events + "]}";
}

TEST(GradientTrace, OfPyTorchsProfilerTakesShapesAndHostTimesWithoutAGpu) {
  std::string events;
  for (int i = 0; i < 2; ++i) {
    const double at = 1000.0 * i;
    events += step(i, at, 900) + evaluate(at + 100) + accumulate(at + 150, 10, "[2, 8]") + evaluate(at + 170) +
              accumulate(at + 190 + i, 10, "[8]", "c10::BFloat16");
  }
  events += accumulate(5000, 1, "[77]");  // between steps: nobody's
  const GradientTrace trace = read_gradient_trace(trace_of(events));
  EXPECT_EQ(trace.from, "a trace of PyTorch's profiler, by the host's times");
  EXPECT_EQ(trace.steps, 2);
  expect_gradients(trace, {{"gradient 0 (64 B)", 64, Seconds(60e-6)}, {"gradient 1 (16 B)", 16, Seconds(101e-6)}});
}

TEST(GradientTrace, OfPyTorchsProfilerOnAGpuTakesTheKernelsThatWereLaunchedBefore) {
  const auto kernel = [](int id, double launched, double begin, double end, const std::string& name = "gemm") {
    return R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": )" + std::to_string(launched) +
           R"(, "dur": 1, "args": {"correlation": )" + std::to_string(id) +
           R"(}},{"ph": "X", "cat": "kernel", "name": ")" + name + R"(", "ts": )" + std::to_string(begin) +
           R"(, "dur": )" + std::to_string(end - begin) + R"(, "args": {"correlation": )" + std::to_string(id) + "}},";
  };
  const GradientTrace trace =
      read_gradient_trace(trace_of(step(3, 0, 1000) + kernel(1, 10, 20, 300) + evaluate(100) +
                                   kernel(2, 110, 300, 500) + kernel(9, 115, 310, 900, "ncclDevKernel_AllReduce") +
                                   accumulate(120, 2, "[4]") + kernel(3, 130, 500, 550) + accumulate(140, 2, "[2]")));
  EXPECT_EQ(trace.from, "a trace of PyTorch's profiler, by its kernels");
  // The pass begins with kernel 2, at 300 µs.
  expect_gradients(trace, {{"gradient 0 (16 B)", 16, Seconds(200e-6)}, {"gradient 1 (8 B)", 8, Seconds(250e-6)}});
}

TEST(GradientTrace, OfPyTorchsProfilerTakesTheLastKernelOfAGraph) {
  const auto event = [](const std::string& category, double begin, double end) {
    return R"({"ph": "X", "cat": ")" + category + R"(", "name": "it", "ts": )" + std::to_string(begin) +
           R"(, "dur": )" + std::to_string(end - begin) + R"(, "args": {"correlation": 7}},)";
  };
  const std::string launch = step(1, 0, 9000) + evaluate(100) + event("cuda_runtime", 101, 103);
  const std::string first = event("kernel", 200, 3200), second = event("kernel", 210, 220);
  for (const std::string& kernels : {first + second, second + first}) {
    const GradientTrace trace = read_gradient_trace(trace_of(launch + kernels + accumulate(120, 10, "[4]")));
    expect_gradients(trace, {{"gradient 0 (16 B)", 16, Seconds(3000e-6)}});
  }
}

TEST(GradientTrace, SaysWhatIsWrongWithAFile) {
  for (const char* dimensions : {"1", "\"4\"", "{}"}) {
    expect_error(trace_of(step(0, 0, 1000) + evaluate(100) + accumulate(120, 2, dimensions)), "have no shapes");
  }
  for (const char* dimensions : {"[4611686018427387904, 8]", "[-1]"}) {
    expect_error(trace_of(step(0, 0, 1000) + evaluate(100) + accumulate(120, 2, dimensions)), "that no memory holds");
  }
  expect_error("", "empty");
  expect_error("name,bytes\na,1\n", "line 1 of the trace: expected names of columns");
  expect_error("name,bytes,ready_us\na,1\n", "line 2 of the trace: 2 fields under 3 names");
  expect_error("name,bytes,ready_us\na,many,1\n", "bytes 'many' is no number");
  expect_error("name,bytes,ready_us\na,4e56,1\n", "line 2 of the trace: bytes is to be a whole number, found 4e+56");
  expect_error("name,bytes,ready_us\na,nan,1\n", "bytes is to be a whole number");
  expect_error("step,name,bytes,ready_us\n0.5,a,4,1\n", "step is to be a whole number, found 0.5");
  expect_error("{\"gradients\": [{\"name\": \"a\", \"bytes\": 1e300, \"ready_us\": 1}]}",
               "bytes is to be a whole number");
  expect_error("{\"gradients\": [{\"name\": 8, \"bytes\": 4, \"ready_us\": 1}]}",
               "gradient 0 of the trace: 'name' is to be a text, found a value of type number");
  expect_error("name,bytes,ready_us\na,0,1\n", "gradient 'a' of 0 bytes");
  expect_error("name,bytes,ready_us\na,4,-1\n", "is final after");
  expect_error("name,bytes,ready_us\n", "no gradient");
  expect_error("name,bytes,ready_us\na,4,1\na,4,2\n", "two gradients 'a'");
  expect_error("step,name,bytes,ready_us\n0,a,4,1\n1,b,4,1\n", "do not have the same gradients ('a')");
  expect_error("{\"gradients\": [{\"name\": \"a\", \"ready_us\": 1}]}", "gradient 0 of the trace: 'bytes'");
  expect_error("[{\"name\": \"a\", \"bytes\": 4}]", "none of ready_us");
  expect_error("{\"traceEvents\": [", "is it whole?");
  expect_error("[" + std::string(50'000, '[') + std::string(50'000, ']') + "]",
               "the trace is nested 50001 levels deep; expected at most 100");
  expect_error("{\"model\": 1}", "neither 'gradients' nor 'traceEvents'");
  expect_error("{\"traceEvents\": [{\"ph\": \"X\", \"name\": \"forward\", \"ts\": 1}]}",
               "was a backward pass recorded?");
  expect_error(R"([{"ph": "i", "cat": "gradient", "name": "w", "ts": 5, "args": {"bytes": 4}}])", "named 'backward'");
  expect_error(R"([{"ph": "X", "name": "torch::autograd::AccumulateGrad", "ts": 5, "args": {}}])",
               "record_shapes=True");
}

}  // namespace
}  // namespace syslab::parallel
