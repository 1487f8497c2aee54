// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "scalewise/architecture/description.hpp"
#include "scalewise/architecture/numbered_tensors.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise::detail {

/// The roles that a user has given, and which of them some tensor has.
class GivenRoles {
 public:
  explicit GivenRoles(const std::vector<architecture::RoleOverride>& roles)
      : roles_(roles), used_(roles.size(), false) {}

  /// That of a tensor: the last one whose pattern it matches.
  std::optional<GivenRole> of(const std::string& name) {
    std::optional<GivenRole> found;
    for (std::size_t r = 0; r < roles_.size(); ++r) {
      if (!matches_glob(roles_[r].pattern, name)) continue;
      found = roles_[r].role;
      used_[r] = true;
    }
    return found;
  }

  void require_used() const {
    for (std::size_t r = 0; r < roles_.size(); ++r) {
      if (used_[r]) continue;
      const std::string& pattern = roles_[r].pattern;
      throw InvalidInput("role", pattern.empty() ? "(empty)" : messages::printable(pattern),
                         "a pattern of names of the model's tensors");
    }
  }

 private:
  const std::vector<architecture::RoleOverride>& roles_;
  std::vector<bool> used_;  // by role
};

}  // namespace scalewise::detail
