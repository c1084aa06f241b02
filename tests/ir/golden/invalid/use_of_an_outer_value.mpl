// error: ParseError: %0 is used before its definition
program "p" on {0, 1} (%0: i64[]@{0}) {
  %1 = simp.pcall_static() {parties = {0}} do () {
    %2 = toy.scale(%0) {by = 2} : i64[]
    return %2
  } : i64[]@{0}
  return %1
}
