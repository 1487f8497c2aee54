// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include <scalewise/scalewise.hpp>

scalewise::Shape other_shape() {
  scalewise::Shape shape;
  shape.d_model = 768;
  return shape;
}
