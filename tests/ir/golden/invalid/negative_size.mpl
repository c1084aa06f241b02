// error: ParseError: no tensor has the shape (2, -1)
program "p" on {0, 1} (%0: f32[2, -1]@{0}) {
  return
}
