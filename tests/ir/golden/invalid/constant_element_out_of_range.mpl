// error: ParseError: line 2, column
program "p" on {0, 1} () {
  %0 = simp.constant() {parties = {0}, value = dense<i8[1]>[300]} : i8[1]@{0}
  return
}
