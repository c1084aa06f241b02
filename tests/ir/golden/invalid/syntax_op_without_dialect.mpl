// error: ParseError: line 2, column 8: expected an op, as in dialect.op, got 'converge'
program "p" on {0, 1} (%0: i64[]@{0}) {
  %1 = converge(%0) : i64[]@{0}
  return
}
