// A small store, filled by hand, and what tables, sentences and figures of experiments make of it.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "core/resources.hpp"
#include "report/cells.hpp"
#include "report/figure/data.hpp"
#include "report/figure/figure.hpp"
#include "report/table.hpp"
#include "tests/report/fixture.hpp"

namespace syslab::report {

using store::Cell;
using worker::Record;

class Writeup : public ::testing::Test {
 protected:
  static Record metric(const std::string& name, double value, int rank = 0) {
    return worker::MetricRecord{.name = name, .unit = "1", .value = value, .rank = rank};
  }
  // With an interval of a hundredth on both sides.
  static Record timed(const std::string& name, double seconds, int rank = 0) {
    return worker::MetricRecord{.name = name,
                                .unit = "s",
                                .value = seconds,
                                .low = 0.99 * seconds,
                                .high = 1.01 * seconds,
                                .n = 10,
                                .rank = rank};
  }
  static Record fact(const std::string& json) { return worker::FactRecord{json}; }
  static worker::CheckRecord passed() {
    return {.name = "reference:y", .outcome = Outcome::passed, .cases_run = 1, .seed = "7"};
  }
  static std::string word(const std::string& text) { return text; }
  static std::int64_t number(std::int64_t value) { return value; }
  // A step of bucketed DDP with buckets of so many MiB.
  static Params bucketed(std::int64_t limit) {
    return {{"model", word("xl25")},     {"batch", number(8)},           {"context", number(128)},
            {"precision", word("fp32")}, {"strategy", word("bucketed")}, {"bucket_mb", limit}};
  }

  static Params model_step(const std::string& model = "small") {
    return {{"model", model},
            {"batch", number(4)},
            {"context", number(128)},
            {"precision", word("fp32")},
            {"mode", word("train")}};
  }

  void add(const std::string& experiment, const Params& params, const std::string& implementation,
           std::vector<Record> records, FixtureStore::Attempt attempt = {}) {
    records.insert(records.begin(), passed());
    attempt.experiment = experiment;
    attempt.params = params;
    attempt.implementation = implementation;
    attempt.records = std::move(records);
    fixture_.add(std::move(attempt));
  }
  Table table(const std::string& experiment, const std::string& id) {
    const std::string name = "experiments/" + experiment + "/tables/" + id + ".sql";
    const std::vector<Resource> files = resources(name);
    EXPECT_EQ(files.size(), 1U) << name;
    return fill(parse_table(id, std::string(files.at(0).text)), fixture_.store());
  }
  std::string said(const std::string& experiment, const std::string& id) {
    return write_sentences(table(experiment, id));
  }
  std::string shown(const std::string& experiment, const std::string& id) {
    return write(table(experiment, id), Format::markdown);
  }
  store::ResultSet drawn(const std::string& experiment, const std::string& id) {
    for (const FigureSource& source : figures_of(experiment)) {
      if (source.id != id) continue;
      Cell name;
      name.type = Cell::Type::text;
      name.text = experiment;
      const bool asks = source.sql.find("?1") != std::string::npos;
      return fixture_.store().query(source.sql, asks ? std::vector<Cell>{name} : std::vector<Cell>{});
    }
    ADD_FAILURE() << experiment << " has no figure " << id;
    return {};
  }
  static std::set<std::string> words(const store::ResultSet& found, const std::string& column) {
    std::set<std::string> all;
    for (std::size_t row = 0; row < found.rows.size(); ++row) all.insert(plain(cell_of(found, row, column)));
    return all;
  }
  static bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

  FixtureStore fixture_;
};

}  // namespace syslab::report
