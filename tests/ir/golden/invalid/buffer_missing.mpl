// error: ParseError: line 2, column 61: no buffer @7c9fa136d4413fa6 at the end of the text
program "p" on {0, 1} () {
  %0 = simp.constant() {parties = {0}, value = dense<i64[1]>@7c9fa136d4413fa6} : i64[1]@{0}
  return %0
}
