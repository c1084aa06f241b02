// error: ParseError: line 3, column 1: expected
program "p" on {0} (%0: i64[]@{0}) {
  return %0
