// error: ParseError: ['id'] twice
program "p" on {0, 1} (%0: table<["id", "int64"], ["id", "string"]>@{0}) {
  return
}
