// error: ParseError: expected an integer, got 0.5
program "p" on {0.5} () {
  return
}
