// What one experiment measured answers another's problem: no step is timed twice, and what is compared says whose it
// is.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "report/cells.hpp"
#include "report/first_page.hpp"
#include "report/hand_in_table.hpp"
#include "report/handout_models.hpp"
#include "report/writers/writers.hpp"
#include "tests/report/writeup.hpp"

namespace syslab::report {
namespace {

class StepsOfRanks : public Writeup {
 protected:
  void add_step(const std::string& experiment, const std::string& strategy, double ms, double exposed_ms) {
    add(experiment,
        {{"model", word("xl26")},
         {"batch", number(8)},
         {"context", number(512)},
         {"precision", word("fp32")},
         {"strategy", strategy}},
        "fused",
        {timed("time", 1e-3 * ms, worker::kAllRanks), timed("backward", 0.6, worker::kAllRanks),
         timed("exposed", 1e-3 * exposed_ms, worker::kAllRanks), metric("buckets", strategy == "naive" ? 291 : 1),
         worker::SpanRecord{
             .track = "compute", .name = "backward", .category = "phase", .start_ns = 0, .end_ns = 600'000'000},
         worker::SpanRecord{.track = "communication",
                            .name = "bucket 0",
                            .category = "collective",
                            .start_ns = strategy == "overlap" ? 100'000'000 : 610'000'000,
                            .end_ns = 620'000'000}},
        {.gpu = "Example_GPU", .ranks = 2});
  }
  void add_all() {
    add_step("naive_ddp_benchmarking", "none", 900, 0);
    add_step("naive_ddp_benchmarking", "naive", 975, 55);
    add_step("minimal_ddp_flat_benchmarking", "flat_copy", 980, 65);
    add_step("minimal_ddp_flat_benchmarking", "flat_view", 960, 40);
    add_step("ddp_overlap_individual_parameters_benchmarking", "overlap", 930, 1);
  }
};

TEST_F(StepsOfRanks, AreHeldAgainstThoseOfAnEarlierProblem) {
  add_all();
  const std::string flat = said("minimal_ddp_flat_benchmarking", "messages");
  EXPECT_TRUE(has(flat, "975.0")) << flat;
  EXPECT_TRUE(has(flat, "One large call is 15 ms faster than 291 small ones of the same bytes, probably because"))
      << flat;
  EXPECT_TRUE(has(flat, "Packing into the buffer and back adds 20 ms to the step")) << flat;
  EXPECT_TRUE(has(flat, "The steps are from different runs on one machine.")) << flat;
  const std::string overlap = said("ddp_overlap_individual_parameters_benchmarking", "hidden");
  EXPECT_TRUE(has(overlap, "overlap recovers 60 % of what communication costs")) << overlap;
  EXPECT_TRUE(has(overlap, "The steps are from different runs on one machine.")) << overlap;
  const Table rows = table("ddp_overlap_individual_parameters_benchmarking", "steps");
  EXPECT_EQ(words(rows.result, "strategy"), (std::set<std::string>{"none", "naive", "flat_copy", "overlap"}));
  EXPECT_EQ(words(table("naive_ddp_benchmarking", "steps").result, "strategy"),
            (std::set<std::string>{"none", "naive"}));
}

TEST_F(StepsOfRanks, TellWhatOfManyCallsIsLatency) {
  add_all();
  for (const auto& [bytes, seconds] : {std::pair{1'000'000, 20e-6}, {1'000'000'000, 3e-3}}) {
    add("distributed_communication_single_node", {{"operation", word("all_reduce")}, {"bytes", number(bytes)}}, "nccl",
        {timed("time", seconds, worker::kAllRanks), metric("pipelined", seconds)}, {.gpu = "Example_GPU", .ranks = 2});
  }
  const std::string flat = said("minimal_ddp_flat_benchmarking", "messages");
  EXPECT_TRUE(has(flat,
                  "291 small ones of the same bytes: 290 latencies of about 17 µs less (back to back on this machine) "
                  "are about 5 ms of it, the rest"))
      << flat;
}

TEST_F(StepsOfRanks, TellHowLongTheFasterRankWaits) {
  add_step("naive_ddp_benchmarking", "none", 900, 0);
  add("naive_ddp_benchmarking",
      {{"model", word("xl26")},
       {"batch", number(8)},
       {"context", number(512)},
       {"precision", word("fp32")},
       {"strategy", word("naive")}},
      "fused",
      {timed("time", 0.975, worker::kAllRanks), timed("exposed", 0.057, worker::kAllRanks), timed("exposed", 0.057, 0),
       timed("exposed", 0.054, 1), metric("buckets", 291), metric("gradient_bytes", 8e9)},
      {.gpu = "Example_GPU", .ranks = 2});
  const std::string text = said("naive_ddp_benchmarking", "share");
  EXPECT_TRUE(has(text, "75 ms longer than without it; of communication up to 3 ms is waiting for the slower rank."))
      << text;
}

TEST_F(StepsOfRanks, AreAnExperimentsOwnWhereItHasThem) {
  add_all();
  add_step("minimal_ddp_flat_benchmarking", "naive", 1000, 80);
  EXPECT_TRUE(has(said("minimal_ddp_flat_benchmarking", "messages"), "40 ms faster than 291"))
      << said("minimal_ddp_flat_benchmarking", "messages");
}

TEST_F(StepsOfRanks, HaveTheirTimelinesInWords) {
  add_all();
  const std::string text = said("ddp_overlap_individual_parameters_benchmarking", "timelines");
  EXPECT_TRUE(has(text, "all 1 all-reduces start after backward, which ends at 600 ms.")) << text;
  EXPECT_TRUE(has(text, "With overlap the first starts at 100 ms, and 1 of 1 start before backward ends at 600 ms."))
      << text;
}

class ShardedState : public Writeup {
 protected:
  void add_step(const std::string& experiment, const std::string& model, const std::string& sharding, double sent) {
    add(experiment,
        {{"model", model},
         {"batch", number(8)},
         {"context", number(512)},
         {"precision", word("fp32")},
         {"sharding", sharding},
         {"updates", word("at_end")}},
        "fused", {timed("time", 1, worker::kAllRanks), metric("sent", sent), metric("calls", 7)},
        {.gpu = "Example_GPU", .ranks = 2});
  }
};

TEST_F(ShardedState, IsHeldAgainstZeROsBytesWhereZeRODidNotRun) {
  constexpr double kGiB = 1 << 30;
  add_step("optimizer_state_sharding_accounting", "xl26", "optimizer", 3 * kGiB);
  const std::string calculated = said("optimizer_state_sharding_accounting", "c_zero1");
  EXPECT_TRUE(has(calculated, "3Ψ(n − 1)/n: 3.000 GiB.")) << calculated;
  EXPECT_TRUE(has(calculated, "2.000 GiB (calculated) for xl26 on 2 ranks")) << calculated;
  add_step("optimizer_state_sharding_accounting", "xl26", "zero1", 2.5 * kGiB);
  const std::string measured = said("optimizer_state_sharding_accounting", "c_zero1");
  EXPECT_TRUE(has(measured, "2.500 GiB for xl26 on 2 ranks")) << measured;
}

// --- one process ---

class Passes : public Writeup {
 protected:
  void add_pass(const std::string& experiment, const std::string& implementation, const std::string& model,
                const std::string& precision, const std::string& mode, double forward_ms, double backward_ms,
                double step_ms, const std::string& gpu = "", double optimizer_ms = 0) {
    Params params = model_step(model);
    params.set("precision", precision);
    params.set("mode", mode);
    if (experiment == "benchmarking_script") params.set("warmup", number(5));
    add(experiment, params, implementation,
        {metric("parameters", model == "small" ? 1000 : 5000), timed("time", 1e-3 * step_ms),
         timed("forward", 1e-3 * forward_ms), timed("backward", 1e-3 * backward_ms),
         timed("optimizer", 1e-3 * optimizer_ms)},
        {.machine = gpu.empty() ? "box" : gpu, .gpu = gpu});
  }
};

TEST_F(Passes, InHalfPrecisionStandBesideTheTimingProgramsInFp32) {
  for (const char* model : {"small", "large"}) {
    add_pass("benchmarking_script", "eager", model, "fp32", "train", 10, 20, 32);
    add_pass("benchmarking_mixed_precision", "eager", model, "bf16_amp", "forward_backward", model[0] == 's' ? 10 : 5,
             10, 15);
  }
  const std::string text = said("benchmarking_mixed_precision", "trend");
  EXPECT_TRUE(has(text, "forward + backward is 1.500")) << text;
  EXPECT_TRUE(has(text, "grows with model size")) << text;
  const Table rows = table("benchmarking_mixed_precision", "c_models");
  ASSERT_EQ(rows.result.rows.size(), 2U);
  EXPECT_DOUBLE_EQ(cell_of(rows.result, 1, "forward_gain").real, 2);
  // What the experiment measured itself comes first.
  add_pass("benchmarking_mixed_precision", "eager", "large", "fp32", "forward_backward", 20, 20, 40);
  EXPECT_DOUBLE_EQ(cell_of(table("benchmarking_mixed_precision", "c_models").result, 1, "forward_gain").real, 4);
}

TEST_F(Passes, FusedStandBesideOpByOpWhoeverTimedThem) {
  add_pass("benchmarking_script", "eager", "small", "fp32", "train", 10, 20, 40);
  add_pass("benchmarking_script", "fused", "small", "fp32", "train", 5, 10, 20);
  add_pass("benchmarking_script", "eager", "large", "fp32", "train", 100, 200, 330);
  add_pass("benchmarking_script", "fused", "large", "fp32", "train", 80, 160, 300);
  const std::string text = said("torch_compile", "b_gain");
  EXPECT_TRUE(has(text, "forward is 2 (small) to 1.25 (large) times as fast, a step with AdamW 2 to 1.1 times"))
      << text;
  EXPECT_TRUE(has(text, " large gains least, probably because more of its time is matrix products")) << text;
  EXPECT_EQ(table("torch_compile", "b_whole").result.rows.size(), 4U);
}

TEST_F(Passes, FusedNameTheShareOfAdamWInWhatTheLargestGains) {
  for (const auto& [model, optimizer_ms] : {std::pair{"small", 1.0}, {"large", 30.0}}) {
    add_pass("benchmarking_script", "eager", model, "fp32", "train", 100, 200, 340, "", optimizer_ms);
    add_pass("benchmarking_script", "fused", model, "fp32", "train", 80, 160, 250, "", 10);
  }
  const std::string text = said("torch_compile", "b_gain");
  EXPECT_TRUE(has(text, "Of the 90 ms that a step of large gains, 20 are AdamW's.")) << text;
  // Where AdamW is not faster there is nothing to name.
  add_pass("benchmarking_script", "fused", "large", "fp32", "train", 80, 160, 250, "", 31);
  EXPECT_FALSE(has(said("torch_compile", "b_gain"), "AdamW's")) << said("torch_compile", "b_gain");
}

TEST_F(Passes, OfSeveralGpusStandInTheOrderOfModels) {
  for (const auto& [model, gpu] : {std::pair{"large", "NVIDIA A"}, {"small", "NVIDIA B"}}) {
    for (const char* implementation : {"eager", "fused"}) {
      add_pass("benchmarking_script", implementation, model, "fp32", "train", 10, 20, 40, gpu);
    }
    add_pass("benchmarking_mixed_precision", "eager", model, "bf16_amp", "forward_backward", 5, 10, 15, gpu);
  }
  const store::ResultSet whole = table("torch_compile", "b_whole").result,
                         half = table("benchmarking_mixed_precision", "c_models").result;
  ASSERT_EQ(whole.rows.size(), 4U);
  EXPECT_EQ(cell_of(whole, 0, "model").text, "small");
  ASSERT_EQ(half.rows.size(), 2U);
  EXPECT_EQ(cell_of(half, 0, "model").text, "small");
}

TEST_F(Passes, TimesBearTheDigitsOfTheirRatio) {
  add_pass("torch_compile", "pytorch_eager", "small", "fp32", "train", 10, 20, 68.1734);
  add_pass("torch_compile", "pytorch_compiled", "small", "fp32", "train", 5, 10, 47.538);
  const std::string text = said("torch_compile", "b_torch");
  EXPECT_TRUE(has(text, "1.43× for small (68.17 to 47.54 ms)")) << text;
}

// --- what stays of a caption ---

TEST(HandInTable, NamesAKernelByWhatTellsItFromOthers) {
  EXPECT_EQ(short_name("syslab::framework::(anonymous namespace)::element_kernel<(syslab::framework::Operation)14, 4>"),
            "element_kernel<(Operation)14, 4>");
  EXPECT_EQ(short_name("cutlass::Kernel2<cutlass_80_simt_sgemm_128x256_8x4_nt_align1>"),
            "cutlass…sgemm_128x256_8x4_nt_align1");
  EXPECT_EQ(short_name("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma"),
            "sm80_xmma_gemm…_tn_n_tilesize128x128x8…");
  EXPECT_EQ(short_name("short::name"), "short::name") << "what fits stays as it is";
}

TEST(HandInTable, ExplainsNoColumnThatItLeavesOut) {
  Table table;
  table.source = parse_table("toy", R"(-- title: Toy
-- caption: Median of one call. Rows of `vs naive` are not shown.
-- about n: `n`: samples.
-- about size: `size`: tokens.
-- about vs_naive, time: `vs naive` is the speed-up.
-- about time, size: Time grows with size; it does not shrink. `n` is not said.
-- experiment: toy
-- columns: size|1|d|right; time|ms|.3g|right; vs_naive as vs naive|×|.3g|right; bound|1|.1e|right; n|1|d|right
SELECT 1)");
  table.result.columns = {"size", "time", "vs_naive", "bound", "n"};
  Cell one, two, none;
  one.type = two.type = Cell::Type::integer;
  one.integer = 1;
  two.integer = 2;
  table.result.rows = {{one, one, none, one, one}, {two, two, none, one, one}};
  const std::string whole = "Median of one call. Rows of `vs naive` are not shown. ", size = "`size`: tokens.",
                    both = " Time grows with size; it does not shrink. `n` is not said.";
  EXPECT_EQ(whole_caption(table.source), whole + "`n`: samples. " + size + " `vs naive` is the speed-up." + both);
  EXPECT_EQ(whole_caption(hand_in_table(table, {}, {}).source), whole + size + both)
      << "a column goes with its sentences, whatever words they have";
}

// Numbers of two devices cannot be held beside one another.
TEST(HandInTable, ShowsTheGpuThatHasMostResults) {
  Table table;
  table.source = parse_table("toy", R"(-- title: Toy
-- caption: Times.
-- experiment: toy
-- columns: time|ms|d|right; device|1|s|left; status|1|s|left
SELECT 1)");
  table.result.columns = {"time", "device", "status"};
  const auto row = [&](std::int64_t time, const char* device, const char* status) {
    Cell number, name, ending;
    number.type = Cell::Type::integer;
    number.integer = time;
    name.type = ending.type = Cell::Type::text;
    name.text = device;
    ending.text = status;
    table.result.rows.push_back({number, name, ending});
  };
  row(1, "One", "oom");
  row(2, "One", "oom");
  row(3, "Two", "ok");
  for (int i = 4; i < 9; ++i) row(i, "A CPU", "ok");
  const auto shown = [&](const std::vector<std::string>& gpus) {
    std::set<std::string> devices;
    const Table made = hand_in_table(table, {}, gpus);
    for (std::size_t i = 0; i < made.result.rows.size(); ++i) devices.insert(plain(cell_of(made.result, i, "device")));
    return devices;
  };
  EXPECT_EQ(shown({"One", "Two"}), std::set<std::string>{"Two"});
  EXPECT_EQ(shown({"One"}), std::set<std::string>{"One"});
  EXPECT_EQ(shown({}).size(), 3U);
  row(9, "One", "ok");
  row(10, "Two", "ok");
  EXPECT_EQ(shown({"One", "Two"}), std::set<std::string>{"Two"});
  const Table spoken = hand_in_table(table, {}, {"One", "Two"}, "One");
  EXPECT_EQ(plain(cell_of(spoken.result, 0, "device")), "One") << "the sentence above speaks of it";
}

TEST(HandInTable, ShowsAModelThatOneGpuHasNotAsAnotherHasIt) {
  Table table;
  table.source = parse_table("toy", R"(-- title: Toy
-- caption: Times.
-- experiment: toy
-- columns: model|1|s|left; time|ms|d|right; device|1|s|left
SELECT 1)");
  table.result.columns = {"model", "time", "device"};
  const auto row = [&](const char* model, std::int64_t time, const char* device) {
    Cell name, number, where;
    name.type = where.type = Cell::Type::text;
    name.text = model;
    number.type = Cell::Type::integer;
    number.integer = time;
    where.text = device;
    table.result.rows.push_back({name, number, where});
  };
  row("small", 1, "One");
  row("large", 2, "One");
  row("small", 3, "Two");
  row("xl", 4, "Two");
  row("xl", 5, "A CPU");
  const Table made = hand_in_table(table, {}, {"One", "Two"});
  ASSERT_EQ(made.result.rows.size(), 3U);
  EXPECT_EQ(plain(cell_of(made.result, 2, "time")), "4");
}

// A column of reasons would be the widest of all, for one row.
TEST(HandInTable, SaysOnceBeneathWhyARowRanOutOfMemory) {
  Table table;
  table.source = parse_table("toy", R"(-- title: Toy
-- caption: Times.
-- experiment: toy
-- columns: model|1|s|left; time|ms|.3g|right; status|1|status|left
SELECT 1)");
  table.result.columns = {"model", "time", "status", "message"};
  const auto row = [&](const char* model, double time, const char* status, const char* message) {
    Cell name, number, ending, why;
    name.type = ending.type = Cell::Type::text;
    name.text = model;
    ending.text = status;
    if (time > 0) number.type = Cell::Type::real;
    number.real = time;
    if (*message != 0) why.type = Cell::Type::text;
    why.text = message;
    table.result.rows.push_back({name, number, ending, why});
  };
  row("small", 1.5, "ok", "");
  row("10B", 0, "oom", "needs 234 GiB");
  const std::string text = write(hand_in_table(table, {}, {}), Format::markdown);
  EXPECT_NE(text.find("| 10B | OOM |"), std::string::npos) << text;
  EXPECT_NE(text.find("OOM, out of memory: needs 234 GiB."), std::string::npos) << text;
  EXPECT_EQ(text.find("status"), std::string::npos) << text;
}

TEST(ModelsOfAHandout, HaveItsNamesWithinAText) {
  store::ResultSet found;
  found.columns = {"models"};
  const auto said = [&](const char* handout, const char* text) {
    Cell cell;
    cell.type = Cell::Type::text;
    cell.text = text;
    found.rows = {{cell}};
    keep_models_of(handout, found);
    return found.rows[0][0].text;
  };
  EXPECT_EQ(said("2025", "small, large, xl25, xl26, 10B"), "small, large, xl, 2.7B");
  EXPECT_EQ(said("2026", "small, large, xl25, xl26, 10B"), "small, large, xl, 10B");
  EXPECT_EQ(said("2026", "1.65 (small) to 1.16 (xl26)"), "1.65 (small) to 1.16 (xl)");
  EXPECT_EQ(said("2026", "xl260 and axl26"), "xl260 and axl26");
  EXPECT_EQ(said("", "xl25"), "xl25");
}

TEST(GpusOf, PutsFirstWhatTheProblemsExperimentsWereMeasuredOn) {
  const std::vector<GpuResults> results{{"flash", "One", 50}, {"steps", "One", 2}, {"steps", "Two", 3}};
  EXPECT_EQ(gpus_of(results, {"steps"}), (std::vector<std::string>{"Two", "One"}));
  EXPECT_EQ(gpus_of(results, {"another"}), (std::vector<std::string>{"One", "Two"}));
}

}  // namespace
}  // namespace syslab::report
