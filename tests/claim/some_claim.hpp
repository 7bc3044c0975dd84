// A claim with one case: three launches of a block each, in which `me` is twice as fast as `naive`.
#pragma once

#include <cmath>

#include <nlohmann/json.hpp>

#include "claim/claim_file.hpp"
#include "core/text/json_text.hpp"
#include "runner/environment.hpp"

namespace syslab::claim::test {

inline File some_claim() {
  File file;
  file.statement = parse_statement("me >= 1.5 x naive");
  file.question.experiments = {"flash_forward"};
  file.question.assignments = {"seq=128"};
  file.question.protocol = "kernel";
  file.question.data = "normal";
  file.faster = {"me", true, "00ff", "me", "", {{"attention.linearity", Contract::full, Outcome::passed, 100}}};
  file.slower = {"naive", false, "4f2c", "naive", "", {}};
  Case one{"flash_forward seq=128", "flash_forward", "2", R"({"seq":128})", 3, {}, {}, {}};
  for (int launch = 0; launch < 3; ++launch) {
    one.blocks.push_back({launch, 0, "ABBA", {2e-3, 1e-3, 1e-3, 2e-3}, std::log(0.5)});
  }
  one.faster_code = "beef";
  file.cases = {one};
  file.made_at = "2026-05-01T12:34:56.789Z";
  file.environment_json = R"({"cpu":{"model":"a processor"},"gpu":[{"name":"a card"}]})";
  file.machine_kind = runner::comparability_key(parse_json(file.environment_json));
  file.build_json = R"({"git_sha":"4f2c"})";
  return file;
}

}  // namespace syslab::claim::test
