// error: ParseError: line 1, column 17: expected 'number', got 'all'
program "p" on {all} () {
  return
}
