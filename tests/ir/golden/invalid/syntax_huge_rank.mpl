// error: ParseError: no rank is above 65536
program "p" on {99999999999} () {
  return
}
