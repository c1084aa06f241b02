// error: ParseError: line 1, column
program "p" on {0, 1} (%0: tensor<"f32", 2.5>@{0}) {
  return
}
