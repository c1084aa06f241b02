// error: ParseError: %0 is used before its definition
program "p" on {0, 1} () {
  %0 = simp.converge(%0) : i64[]@{0}
  return %0
}
