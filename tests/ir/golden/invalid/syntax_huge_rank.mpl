// error: ParseError: a rank is below
program "p" on {99999999999} () {
  return
}
