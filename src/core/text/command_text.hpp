// A command as a person types it: its words, the places in them for values, and a number in what it prints. No shell
// reads it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/quantity.hpp"
#include "core/value.hpp"

namespace syslab {

// Words apart at spaces; '…', "…" and \ keep a word together as in a shell. Nothing is expanded. Error(usage) where a
// quote does not end, where there is no word, and for what only a shell would do (pipes, variables).
std::vector<std::string> command_words(std::string_view text);

// Names in braces, each once: {"n"} of "./bench {n}". Braces around anything else are text.
std::vector<std::string> places_in(std::string_view text);

// The word with each place's value; of a place that `values` has not, the text as it stands.
std::string filled(std::string_view word, const Params& values);

// "in /home/me: ./bench {n}": a command and the folder in which it starts, as a run stores it, perhaps with what its
// output must equal: "… against in /home/me: ./slow {n}".
struct CommandPlace {
  std::string folder, command, reference;
};
std::string to_string(const CommandPlace& place);
// Nothing where the text is of another form.
std::optional<CommandPlace> parse_command_place(std::string_view text);

// "time: {} ms": a time, or a rate, that a program prints. Blanks match any number of them, everything else itself.
class NumberPattern {
 public:
  // Error(usage) unless there is one {}, followed by a unit of time (ns us µs ms s min) or by one that is per second
  // (GB/s, TFLOP/s, GFLOPS). Of a unit that is neither, a count of FLOPs among them, nobody knows which way is better.
  explicit NumberPattern(std::string_view text);

  struct Found {
    double seconds = 0;              // of a rate: its reciprocal, the time of one unit
    std::size_t begin = 0, end = 0;  // where the number stands
  };
  // What stands last in the place of a number, perhaps with a plus ("+5"); nothing where there is none, or the last is
  // no number above zero: "took 5 ms (warm-up), took 0 ms".
  std::optional<Found> find(std::string_view text) const;
  // What comes last in the place of the number, whether it is one or not: "result 0 ms"; nothing where nothing has the
  // text around it.
  std::optional<std::string> find_other(std::string_view text) const;

  bool is_rate() const { return factor_ == 0; }
  const std::string& unit() const { return unit_; }
  // A time is in seconds, whatever its unit.
  Quantity quantity() const { return is_rate() ? Quantity{unit_, Better::larger} : Quantity{}; }

 private:
  struct Last {
    std::optional<Found> number;
    std::optional<std::string> other;  // in place of one, with the text around it
  };
  Last last_of(std::string_view text) const;
  bool is_apart(std::string_view text, std::size_t at) const;
  std::optional<std::size_t> end_behind(std::string_view text, std::size_t stop) const;
  std::optional<std::size_t> end_of_other(std::string_view text, std::size_t at) const;
  std::optional<Found> read_at(std::string_view text, std::size_t at) const;

  std::string before_, after_, unit_;
  double factor_ = 0;  // seconds of one unit; 0: a rate
};

}  // namespace syslab
