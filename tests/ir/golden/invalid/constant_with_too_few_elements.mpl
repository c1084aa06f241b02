// error: ParseError: cannot reshape array of size 2 into shape (3,)
program "p" on {0, 1} () {
  %0 = simp.constant() {parties = {0}, value = dense<i64[3]>[1, 2]} : i64[3]@{0}
  return
}
