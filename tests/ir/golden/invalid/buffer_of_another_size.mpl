// error: ParseError: line 2, column
program "p" on {0, 1} () {
  %0 = simp.constant() {parties = {0}, value = dense<i64[2]>@7c9fa136d4413fa6} : i64[2]@{0}
  return %0
}
buffers {
  @7c9fa136d4413fa6 = "AQAAAAAAAAA="
}
