// error: ParseError: %7 is used before its definition
program "p" on {0, 1} () {
  return %7
}
