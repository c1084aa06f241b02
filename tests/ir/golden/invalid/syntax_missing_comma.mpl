// error: ParseError: line 2, column 26: expected ')', got '%1'
program "p" on {0, 1} (%0: i64[]@{0}, %1: i64[]@{1}) {
  %2 = simp.converge(%0  %1) : i64[]@{0, 1}
  return
}
