// error: ParseError: a location is "file:line"
program "p" on {0, 1} () {
  simp.converge() at "model.py"
  return
}
