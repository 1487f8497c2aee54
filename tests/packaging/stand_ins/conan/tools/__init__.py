# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
