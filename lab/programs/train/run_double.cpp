// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "lab/programs/train/run.hpp"

namespace scalewise::train {

template Result train_model<double>(const Settings&, const Data&, const Plan&, const files::Inputs&,
                                    Outputs&, const std::function<void()>&);

}  // namespace scalewise::train
