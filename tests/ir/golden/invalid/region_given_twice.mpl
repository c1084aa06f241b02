// error: ParseError: line 4, column
program "p" on {0, 1} () {
  simp.pcall_static() {parties = {0}} do () {
    return
  } do () {
    return
  }
  return
}
