// error: ParseError: buffer @7c9fa136d4413fa6 is not base64
program "p" on {0, 1} () {
  %0 = simp.constant() {parties = {0}, value = dense<i64[1]>@7c9fa136d4413fa6} : i64[1]@{0}
  return %0
}
buffers {
  @7c9fa136d4413fa6 = "AQAAAAAAA"
}
