// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Types that are policies and types that are not. Compiling this file is the test.

#include <string_view>

#include "scalewise/policy/all.hpp"

namespace static_concepts {

using namespace scalewise;

inline constexpr Source here{
    .title = "Mine", .authors = "Me", .year = "2026", .id = "unpublished", .where = "this file"};

// A user's own rule.
struct Mine {
  static constexpr std::string_view id = "mine";
  static constexpr Source source = here;
  static constexpr Reference reference = Reference::absolute;
  static constexpr std::array optimizers{sgd, adamw};
  constexpr Row row(Group) const { return {.init_variance = 1 / symbols::n}; }
  constexpr ModelRow model() const { return {}; }
};
static_assert(Policy<Mine>);
static_assert(require_policy<Mine>());
static_assert(policy::row_of(Mine{}, Group::query).init_variance == Variance(1 / symbols::n));
static_assert(policy::model_of(Mine{}).attention_scale == Multiplier(1 / sqrt(symbols::C)));

// The same, where cells depend on the model or the stack; the id may be a literal.
struct WithContext {
  static constexpr const char* id = "with-context";
  static constexpr Source source = here;
  static constexpr Reference reference = Reference::base;
  static constexpr std::array optimizers{sgd, adamw};
  constexpr Row row(Group, const policy::Context& context) const {
    return {.init_variance = static_cast<double>(context.depth())};
  }
  constexpr ModelRow model(const policy::Context&) const { return {}; }
};
static_assert(Policy<WithContext>);
static_assert(policy::row_of(WithContext{}, Group::query).init_variance == Variance(0));

// One of each form.
struct Mixed : Mine {
  constexpr ModelRow model(const policy::Context&) const { return {}; }
};
static_assert(Policy<Mixed>);

// Each requirement alone: a type of the same name hides the member.
struct NoId : Mine {
  using id = void;
};
static_assert(!Policy<NoId> && !policy::HasId<NoId>);
static_assert(policy::HasOptimizers<NoId> && policy::HasSource<NoId> &&
              policy::HasReference<NoId> && policy::HasRow<NoId> && policy::HasModel<NoId>);

struct NoSource : Mine {
  using source = void;
};
static_assert(!Policy<NoSource> && !policy::HasSource<NoSource>);
static_assert(policy::HasId<NoSource> && policy::HasReference<NoSource> &&
              policy::HasRow<NoSource>);
static_assert(policy::HasModel<NoSource> && policy::HasOptimizers<NoSource>);

struct NoReference : Mine {
  using reference = void;
};
static_assert(!Policy<NoReference> && !policy::HasReference<NoReference>);
static_assert(policy::HasId<NoReference> && policy::HasSource<NoReference> &&
              policy::HasRow<NoReference>);
static_assert(policy::HasModel<NoReference>);

struct NoOptimizers : Mine {
  using optimizers = void;
};
static_assert(!Policy<NoOptimizers> && !policy::HasOptimizers<NoOptimizers>);
static_assert(policy::HasId<NoOptimizers> && policy::HasSource<NoOptimizers> &&
              policy::HasReference<NoOptimizers>);
static_assert(policy::HasRow<NoOptimizers> && policy::HasModel<NoOptimizers>);

struct NoRule : Mine {
  using row = void;
};
static_assert(!Policy<NoRule> && !policy::HasRow<NoRule>);
static_assert(policy::HasId<NoRule> && policy::HasSource<NoRule> && policy::HasReference<NoRule> &&
              policy::HasModel<NoRule>);

struct NoModel : Mine {
  using model = void;
};
static_assert(!Policy<NoModel> && !policy::HasModel<NoModel>);
static_assert(policy::HasId<NoModel> && policy::HasSource<NoModel> &&
              policy::HasReference<NoModel> && policy::HasRow<NoModel>);

// Wrong types.
struct NumberForId : Mine {
  static constexpr int id = 7;
};
static_assert(!Policy<NumberForId>);

struct TextForSource : Mine {
  static constexpr std::string_view source = "arXiv:1234.56789";
};
static_assert(!Policy<TextForSource>);

struct FlagForReference : Mine {
  static constexpr bool reference = true;
};
static_assert(!Policy<FlagForReference>);

struct VarianceForRule : Mine {
  constexpr Variance row(Group) const { return 1; }
};
static_assert(!Policy<VarianceForRule>);

struct NumberForRule : Mine {
  constexpr double row(Group) const { return 1; }
};
static_assert(!Policy<NumberForRule>);

struct MultiplierForModel : Mine {
  constexpr Multiplier model() const { return 1; }
};
static_assert(!Policy<MultiplierForModel>);

struct RuleForModel : Mine {
  constexpr Row model() const { return {}; }
};
static_assert(!Policy<RuleForModel>);

struct MutableRule : Mine {
  constexpr Row row(Group) { return {}; }
};
static_assert(!Policy<MutableRule>);

struct WrongArgument : Mine {
  constexpr Row row(std::string_view) const { return {}; }
};
static_assert(!Policy<WrongArgument>);

static_assert(!Policy<int>);
static_assert(!Policy<Row>);

// Every shipped rule is one, and no two share an id unless they are forms of one rule.
constexpr int shipped() {
  int count = 0;
  policy::for_each_policy([&]<class P>() { count += Policy<P> && !P::id.empty() ? 1 : 0; });
  return count;
}
static_assert(shipped() > 0);

constexpr bool ids_differ() {
  bool differ = true;
  policy::for_each_policy([&]<class P>() {
    int same = 0;
    policy::for_each_policy([&]<class Q>() { same += P::id == Q::id ? 1 : 0; });
    differ = differ && same == 1;
  });
  return differ;
}
static_assert(ids_differ());

constexpr bool sources_are_named() {
  bool named = true;
  policy::for_each_policy([&]<class P>() {
    const Source& s = P::source;
    named = named && !s.title.empty() && !s.authors.empty() && !s.year.empty() && !s.id.empty() &&
            !s.where.empty();
  });
  return named;
}
static_assert(sources_are_named());

}  // namespace static_concepts
