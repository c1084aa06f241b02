// error: ParseError: line 2, column 3: unexpected character '/'
program "p" on {0, 1} () {
  // nothing
  return
}
