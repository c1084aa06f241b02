// error: ParseError: line 3, column 3: %1 is defined twice
program "p" on {0, 1} (%0: i64[]@{0}) {
  %1 = simp.converge(%0) : i64[]@{0}
  %1 = simp.converge(%0) : i64[]@{0}
  return %1
}
