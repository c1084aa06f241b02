// error: ParseError: no rank is above
program "p" on {99999999999} () {
  return
}
