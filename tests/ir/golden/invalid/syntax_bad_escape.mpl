// error: ParseError: Invalid \escape
program "\q" on {0} () {
  return
}
