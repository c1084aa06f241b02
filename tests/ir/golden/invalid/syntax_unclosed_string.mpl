// error: ParseError: line 1, column 9: unexpected character '"'
program "p on {0} () {
  return
}
