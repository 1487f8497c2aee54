// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/architecture/operations.hpp"

#include "scalewise/architecture/presets.hpp"
#include "support/catch.hpp"

using namespace scalewise;
using architecture::operations, architecture::Operations;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

TEST_CASE("Operations are counted tensor by tensor") {
  // By hand, for one layer of width 8 with 2 heads, F = 20 and tables of 11 and 5 rows, and 5 tokens.
  Shape s{.d_model = 8, .depth = 1, .heads = 2, .d_ff = 20, .context = 5, .vocab = 11};
  const Operations count = operations(s, 5);
  CHECK(count.matrices == 2 * (4 * 64 + 2 * 160));
  CHECK(count.attention == 4 * 5 * 8);
  CHECK(count.lookups == 2 * (11 + 5) * 8);
  CHECK(count.head == 2 * 8 * 11 + 7 * 11);
  // Biases 3 n of attention, its output's, F and n of the MLP; three norms of 5; softmax; 5 n a block; the
  // activation; sum and dropout of what enters.
  CHECK(count.elements == 4 * 8 + 20 + 8 + 3 * 5 * 8 + 10 * 5 * 2 + 2 * 5 * 8 + 8 * 20 + 4 * 8);
  CHECK(count.total() == count.matrices + count.attention + count.elements + count.head);
  CHECK(count.total(0) == count.total() - count.head);

  s.gated_mlp = true;
  s.kv_heads = 1;
  CHECK(operations(s, 5).matrices == 2 * (2 * 64 + 2 * 32 + 3 * 160));
  CHECK(operations(s, 5).attention == count.attention);
  s.encoder_depth = 2;  // three layers, four attentions
  CHECK(operations(s, 5).attention == 4 * count.attention);
}

TEST_CASE("The compute of deep and narrow models is that of Table 23") {
  // Kedia et al. 2024, Table 23, in units of 10^20, by the code of Clark et al. 2020: BERT's million steps of 256
  // sequences of 512 tokens, the backward pass counted once, tables as products, 15 % predicted. Two rows fit no count of
  // the printed sizes, 784/128 and 384/128, and fit 768/128 and 384/256 of Table 4.
  struct Case {
    long depth, width;
    double printed;
  };
  for (const Case& c :
       {Case{12, 1024, 1.06}, Case{48, 512, 1.03}, Case{192, 256, 1.12}, Case{768, 128, 1.38},
        Case{24, 1024, 1.92}, Case{96, 512, 1.96}, Case{384, 256, 2.19}}) {
    CAPTURE(c.depth, c.width);
    Shape s = preset_shape("bert-base");
    s.d_model = c.width;
    s.d_ff = 4 * c.width;
    s.depth = c.depth;
    s.heads = s.kv_heads = c.width / 64;
    s.head_dim = 64;
    const Operations count = operations(s, 512);
    const double tokens = 1e6 * 256 * 512;
    CHECK_THAT(2 * tokens * (count.total(0.15625) + count.lookups) / 1e20,
               WithinAbs(c.printed, 0.0075));
  }
}
