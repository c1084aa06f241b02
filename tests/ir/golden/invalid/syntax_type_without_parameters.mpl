// error: ParseError: expected '<', got '@'
program "p" on {0, 1} (%0: f32@{0}) {
  return
}
