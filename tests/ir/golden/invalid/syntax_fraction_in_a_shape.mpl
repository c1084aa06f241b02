// error: ParseError: expected an integer, got 2.0
program "p" on {0, 1} (%0: f32[2.0]@{0}) {
  return
}
