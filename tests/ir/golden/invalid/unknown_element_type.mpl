// error: ParseError: 'f31' is not a valid DType
program "p" on {0, 1} (%0: f31[2]@{0}) {
  return
}
