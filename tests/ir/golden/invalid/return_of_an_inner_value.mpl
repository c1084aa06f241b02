// error: ParseError: %1 is used before its definition
program "p" on {0, 1} () {
  %0 = simp.pcall_static() {parties = {0}} do () {
    %1 = toy.rank() : i64[]
    return %1
  } : i64[]@{0}
  return %1
}
