// error: ParseError: simp.converge defines 1 values but has 2 types
program "p" on {0, 1} (%0: i64[]@{0}) {
  %1 = simp.converge(%0) : i64[]@{0}, i64[]@{0}
  return %1
}
