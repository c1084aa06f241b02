// error: ParseError: a rank is not negative, got -1
program "p" on {-1} () {
  return
}
