// error: ParseError: line 4, column 1: expected 'end', got 'program'
program "p" on {0, 1} () {
  return
}
program "q" on {0} () {
  return
}
