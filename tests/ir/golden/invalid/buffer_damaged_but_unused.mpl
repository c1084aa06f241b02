// error: ParseError: the contents of buffer @7c9fa136d4413fa6 do not have that digest
program "p" on {0, 1} () {
  return
}
buffers {
  @7c9fa136d4413fa6 = "AgAAAAAAAAA="
}
