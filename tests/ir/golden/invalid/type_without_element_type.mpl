// error: ParseError: line 1, column
program "p" on {0, 1} (%0: tensor<>@{0}) {
  return
}
