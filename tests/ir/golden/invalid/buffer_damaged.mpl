// error: ParseError: the contents of buffer @7c9fa136d4413fa6 do not have that digest
program "p" on {0, 1} () {
  %0 = simp.constant() {parties = {0}, value = dense<i64[1]>@7c9fa136d4413fa6} : i64[1]@{0}
  return %0
}
buffers {
  @7c9fa136d4413fa6 = "AgAAAAAAAAA="
}
