// error: ParseError: unknown type 'nosuch'; no plugin that is installed provides it
program "p" on {0, 1} (%0: nosuch<1, "a">@{0}) {
  return
}
