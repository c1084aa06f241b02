// error: ParseError: line 4, column
program "p" on {0, 1} () {
  %0 = simp.pcall_static() {parties = {0, 1}} do () {
    %1 = toy.rank() : i64[]
    irtest.any() {value = dict{"a" = 1, "a" = 2}}
    return %1
  } : i64[]@{0, 1}
  return %0
}
