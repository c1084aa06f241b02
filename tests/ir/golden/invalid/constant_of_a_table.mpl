// error: ParseError: a constant is a tensor, not table<>
program "p" on {0, 1} () {
  %0 = simp.constant() {parties = {0}, value = dense<table<>>[]} : table<>@{0}
  return
}
