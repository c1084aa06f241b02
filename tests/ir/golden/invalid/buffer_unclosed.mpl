// error: ParseError: line 7, column 1: expected 'buffer', got the end
program "p" on {0, 1} () {
  %0 = simp.constant() {parties = {0}, value = dense<i64[1]>@7c9fa136d4413fa6} : i64[1]@{0}
  return %0
}
buffers {
  @7c9fa136d4413fa6 = "AQAAAAAAAAA="
