// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include <iostream>
#include <scalewise/scalewise.hpp>

scalewise::Shape other_shape();

int main() {
  scalewise::Shape shape;
  shape.d_model = 768;
  const bool same = shape.d_model == other_shape().d_model;
  std::cout << "consumer: d_model = " << shape.d_model << '\n';
  return same ? 0 : 1;
}
