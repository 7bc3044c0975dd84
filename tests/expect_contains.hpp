// EXPECT that a message says something; where it does not, the whole message is shown.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace syslab {

inline void expect_contains(const std::string& text, std::string_view part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

}  // namespace syslab
