# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
#
# Comments of headers as Doxygen needs them: "Source: …" begins a section, which ends where a line is no
# longer indented; what looks like HTML or a command is text; `code` is code.
match($0, /^ *\/\/\/ ?/) {
  head = substr($0, 1, RLENGTH)
  text = substr($0, RLENGTH + 1)
  gsub(/[\\@#%<>&$]/, "\\\\&", text)
  while (match(text, /`[^`]+`/)) {
    code = substr(text, RSTART + 1, RLENGTH - 2)
    text = substr(text, 1, RSTART - 1) "<code>" code "</code>" substr(text, RSTART + RLENGTH)
  }
  if (match(text, /^[A-Z][a-z]+: +/)) {
    name = substr(text, 1, index(text, ":") - 1)
    print head "@par " name
    text = substr(text, RLENGTH + 1)
    section = 1
  } else if (section && text !~ /^ /) {
    print head
    section = 0
  }
  print head text
  next
}
{
  section = 0
  sub(/^struct (fmt|Eigen::internal)::/, "struct ")  # specializations of what Doxygen does not see
  print
}
