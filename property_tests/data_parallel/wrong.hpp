// What ranks got wrong, and what that looks like.
#pragma once

#include <string>
#include <utility>

namespace syslab::data_parallel {

// "that is the sum over ranks, not divided by 2"; `cause`: the same without numbers. Empty: it looks like nothing
// known.
struct Likeness {
  std::string text, cause = text;
};

// `said`: for people. `cause`: as Finding has it.
struct Wrong {
  Wrong(std::string text, const Likeness& like = {})
      : said(like.text.empty() ? std::move(text) : text + ": " + like.text), cause(like.cause) {}

  std::string said, cause;
};

}  // namespace syslab::data_parallel
